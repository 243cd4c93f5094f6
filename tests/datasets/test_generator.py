"""Generated problems: their statistics, their graph metrics, and labels by another calculation."""

import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.ops.graph_metrics import PAPER_METRICS

# What the study behind the generator realised: claims and edges per problem, share of
# clean problems, AUC of the frequency for true claims.
REALISED = {"math": (7.4, 7.2, 0.817, 0.61), "felm": (4.15, 2.8, 0.623, 0.85)}


@pytest.mark.parametrize("kind", REALISED)
def test_statistics_of_the_study(kind):
    n = 6000
    data = make_reasoning_graphs(n, kind, random_state=0)
    claims, edges, clean, auc = REALISED[kind]
    batch, true = data.graphs, np.concatenate(data.labels)
    assert batch.n_claims / n == pytest.approx(claims, rel=0.025)
    assert len(batch.edges) / n == pytest.approx(edges, rel=0.03)
    share = np.mean([labels.all() for labels in data.labels])
    assert share == pytest.approx(clean, abs=3 * np.sqrt(clean * (1 - clean) / n))
    frequency = batch.features[:, data.feature_names.index("frequency-score")]
    assert roc_auc_score(true, frequency) == pytest.approx(auc, abs=0.02)
    assert (batch.edges[:, 0] < batch.edges[:, 1]).all()
    assert set(np.bincount(batch.edges[:, 1], minlength=len(true))) == {0, 1, 2, 3}


@pytest.mark.parametrize(("kind", "n_domains"), [("math", 12), ("felm", 2)])
def test_columns(kind, n_domains):
    data = make_reasoning_graphs(40, kind, random_state=3)
    names = data.feature_names
    assert names[:3] == ["frequency-score", "claim_index", "coherent_to_ancestors"]
    assert names[-10:] == list(PAPER_METRICS) and len(names) == 19 + n_domains


@pytest.mark.parametrize("make", [make_reasoning_graphs, make_word_problems])
def test_arguments(make):
    a, b, c = (make(30, random_state=seed) for seed in (7, 7, 8))
    assert list(a.graphs) == list(b.graphs) != list(c.graphs)
    graphs, labels = make(1, random_state=np.random.RandomState(7), return_X_y=True)
    assert [len(y) for y in labels] == graphs.sizes.tolist()
    for n in (0, True):
        with pytest.raises(ValueError, match=f"n_problems .*{n}"):
            make(n)
    with pytest.raises(ValueError, match=r"kind .*'maths'|n_alternatives .*-1"):
        make(5, "maths") if make is make_reasoning_graphs else make(
            5, n_alternatives=-1
        )


# --- word problems ----------------------------------------------------------------------

DATA = make_word_problems(300, random_state=3)
EQUATION = re.compile(r"(-?\d+) ([+*-]) (-?\d+) = (-?\d+)")


def equation_of(claim):
    left, sign, right, result = EQUATION.search(claim).groups()
    return int(left), sign, int(right), int(result)


def test_word_problems():
    """True claims hold and use numbers of the question or of their parents."""
    n_clean = 0
    for graph, labels in zip(DATA.graphs, DATA.labels, strict=True):
        given = {int(n) for n in re.findall(r"\d+", graph.problem)}
        equations = [equation_of(claim) for claim in graph.claims[:-1]]
        for v, (left, sign, right, result) in enumerate(equations):
            parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
            used = {equations[u][-1] for u in parents}
            assert used <= {left, right}
            if labels[v]:
                expected = {"+": left + right, "-": left - right, "*": left * right}
                assert result == expected[sign]
            if labels.all():
                assert {left, right} <= given | used
        assert graph.claims[-1] == f"The answer is {equations[-1][-1]}."
        assert labels[-1] == labels[-2]
        n_clean += labels.all()
    assert 150 < n_clean < 270
    answers = [" ".join(graph.claims) for graph in DATA.graphs]
    is_same = [a in b for a, b in zip(answers, DATA.graphs.alternatives, strict=True)]
    assert 0.5 < np.mean(is_same) < 0.95
