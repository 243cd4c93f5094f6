"""Shapley values by enumeration, importances and separations by other means."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdcf import (
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.edges import chain_edges
from skdcf.evaluation import leave_one_out
from skdcf.features import GraphTransformer
from skdcf.inspection import (
    permutation_importance,
    shap_values,
)
from skdcf.scorers import ConfTrScorer

X, Y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
NARROW = X.replace_features(X.features[:, :5], X.feature_names[:5])


@pytest.fixture(scope="module")
def linear():
    dcf = CoherentConformalFilter(ConfTrScorer(gain=None), random_state=0)
    return dcf.fit(NARROW[:200], Y[:200])


def enumerated(confidence, x, background):
    """Shapley values of one row: features outside a coalition come from the background."""
    d, out = len(x), np.zeros(len(x))

    def worth(coalition):
        rows = background.copy()
        rows[:, list(coalition)] = x[list(coalition)]
        return confidence(rows).mean()

    for j in range(d):
        others = [k for k in range(d) if k != j]
        for size in range(d):
            weight = factorial(size) * factorial(d - size - 1) / factorial(d)
            for some in combinations(others, size):
                out[j] += weight * (worth((*some, j)) - worth(some))
    return out


@pytest.mark.parametrize("scale", [1, 4])
def test_shapley_values_by_enumeration(linear, scale):
    test = NARROW[200:203]
    test = test.replace_features(scale * test.features, NARROW.feature_names)
    report = shap_values(linear, test)

    def confidence(rows):
        batch = GraphBatch.from_arrays(rows, np.arange(len(rows) + 1))
        return linear.scorer_.confidence(batch)

    for row in (0, 7, test.n_claims - 1):
        expected = enumerated(confidence, test.features[row], test.features)
        np.testing.assert_allclose(report.values[row], expected, atol=1e-10)
    mean = np.abs(report.values).mean(axis=0)
    order = np.argsort(-mean)
    np.testing.assert_allclose(report.mean, mean[order])
    deviation = np.abs(report.values).std(axis=0)
    np.testing.assert_allclose(report.deviation, deviation[order])
    assert report.feature.tolist() == [NARROW.feature_names[j] for j in order]
    pooled = shap_values([linear, linear], test)
    np.testing.assert_array_equal(pooled.values, np.tile(report.values, (2, 1)))


def test_other_scorers_are_told_what_to_use():
    cf = HardCF(lambda batch: batch.features[:, 0] ** 2)
    cf.fit(NARROW[:200], Y[:200])
    with pytest.raises(ValueError, match="permutation_importance"):
        shap_values(cf, NARROW[200:])


def test_permutation_by_hand():
    cf = HardCF("frequency-score", ties="jitter", alpha=0.2, random_state=1)
    cf.fit(NARROW[:100], Y[:100])
    test = NARROW[100:], Y[100:]
    report = permutation_importance(cf, *test, n_repeats=2, random_state=3)
    rng = np.random.RandomState(3)
    baseline = leave_one_out(cf, *test, [0.2]).retention[0]
    lost = []
    for _ in range(2):
        table = test[0].features.copy()
        table[:, 0] = rng.permutation(table[:, 0])
        shuffled = test[0].replace_features(table, NARROW.feature_names)
        kept = leave_one_out(cf, shuffled, Y[100:], [0.2]).retention[0]
        lost.append(baseline - kept)
    first, *others = report.rows
    assert first["feature"] == "frequency-score"
    assert first["mean"] == pytest.approx(np.mean(lost)) and first["mean"] > 0.3
    assert first["deviation"] == pytest.approx(np.std(lost))
    # The jitter hashes all columns, and so moves ties a little.
    assert max(abs(row["mean"]) for row in others) < first["mean"] / 2
    with pytest.raises(ValueError, match="n_repeats"):
        permutation_importance(cf, *test, n_repeats=0)
    with pytest.raises(NotFittedError, match="calibration_size=0"):
        permutation_importance(HardCF(0, calibration_size=0).fit(*test), *test)


class Columns(GraphTransformer):
    """Return the columns of NARROW for problems that have none."""

    requires_fit = False
    reads_edges = False

    def own_names(self):
        return NARROW.feature_names

    def own_columns(self, batch):
        return NARROW.features[[int(text) for text in batch.claims]]


@pytest.mark.parametrize("edges", ["given", "none", chain_edges])
def test_permutation_of_the_columns_that_the_filter_computes(edges):
    full = GraphBatch.from_arrays(
        NARROW.features,
        NARROW.offsets,
        NARROW.edges,
        claims=map(str, range(NARROW.n_claims)),
        feature_names=NARROW.feature_names,
    )
    bare = full.replace_features(None)
    options = {"alpha": 0.2, "edges": edges, "random_state": 1}
    computed = HardCF("frequency-score", features=Columns(), **options)
    computed.fit(bare[:100], Y[:100])
    given = HardCF("frequency-score", **options).fit(full[:100], Y[:100])
    calls = {"n_repeats": 2, "random_state": 3}
    report = permutation_importance(computed, bare[100:], Y[100:], **calls)
    expected = permutation_importance(given, full[100:], Y[100:], **calls)
    assert report.rows == expected.rows
    assert report.feature[0] == "frequency-score" and report.mean[0] > 0.2
    assert computed.features is not None
    computed.predict(bare[100:])
