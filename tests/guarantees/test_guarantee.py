"""Coverage over 2,000 random splits lies where theory puts it.

Given a scorer that has seen none of the problems, every estimator calibrates on n of
them and filters another one: covered with probability at least 1 - k/(n+1), and exactly
that where scores have no ties.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    IndependentFactuality,
    ReasoningGraph,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.ops.conformal import conformal_rank
from skdcf.scorers import ConfTrScorer

ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.5)
SIZES = (9, 19, 50, 200)
N_SPLITS, N_TEST, N_THROUGH_THE_DOOR = 2000, 20, 15


def logistic():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=5000)


FILTERS = {
    "HardCF, frequency": HardCF("frequency-score"),
    "HardCF, jitter": HardCF("frequency-score", ties="jitter"),
    "HardCF, logistic": HardCF(logistic(), calibration_size=100),
    "HardCF, linear": HardCF(ConfTrScorer(), random_state=0),
    "IndependentFactuality": IndependentFactuality(),
    "SingleFeatureCF": SingleFeatureCF("nx_reachability", beta_mix=0.5),
    "CoherentConformalFilter": CoherentConformalFilter("linear", random_state=0),
    "CoherentConformalFilter, auto": CoherentConformalFilter(random_state=0),
    "BoostedIndependentFactuality": BoostedIndependentFactuality(random_state=0),
    "Boosted, jitter": BoostedIndependentFactuality(ties="jitter", random_state=0),
    "XGBoostCF": XGBoostCF(random_state=0),
}


@pytest.fixture(scope="module")
def pool():
    graphs, labels = make_reasoning_graphs(
        1500, kind="felm", random_state=0, return_X_y=True
    )
    return graphs, labels


def continuous(graphs, labels):
    """The problems with errors, a continuous feature in place of the tied one."""
    wrong = [i for i, y in enumerate(labels) if not np.all(y)]
    batch = graphs[wrong]
    labels = [labels[i] for i in wrong]
    features = np.array(batch.features)
    rng = np.random.default_rng(0)
    for name in ("frequency-score", "nx_reachability"):
        column = batch.feature_names.index(name)
        features[:, column] += rng.normal(size=len(features))
    return batch.replace_features(features, batch.feature_names), labels


def random_splits(n_problems, n):
    """Problem numbers of each split, shape (N_SPLITS, n + N_TEST)."""
    order = np.random.default_rng(n).random((N_SPLITS, n_problems)).argsort(axis=1)
    return order[:, : n + N_TEST]


def coverage_through_the_door(filter, graphs, labels, rows, n):
    """Which problems calibrate, and per alpha the share that keeps no false claim."""
    filter.calibrate(graphs[rows[:n]], [labels[i] for i in rows[:n]])
    levels = filter.predict_alpha(graphs[rows[n:]])
    wrong = [
        np.min(level[np.asarray(labels[i]) == 0], initial=np.inf)
        for i, level in zip(rows[n:], levels, strict=True)
    ]
    chosen = np.setdiff1d(np.arange(n), filter.unused_indices_)
    return chosen, [np.mean(np.array(wrong) > alpha) for alpha in ALPHAS]


def coverage_by_counting(scores, risk, splits, n):
    """The same for all splits, from what a problem scores and risks by itself.

    A false claim is kept from the alpha on of which the share of calibration problems
    with a score at or below its path risk falls short.
    """
    below = (scores[splits[:, :n]][:, None] <= risk[splits[:, n:]][..., None]).sum(-1)
    level = np.where(np.isfinite(risk[splits[:, n:]]), (1 + below) / (n + 1), np.inf)
    return (level[..., None] > np.array(ALPHAS)).mean(axis=1)


def coverage_over_splits(filter, graphs, labels, n):
    """Mean coverage per alpha and its standard error over random splits.

    Some splits go through the methods of the filter, and equal the count of all.
    """
    splits = random_splits(len(graphs), n)
    risk = np.array(
        [
            np.min(own[np.asarray(y) == 0], initial=np.inf)
            for own, y in zip(filter.path_risk(graphs), labels, strict=True)
        ]
    )
    scores = risk
    if filter.ties != "include":
        scores = risk - 1e-10 * (1 + np.abs(np.where(np.isfinite(risk), risk, 0)))
    else:
        scores = np.nextafter(risk, np.inf)  # what is equal counts as kept
    covered = coverage_by_counting(scores, risk, splits, n)
    for split in range(N_THROUGH_THE_DOOR):
        rows = splits[split]
        chosen, found = coverage_through_the_door(filter, graphs, labels, rows, n)
        used = np.append(rows[chosen], rows[n:])[None]
        counted = coverage_by_counting(scores, risk, used, len(chosen))[0]
        np.testing.assert_allclose(counted, found, atol=1e-12)
    return covered.mean(axis=0), covered.std(axis=0) / np.sqrt(N_SPLITS)


@pytest.mark.long
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("ties", ["tied", "continuous"])
def test_mean_coverage_is_in_its_band(pool, name, ties):
    graphs, labels = pool
    if ties == "continuous":
        graphs, labels = continuous(graphs, labels)
    fresh = np.arange(200, len(graphs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        filter = clone(FILTERS[name]).fit(graphs[:200], labels[:200])
        graphs, labels = graphs[fresh], [labels[i] for i in fresh]
        for n in SIZES:
            coverage, error = coverage_over_splits(filter, graphs, labels, n)
            for alpha, mean, se in zip(ALPHAS, coverage, error, strict=True):
                exact = 1 - conformal_rank(n, alpha) / (n + 1)
                assert exact >= 1 - alpha
                assert mean >= exact - 4 * se - 1e-12
                if ties == "continuous":
                    assert mean <= exact + 4 * se + 1e-12


def test_including_ties_breaks_the_guarantee(pool):
    """The band test above can fail: the published tie rule leaves the band."""
    graphs, labels = pool
    filter = HardCF("frequency-score", ties="include").fit(graphs[:200], labels[:200])
    coverage, error = coverage_over_splits(filter, graphs, labels, 19)
    assert coverage[2] < 0.9 - 4 * error[2]


def test_training_problems_are_never_calibrated_on(pool):
    """With a memorising classifier, reuse would put the threshold at +inf."""
    from sklearn.neighbors import KNeighborsClassifier

    graphs, labels = pool
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(graphs.n_claims, 3))
    blind = graphs.replace_features(noise)
    filter = HardCF(KNeighborsClassifier(1), alpha=0.1, random_state=0)
    filter.fit(blind[:400], labels[:400])
    assert filter.n_calibration_ == 159
    assert filter.threshold_ < 0.9
    assert isinstance(blind, GraphBatch)


def tied_problems(n, rng):
    """Two kinds of claim only, so that nearly every score is tied with others."""
    kinds = np.random.default_rng(7).normal(size=(2, 13))
    graphs, labels = [], []
    for _ in range(n):
        kind = rng.integers(0, 2, 3)
        graphs.append(ReasoningGraph(kinds[kind], []))
        labels.append((rng.random(3) > 0.02 + 0.2 * kind).astype(int))
    return GraphBatch.from_graphs(graphs), labels


@pytest.mark.parametrize(
    "filter",
    [
        CoherentConformalFilter(alpha=0.2, random_state=0),
        HardCF(logistic(), alpha=0.2, random_state=0),
    ],
)
def test_exact_ties_are_dropped_alone_and_in_a_batch(filter):
    """A sum is rounded differently in a batch; a tied false claim must not slip in."""
    rng = np.random.default_rng(0)
    graphs, labels = tied_problems(400, rng)
    filter.fit(graphs, labels)
    fresh, _ = tied_problems(60, rng)
    whole = filter.predict(fresh)
    for i in range(60):
        np.testing.assert_array_equal(filter.predict([fresh[i]])[0], whole[i])
    risk = np.concatenate(filter.path_risk(fresh))
    kept = np.concatenate(whole)
    scores = filter.nonconformity_scores_
    tied = np.isclose(risk, filter.threshold_, rtol=1e-9, atol=1e-9)
    assert not (tied & kept).any()
    assert np.isfinite(scores).any()
