"""What kept claims are worth: the price with a concave gain, and fewer empty answers."""

import itertools

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.metrics import leave_one_out
from skdcf.ops.neyman_pearson import log_price
from skdcf.scorers import NeymanPearsonScorer, StackingScorer


def best_prefix(hazards, t, worth):
    """Number of claims to keep of a chainless answer at price t, by trying all."""
    order = sorted(hazards)
    values = []
    for k in range(len(order) + 1):
        chances = [1 - h for h in order[:k]]
        steps = [(worth(i + 1.0) - worth(i + 0.0)) * c for i, c in enumerate(chances)]
        violation = 1 - np.prod(chances)
        values.append(sum(steps) - violation / t)
    return int(np.argmax(values))


@pytest.mark.parametrize("worth", [lambda k: k, np.sqrt, np.log1p, lambda k: k**0.75])
def test_price_is_that_of_the_best_prefix(worth):
    rng = np.random.default_rng(0)
    hazards = rng.uniform(0.02, 0.5, size=6)
    batch = GraphBatch.from_arrays(np.zeros((6, 1)), [0, 6])
    price = np.exp(log_price(np.log(hazards / (1 - hazards)), batch, worth=worth))
    for t in np.geomspace(price.min() / 2, price.max() * 2, 25):
        assert (price < t).sum() == best_prefix(hazards, t, worth)


def test_answers_empty_fewer_and_cost_little():
    X, y = make_reasoning_graphs(900, random_state=0, return_X_y=True)
    reports = {}
    for gain in ("claims", "answers"):
        scorer = NeymanPearsonScorer(gain=gain)
        cf = HardCF(scorer, calibration_size=1, random_state=0, alpha=0.6)
        with pytest.warns(UserWarning):
            cf.fit(X[:400], y[:400])
        reports[gain] = leave_one_out(cf, X[400:], y[400:], [0.05])
    claims, answers = reports["claims"], reports["answers"]
    assert answers.abstention < claims.abstention
    assert answers.retention > 0.8 * claims.retention


@pytest.mark.parametrize(
    ("gain", "message"),
    [
        ("problems", "one of"),
        (3, "exponent between 0 and 1"),
        (-0.1, "exponent between 0 and 1"),
        (1.0001, "exponent between 0 and 1"),
        (np.nan, "exponent between 0 and 1"),
        (True, "exponent between 0 and 1"),
        (1e-300, "gain must be"),
        (np.square, "concave"),
        (np.zeros_like, "gain must be"),
        (lambda k: -k, "gain must be"),
    ],
)
def test_what_is_no_gain(gain, message):
    for kind, value in itertools.product((NeymanPearsonScorer, StackingScorer), [gain]):
        with pytest.raises(ValueError, match=message):
            kind(gain=value).validate()
