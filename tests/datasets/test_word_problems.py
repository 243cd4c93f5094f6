"""Generated word problems: their labels by another calculation, and their variety."""

import re

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.datasets import make_word_problems
from skdcf.evaluation import leave_one_out
from skdcf.features import reasoning_features

DATA = make_word_problems(300, random_state=3)
EQUATION = re.compile(r"(-?\d+) ([+*-]) (-?\d+) = (-?\d+)")


def equation_of(claim):
    left, sign, right, result = EQUATION.search(claim).groups()
    return int(left), sign, int(right), int(result)


def holds(left, sign, right, result):
    return result == {"+": left + right, "-": left - right, "*": left * right}[sign]


def test_a_true_claim_holds_and_rests_on_what_its_parents_found():
    for graph, labels in zip(DATA.graphs, DATA.labels, strict=True):
        results = [equation_of(c)[-1] for c in graph.claims[:-1]]
        assert labels[-1] == labels[-2]
        assert graph.claims[-1] == f"The answer is {results[-1]}."
        for v in np.flatnonzero(labels[:-1]):
            assert holds(*equation_of(graph.claims[v]))


def test_where_all_claims_are_true_every_number_comes_from_somewhere():
    clean = [i for i, labels in enumerate(DATA.labels) if labels.all()]
    assert 150 < len(clean) < 270
    for i in clean:
        known = {int(n) for n in re.findall(r"\d+", DATA.graphs[i].problem)}
        for claim in DATA.graphs[i].claims[:-1]:
            left, _, right, result = equation_of(claim)
            assert {left, right} <= known
            known.add(result)


def test_edges_are_the_results_that_a_step_uses():
    for graph in DATA.graphs:
        results = {}
        for v, claim in enumerate(graph.claims[:-1]):
            for u in graph.edges[graph.edges[:, 1] == v, 0]:
                assert results[u] in equation_of(claim)[:3]
            results[v] = equation_of(claim)[-1]


def test_same_seed_same_problems_and_other_answers_differ():
    again = make_word_problems(300, random_state=3)
    assert list(again.graphs) == list(DATA.graphs)
    assert {len(a) for a in DATA.graphs.alternatives} == {2}
    answers = [" ".join(g.claims) for g in DATA.graphs]
    same = [
        text in others
        for text, others in zip(answers, DATA.graphs.alternatives, strict=True)
    ]
    assert 0.5 < np.mean(same) < 0.95


def test_the_built_in_features_learn_from_them():
    X = reasoning_features().fit_transform(DATA.graphs)
    cf = HardCF(random_state=0).fit(X[:150], DATA.labels[:150])
    report = leave_one_out(cf, X[150:], DATA.labels[150:], alphas=[0.1])
    blind = leave_one_out(
        HardCF(lambda batch: np.zeros(batch.n_claims)).fit(X[:150], DATA.labels[:150]),
        X[150:],
        DATA.labels[150:],
        alphas=[0.1],
    )
    assert blind.retention[0] == 0
    assert 2.5 < report.retention[0] < 4.5


@pytest.mark.parametrize(
    ("name", "value"), [("n_problems", 0), ("n_problems", 2.5), ("n_alternatives", -1)]
)
def test_bad_numbers_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} .*{value}"):
        make_word_problems(**{name: value})


def test_return_x_y():
    graphs, labels = make_word_problems(2, n_alternatives=0, return_X_y=True)
    assert len(graphs) == len(labels) == 2
