"""Agreement of people and models, and which claims to judge next."""

import numpy as np
import pytest
from scipy.stats import binomtest

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.labelling import agreement
from skdcf.apps.labelling._orders import next_to_label
from skdcf.datasets import make_reasoning_graphs


def test_extreme_agreements():
    assert agreement([[1, 0], [0]], [[1, 0], [0]]).kappa == 1
    assert np.isnan(agreement([[1, 1], [1]], [[1, 1], [1]]).kappa)
    with pytest.raises(ValueError, match="0"):
        agreement([[1, -1]], [[-1, 0]])


def test_overlooked_answers_and_their_exact_interval():
    _, human = make_reasoning_graphs(600, random_state=3, return_X_y=True)
    rng = np.random.default_rng(3)
    model = [
        np.where((row == 0) & (rng.random(len(row)) < 0.4), 1, row) for row in human
    ]
    missed = [np.any((a == 0) & (b == 1)) for a, b in zip(human, model, strict=True)]
    result = agreement(model, human)
    assert result.overlooked == pytest.approx(np.mean(missed))
    exact = binomtest(int(sum(missed)), 600).proportion_ci()
    assert result.overlooked_interval == pytest.approx(tuple(exact))


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.LabelWarning")
def test_labels_that_are_asked_for_raise_the_threshold():
    """By brute force: exactly the problems whose unknown labels, if true, raise it."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        graphs = [
            ReasoningGraph(rng.normal(size=(n, 1)), [], problem=str(i))
            for i, n in enumerate(rng.integers(1, 4, 15))
        ]
        y = [rng.choice([1, 0, -1], graph.n_claims) for graph in graphs]
        cf = HardCF(0, alpha=0.2).fit(graphs, y)
        raised = {}
        for i, row in enumerate(y):
            if -1 not in row:
                continue
            hoped = [*y[:i], np.where(row == -1, 1, row), *y[i + 1 :]]
            threshold = HardCF(0, alpha=0.2).fit(graphs, hoped).threshold_
            if threshold > cf.threshold_:
                raised[i] = threshold
        asked = next_to_label(cf, graphs, y)
        assert {i for i, _ in asked} == raised.keys()
        keys = [(len(claims), -raised[i]) for i, claims in asked]
        assert keys == sorted(keys)
        for i, claims in asked:
            left = [v for v in np.flatnonzero(y[i] == -1) if v not in claims]
            risks = cf.path_risk([graphs[i]])[0]
            assert all(risks[v] > cf.threshold_ for v in left)
