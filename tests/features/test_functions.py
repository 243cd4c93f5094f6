"""Columns of a caller's function: cached by content, and nothing wrong is let through."""

import numpy as np
import pytest
from sklearn.base import clone

from skdcf import HardCF, ReasoningGraph
from skdcf.features import FunctionColumns

GRAPHS = [ReasoningGraph(None, [], claims=[f"{i}", f"{i * i}"]) for i in range(2, 42)]


class Lengths:
    def __init__(self, wrong=None):
        self.calls, self.wrong = 0, wrong

    def __call__(self, graph):
        self.calls += 1
        rows = [[float(len(claim)), 1.0] for claim in graph.claims]
        if self.wrong is not None:
            rows[1][0] = self.wrong
        return rows


def test_each_content_is_asked_for_once_also_by_copies():
    function = Lengths()
    columns = FunctionColumns(function, ["length", "one"])
    batch = columns.fit_transform(GRAPHS)
    assert batch.feature_names == ("length", "one")
    assert batch.features[:4].tolist() == [[1, 1]] * 4
    copy = clone(columns)
    copy.fit_transform(GRAPHS[::-1])
    assert function.calls == len(GRAPHS)
    other = ReasoningGraph(None, [(0, 1)], claims=GRAPHS[0].claims)
    copy.transform([other])
    assert function.calls == len(GRAPHS) + 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(value):
    columns = FunctionColumns(Lengths(value), ["length", "one"])
    with pytest.raises(ValueError, match=r"claim 1 of problem 0.*'length'"):
        columns.fit_transform(GRAPHS)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\(2, 1\) for problem 0.*\(2, 2\)"):
        FunctionColumns(Lengths(), ["length"]).fit_transform(GRAPHS)


def test_a_filter_uses_the_columns_and_needs_no_training_for_them():
    columns = FunctionColumns(Lengths(), ["length", "one"])
    cf = HardCF("length", features=columns, alpha=0.3, ties="jitter", random_state=0)
    cf.fit(GRAPHS, [[0, 1]] * 40)
    assert cf.n_calibration_ > 30
