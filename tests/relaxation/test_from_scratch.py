"""The gallery example that needs nothing of the package computes what the package does."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from autograd import value_and_grad

from skdcf import HardCF
from skdcf.relaxation import GridRelaxation

EXAMPLE = Path(__file__).parents[2] / "examples/scores/plot_from_scratch.py"


@pytest.fixture(scope="module")
def scratch():
    """The example, run with a training of two steps."""
    pytest.importorskip("matplotlib").use("Agg")
    source = EXAMPLE.read_text("utf-8").replace('"maxiter": 8', '"maxiter": 2')
    names = {"__name__": "example"}
    exec(compile(source, str(EXAMPLE), "exec"), names)
    return names


def test_masks_are_those_of_hard_cf(scratch):
    """At each level, with a score that learns nothing: a column of the data."""
    graphs, labels = scratch["graphs"], scratch["labels"]
    column = graphs.feature_names.index("frequency-score")
    risk = -graphs.features[:, column] + 1e-6 * np.arange(graphs.n_claims)  # no ties
    batch = graphs.replace_features(-risk[:, None])
    above = [scratch["ancestors"](g) for g in graphs]
    risks = batch.split(risk)
    scores = [
        scratch["hard_score"](risks[i], above[i], labels[i] == 1) for i in range(199)
    ]
    filter = HardCF(0, alpha=0.1).fit(batch[:199], labels[:199])
    new = range(199, len(graphs))
    for alpha in (0.05, 0.1, 0.2):
        threshold = scratch["hard_threshold"](np.array(scores), alpha)
        assert filter.threshold(alpha) == pytest.approx(threshold, abs=1e-7)
        masks = filter.predict(batch[199:], alpha=alpha)
        for i, mask in zip(new, masks, strict=True):
            expected = scratch["keep"](risks[i], above[i], threshold)
            np.testing.assert_array_equal(mask, expected)


def test_loss_and_gradient_are_those_of_the_grid_relaxation(scratch):
    graphs, labels = scratch["graphs"][:60], scratch["labels"][:60]
    relaxation = GridRelaxation()
    plan = relaxation.plan(graphs, np.concatenate(labels))
    risk = np.random.RandomState(0).normal(size=graphs.n_claims)

    def from_scratch(risk):
        ends = graphs.offsets
        parts = [risk[a:b] for a, b in pairwise(ends)]
        return scratch["retention"](parts, scratch["train"], 0.1)

    expected, slope = value_and_grad(from_scratch)(risk)
    value, gradient = value_and_grad(lambda r: relaxation.retention(r, plan, 0.1))(risk)
    assert value == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-9)


def test_training_lowers_the_loss(scratch):
    assert scratch["trained"].fun < scratch["loss"](scratch["start"])


def test_it_imports_only_the_data():
    lines = EXAMPLE.read_text("utf-8").splitlines()
    imported = [line for line in lines if "import" in line and "skdcf" in line]
    assert imported == ["from skdcf.datasets import make_reasoning_graphs"]
