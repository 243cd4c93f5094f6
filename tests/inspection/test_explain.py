"""Why claims are dropped, by a plain loop."""

import re

import numpy as np
import pytest
from levels import thresholds

from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.inspection import explain

X, Y = make_reasoning_graphs(360, random_state=0, return_X_y=True)
FIT, NEW = (X[:200], Y[:200]), X[200:270]


@pytest.fixture(scope="module")
def frequency():
    return HardCF("frequency-score", alpha=0.1).fit(*FIT)


@pytest.fixture(scope="module", params=["frequency-score", "linear"])
def filter(request):
    return CoherentConformalFilter(request.param, alpha=0.1, random_state=0).fit(*FIT)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_causes_by_a_plain_loop(filter, alpha):
    explained = explain(filter, NEW, Y[200:270], alpha=alpha)
    masks, levels = filter.predict(NEW, alpha=alpha), filter.predict_alpha(NEW)
    for graph, found, mask, level in zip(NEW, explained, masks, levels, strict=True):
        np.testing.assert_array_equal(found.kept, mask)
        assert found.alpha == alpha and len(found.labels) == len(mask)
        never = np.where(level >= 1, np.inf, level)
        np.testing.assert_array_equal(found.smallest_alpha, never)
        assert sorted(found.reasons) == np.flatnonzero(~mask).tolist()
        for v, row in enumerate(found.rows):
            above = [*graph.ancestors(v), v]
            worst = max(-found.confidence[above])
            cause = row["decided_by"] - 1
            assert row["claim"] == v + 1 and cause in above
            assert -found.confidence[cause] == row["path_risk"] == worst
            assert mask[v] == row["kept"] == (worst < row["threshold"])
            assert row["reason"] == found.reasons.get(v, "")


def test_reasons_name_numbers_that_hold(frequency):
    level_of = re.compile(r"kept if alpha is at least ([\d.]+)\.$")
    ties = []
    for graph, found in zip(NEW, explain(frequency, NEW), strict=True):
        for v, reason in found.reasons.items():
            level = float(level_of.search(reason)[1])
            assert frequency.predict([graph], alpha=level)[0][v]
            assert not frequency.predict([graph], alpha=level - 2e-4)[0][v]
            row = found.rows[v]
            risk, threshold = row["path_risk"] + 0.0, row["threshold"]
            ties.append(np.isclose(risk, threshold, rtol=1e-8, atol=0))
            assert f"Claim {v + 1} " in reason and f"risk {risk:g} " in reason
            assert ("equals the threshold" in reason) == ties[-1]
            assert ties[-1] or f"threshold {threshold:.4g}" in reason
            assert (f"claim {row['decided_by']}," in reason) == (
                row["decided_by"] != v + 1
            )
    assert 0.1 < np.mean(ties) < 0.9


def test_thresholds_of_other_guarantees():
    counted = HardCF(alpha=0.3, guarantee=ExpectedFalse(), ties="jitter").fit(*FIT)
    parity = [{"odd": i % 2} for i in range(len(X))]
    batch = GraphBatch.from_graphs(
        graph.replace(metadata=row) for graph, row in zip(X, parity, strict=True)
    )
    grouped = HardCF("frequency-score", guarantee=NoFalseClaim(by="odd"), alpha=0.1)
    grouped = grouped.fit(batch[:200], Y[:200])
    for filter, new in ((counted, NEW), (grouped, batch[200:])):
        limits, masks = thresholds(filter, new), filter.predict(new)
        for found, threshold, mask in zip(
            explain(filter, new), limits, masks, strict=True
        ):
            np.testing.assert_allclose(found.threshold, threshold)
            np.testing.assert_array_equal(found.kept, mask)
    assert len(set(thresholds(grouped, batch[200:]))) == 2
    assert explain(counted, NEW[0]).alpha == 0.3
    assert explain(counted, NEW[0], alpha=0.6).alpha == 0.6


def test_claims_that_nothing_keeps():
    scores = np.arange(1.0, 20.0)
    calibration = [ReasoningGraph([[s]], [], feature_names=["f"]) for s in scores]
    cf = HardCF("f", alpha=0.1).fit(calibration, [[0]] * 19)
    graph = ReasoningGraph([[30.0], [0.0]], [(0, 1)], feature_names=["f"])
    found = explain(cf, graph)
    assert found.heading == "1 of 2 claims kept at alpha = 0.1"
    assert "risk 0 " in found.reasons[1] and "every alpha" in found.reasons[1]
    close = explain(cf, graph.replace(features=[[17.9999], [0.0]]))
    assert "-17.9999 " in close.reasons[0] and "-18" in close.reasons[0]
    with pytest.warns(CalibrationWarning):
        few = explain(cf, graph, alpha=0.01)
    assert re.search("Claim 1 .*19 .*alpha = 0.01.* 0.05", few.reasons[0])


def test_claims_are_scored_once():
    calls = []

    def scorer(batch):
        calls.append(len(batch))
        return batch.features[:, 0]

    filter = HardCF(scorer, alpha=0.1).fit(*FIT)
    calls.clear()
    explain(filter, NEW, Y[200:270])
    assert calls == [len(NEW)]
