"""Differentiable models: by hand, from a seed, and one of a user's own."""

import subprocess
import sys

import numpy as np
import pytest

from skdcf.scorers import MLPModel


def test_mlp_by_hand():
    scorer, X = MLPModel((2,)), np.array([[1.0, -2.0]])
    (w, b), (v, c) = scorer.init(2, np.random.RandomState(1))
    hidden = [np.tanh(X[0] @ w[:, j] + b[j]) for j in range(2)]
    expected = hidden[0] * v[0, 0] + hidden[1] * v[1, 0] + c[0]
    assert scorer([(w, b), (v, c)], X)[0] == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [(2, -1), (1.5,), 0, None, "8"])
def test_mlp_with_impossible_layers(sizes):
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        MLPModel(sizes).init(3, np.random.RandomState(0))


@pytest.mark.long
def test_predicting_needs_no_autograd():
    code = (
        "import sys, numpy as np; from skdcf.scorers import LinearModel, MLPModel\n"
        "rng, X = np.random.RandomState(0), np.ones((2, 3))\n"
        "for scorer in (LinearModel(), MLPModel()): scorer(scorer.init(3, rng), X)\n"
        "print('autograd' in sys.modules)"
    )
    run = [sys.executable, "-c", code]
    assert subprocess.check_output(run, text=True).strip() == "False"
