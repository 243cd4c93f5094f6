"""Differentiable models: by hand, from a seed, and one of a user's own."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdcf.datasets import make_reasoning_graphs
from skdcf.labels import pack_labels
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import MLPModel
from skdcf.training import SoftTraining
from skdcf.training.loop import train


def test_mlp_by_hand():
    scorer, X = MLPModel((2,)), np.array([[1.0, -2.0]])
    (w, b), (v, c) = scorer.init(2, np.random.RandomState(1))
    hidden = [np.tanh(X[0] @ w[:, j] + b[j]) for j in range(2)]
    expected = hidden[0] * v[0, 0] + hidden[1] * v[1, 0] + c[0]
    assert scorer([(w, b), (v, c)], X)[0] == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [(0,), (2, -1), (1.5,), 0, 8.0, None, "8"])
def test_mlp_with_impossible_layers(sizes):
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        MLPModel(sizes).init(3, np.random.RandomState(0))


class Bilinear(BaseEstimator):
    """A user's own model, with parameters in a dict."""

    def init(self, n_features, rng):
        return {"a": rng.normal(size=n_features), "b": rng.normal(size=n_features)}

    def __call__(self, params, X):
        import autograd.numpy as np

        return X @ params["a"] + np.tanh(X @ params["b"])


def test_own_model():
    batch, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    labels, rng = pack_labels(y, batch), np.random.RandomState(0)
    setting = Bilinear(), PathRelaxation(), SoftTraining(shrinkage=0.0)
    result = train(*setting, batch, labels, 0.1, rng=rng)
    assert result.loss_curve[-1] < result.loss_curve[0]
    assert set(result.params) == {"a", "b"}


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
