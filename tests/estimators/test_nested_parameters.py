"""Parameters of a value that is not there, and attributes of a scorer that has none of them."""

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs

GRAPHS, Y = make_reasoning_graphs(90, random_state=0, return_X_y=True)
LINEAR = CoherentConformalFilter("linear", alpha=0.3, random_state=0)


@pytest.mark.parametrize(
    ("filter", "key", "words"),
    [
        (LINEAR, "training__optimizer__max_iter", "training=None.*optimizer__max_iter"),
        (HardCF(LogisticRegression()), "scorer__nonsense", "'nonsense'"),
    ],
)
def test_the_error_names_the_value_without_parameters(filter, key, words):
    with pytest.raises(ValueError, match=words):
        filter.set_params(**{key: 1})


def test_attributes_of_the_scorer_are_those_of_the_filter():
    with pytest.raises(NotFittedError):
        _ = LINEAR.coef_
    filter = clone(LINEAR).fit(GRAPHS, Y)
    assert filter.coef_.tolist() == filter.scorer_.coef_.tolist()
    assert filter.loss_curve_ == filter.scorer_.loss_curve_ != []
    assert not hasattr(HardCF(0).fit(GRAPHS, Y), "coef_")
