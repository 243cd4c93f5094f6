"""What other tools write becomes graphs, with the right polarity and nothing lost."""

import json
import math
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF
from skdcf.adapters import (
    from_lm_polygraph,
    from_uqlm,
)
from skdcf.datasets import read_jsonl, write_jsonl
from skdcf.edges import chain_edges

# --- UQLM: the structures of its long-text and its graph scorers -----------------------

LONG_TEXT = [
    [
        {"claim": "Ada was born in 1815.", "removed": False, "entailment": 0.97},
        {"claim": "She wrote a program.", "removed": False, "entailment": 0.8},
        {"claim": "She flew to Mars.", "removed": True, "entailment": 0.02},
    ],
    [{"sentence": "Paris is in France.", "removed": False, "entailment": 1.0}],
]


def graph_claim(text, original, **scores):
    kept = {"claim": text, "original_response": original, "scorer_type": "graphuq"}
    return kept | scores | {"removed": False}


GRAPH_SCORES = [
    [
        graph_claim("a", True, closeness_centrality=0.9, page_rank=0.3),
        graph_claim("only in a sample", False, closeness_centrality=0.1, page_rank=0.1),
        graph_claim("b", True, closeness_centrality=0.4, page_rank=math.nan),
    ],
    [graph_claim("only in a sample", False, closeness_centrality=0.2, page_rank=0.2)],
]


def test_uqlm_long_text():
    data = from_uqlm(LONG_TEXT, problems=["Ada?", "Paris?"], edges=chain_edges)
    first, second = data.graphs
    assert first.claims == tuple(claim["claim"] for claim in LONG_TEXT[0])
    assert first.features.tolist() == [[0.97], [0.8], [0.02]]  # higher: more confident
    assert first.feature_names == ("entailment",)  # and not "removed"
    assert first.edges.tolist() == [[0, 1], [1, 2]]
    assert (first.problem, first.id) == ("Ada?", "uqlm/0")
    assert second.claims == ("Paris is in France.",)
    assert data.labels is None


def test_uqlm_leaves_out_claims_of_other_responses():
    edges = [[(0, 1)], []]
    data = from_uqlm(GRAPH_SCORES, edges=edges, missing="median", labels=[[1, 0], []])
    first, second = data.graphs
    assert first.claims == ("a", "b")
    assert first.edges.tolist() == [[0, 1]]
    assert first.features.tolist() == [[0.9, 0.3], [0.4, 0.3]]
    assert second.n_claims == 0
    assert [y.tolist() for y in data.labels] == [[1, 0], []]


@pytest.mark.parametrize(
    ("missing", "expected"), [("mean", 0.3), ("median", 0.3), (0, 0.0), (-1.5, -1.5)]
)
def test_uqlm_missing_scores(missing, expected):
    features = from_uqlm(GRAPH_SCORES, missing=missing).graphs.features
    assert features[1, 1] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"1 of 'page_rank'.*at problem 0, claim 1"):
        from_uqlm(GRAPH_SCORES)
    chosen = from_uqlm(GRAPH_SCORES, scorers=["closeness_centrality"]).graphs
    assert chosen.features.tolist() == [[0.9], [0.4]]


def test_uqlm_absent_scores_are_missing():
    claims = [[{"claim": "a", "x": 1.0}, {"claim": "b", "x": None}, {"claim": "c"}]]
    features = from_uqlm(claims, missing="mean").graphs.features
    assert features.tolist() == [[1.0]] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [[1, 0, 1]]}, "lists of labels must .*2"),
        ({"labels": [[1, 0], [1]]}, r"0.*3.*2"),
        (
            {"labels": [[1, 0, 2], [1]]},
            r"uqlm/0.*: labels\[2\] must be .* 2",
        ),
        ({"problems": ["?"]}, "problems must .*2"),
        ({"labels": [[1, 0, math.nan], [1]]}, r"labels\[2\] must be .* nan"),
        ({"edges": [[]]}, "lists of edges must .*2"),
        ({"edges": "chain"}, "lists of edges must be a list .*'chain'"),
        ({"missing": "zero"}, "missing .*'zero'"),
        ({"missing": math.inf}, "missing .*inf"),
        ({"missing": None}, "missing .*None"),
        ({"scorers": ["entailed"]}, r"'entailed'.*'ent"),
    ],
)
def test_uqlm_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        from_uqlm(LONG_TEXT, **change)


def test_uqlm_other_structures():
    with pytest.raises(ValueError, match=r"keys .*'claim', 'sentence'"):
        from_uqlm([[{"text": "a", "entailment": 1.0}]])
    with pytest.raises(ValueError, match="score"):
        from_uqlm([[{"claim": "a"}]])
    with pytest.raises(ValueError, match=r"problem 0, claim 1: 'x' .*'high'"):
        from_uqlm([[{"claim": "a", "x": 1.0}, {"claim": "b", "x": "high"}]])


class UQResult:
    """As in uqlm.utils.results: it takes the prompts out of the dict that it is given."""

    def __init__(self, result):
        data = result.get("data")
        if "prompts" in data:
            prompts = data.pop("prompts")
            data = {"prompts": prompts, **data}
        self.data = data
        self.metadata = result.get("metadata")
        self.result_dict = result

    def to_dict(self):
        return self.result_dict


def uqlm_data():
    data = {"prompts": ["Ada?", "Paris?"], "responses": ["...", "..."]}
    return data | {"entailment": [0.6, 1.0], "claims_data": LONG_TEXT}


def test_uqlm_results_as_they_come():
    expected = list(from_uqlm(LONG_TEXT, problems=["Ada?", "Paris?"]).graphs)
    for result in (UQResult({"data": uqlm_data()}), {"data": uqlm_data()}, uqlm_data()):
        assert list(from_uqlm(result).graphs) == expected
        mine = from_uqlm(result, problems=["Who?", "Where?"]).graphs
        assert mine.problems.tolist() == ["Who?", "Where?"]
    saved = UQResult({"data": uqlm_data()}).to_dict()  # without the prompts
    assert from_uqlm(saved).graphs.problems is None
    of_qa = uqlm_data() | {"prompts": [None, None]}
    assert from_uqlm(of_qa).graphs.problems is None


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"data": {"responses": []}}, r"'claims_data'.* \['responses'\]"),
        (UQResult({"data": {"judge_1": [0.5]}}), "'claims_data'.*LongTextUQ"),
        ("claims.json", "result must be .*a str"),
        (None, "result .*NoneType"),
        (LONG_TEXT[0], "problem 0 must be a list of claims.*dict"),
        ([["a"]], "problem 0, claim 0 .*'a'"),
        ([[{"claim": "a", "x": 0.5}, {"claim": "b", "x": 10**400}]],
         "problem 0, claim 1: 'x'.*too large"),
        ([[{"claim": "a", "x": 0.5}, {"claim": "b", "x": True}]],
         "problem 0, claim 1: 'x' .*True"),
    ],
)  # fmt: skip
def test_uqlm_results_of_other_kinds(result, message):
    with pytest.raises(ValueError, match=message):
        from_uqlm(result)


def test_uqlm_samples_are_alternatives():
    data = uqlm_data() | {"sampled_responses": [["a", "b"], []]}
    assert list(from_uqlm(data).graphs.alternatives) == [("a", "b"), ()]
    mine = from_uqlm(data, alternatives=[None, ["c"]]).graphs
    assert list(mine.alternatives) == [None, ("c",)]
    with pytest.raises(ValueError, match=r"alternatives.*2"):
        from_uqlm(data, alternatives=[["c"]])


def test_uqlm_unknown_labels():
    labels = [[1, -1, False], [-1]]
    assert [y.tolist() for y in from_uqlm(LONG_TEXT, labels=labels).labels] == [
        [1, -1, 0],
        [-1],
    ]


@pytest.mark.parametrize("origin", [None, math.nan, True, 1.0])
def test_uqlm_claims_of_unknown_origin_are_part_of_the_answer(origin):
    claims = [{"claim": "a", "x": 1.0, "original_response": origin}]
    claims += [{"claim": "b", "x": 0.5}]
    claims += [{"claim": "c", "x": 0.0, "original_response": False}]
    graph = from_uqlm([claims]).graphs[0]
    assert graph.claims == ("a", "b")
    assert graph.feature_names == ("x",)


@pytest.mark.parametrize("name", ["label", "annotation", "Correct", "claim_idx", "Id"])
def test_uqlm_labels_and_positions_are_no_scores(name):
    claims = [[{"claim": "a", name: 1, "x": 0.5}, {"claim": "b", name: 0, "x": 0.25}]]
    assert from_uqlm(claims).graphs.feature_names == ("x",)
    asked_for = from_uqlm(claims, scorers=[name, "x"]).graphs
    assert asked_for.features.tolist() == [[1.0, 0.5], [0.0, 0.25]]


# --- LM-Polygraph: Claim objects beside flat estimates -----------------------------------


@dataclass
class Claim:
    """As in lm_polygraph.stat_calculators.extract_claims."""

    claim_text: str
    sentence: str
    aligned_token_ids: list[int]


CLAIMS = [
    [Claim("a", "a b.", [0]), Claim("b", "a b.", [1])],
    [],
    [Claim("c", "c.", [0])],
]
ESTIMATES = {
    ("claim", "MaximumClaimProbability"): [0.1, 7.5, 2.0],
    ("claim", "PTrueClaim"): [-0.9, -0.2, -0.5],
    ("sequence", "Perplexity"): [1.0, 2.0, 3.0],
}


def test_lm_polygraph_polarity():
    """Uncertain is high there and label 1 is false; here it is the other way round."""
    labels = [0, 1, 0]
    data = from_lm_polygraph(CLAIMS, ESTIMATES, labels=labels)
    assert data.graphs.feature_names == (
        "neg_MaximumClaimProbability",
        "neg_PTrueClaim",
    )
    assert data.graphs.features.tolist() == [[-0.1, 0.9], [-7.5, 0.2], [-2.0, 0.5]]
    assert [y.tolist() for y in data.labels] == [[1, 0], [], [1]]
    assert [graph.n_claims for graph in data.graphs] == [2, 0, 1]
    assert data.graphs[0].claims == ("a", "b")


def test_lm_polygraph_nested_lists_are_the_same():
    nested = {"Max": [[0.1, 7.5], [], [2.0]]}
    flat = {"Max": [0.1, 7.5, 2.0]}
    a = from_lm_polygraph(CLAIMS, nested, labels=[[0, 1], [], [0]])
    b = from_lm_polygraph(CLAIMS, flat, labels=np.array([0, 1, 0.0]))
    assert list(a.graphs) == list(b.graphs)
    assert all((x == y).all() for x, y in zip(a.labels, b.labels, strict=True))


def test_lm_polygraph_undecided_claims():
    labels = [0, math.nan, 0]
    data = from_lm_polygraph(CLAIMS, ESTIMATES, labels=labels, edges=chain_edges)
    assert [y.tolist() for y in data.labels] == [[1, -1], [], [1]]


def test_lm_polygraph_missing_estimates():
    estimates = {"Max": [0.1, math.nan, 2.1]}
    with pytest.raises(ValueError, match=r"1 of 'neg_Max'.*at problem 0, claim 1"):
        from_lm_polygraph(CLAIMS, estimates)
    data = from_lm_polygraph(CLAIMS, estimates, missing="mean")
    np.testing.assert_allclose(data.graphs.features.ravel(), [-0.1, -1.1, -2.1])
    with pytest.raises(ValueError, match=r"'neg_Max'.*finite"):
        from_lm_polygraph(CLAIMS, {"Max": [math.nan] * 3}, missing="median")


@pytest.mark.parametrize(
    ("estimates", "labels", "message"),
    [
        ({"Max": [1.0, 2.0]}, None, "Max .* 3 claims, got 2"),
        ({"Max": [[1.0], [], [2.0, 3.0]]}, None, "problem 0 .*Max .* 2 claims, got 1"),
        ({("sequence", "P"): [1.0]}, None, r"claim-level.*sequence"),
        ({"Max": [1.0, 2.0, 3.0]}, [0, 1], "labels .* 3 claims, got 2"),
        ({"Max": [1.0, 2.0, 3.0]}, [0, 1, 5], "problem 2, claim 0: .*verdict .*5.0"),
        ({"Max": [1.0, "x", 3.0]}, None, "problem 0, claim 1: 'Max' .*'x'"),
        ({"Max": [1.0, 2.0, -(10**400)]}, None, "problem 2, claim 0: .*too large"),
        ([1.0, 2.0, 3.0], None, "estimates must be .*manager.estimations"),
        ({("claim", "X"): [1.0] * 3, "X": [2.0] * 3}, None, '"X" and'),
    ],
)
def test_lm_polygraph_bad_input(estimates, labels, message):
    with pytest.raises(ValueError, match=message):
        from_lm_polygraph(CLAIMS, estimates, labels=labels)


def test_lm_polygraph_fact_checks_as_the_manager_keeps_them():
    """gen_metrics is keyed by level and name, as the estimates are."""
    labels = [0, math.nan, 1]
    metrics = {("claim", "OpenAIFactCheck"): labels, ("sequence", "Rouge"): [0.5, 0.1]}
    data = from_lm_polygraph(CLAIMS, ESTIMATES, labels=metrics)
    assert [y.tolist() for y in data.labels] == [[1, -1], [], [0]]
    with pytest.raises(ValueError, match=r"labels .*\['OpenAIFactCheck', 'Mine'\]"):
        from_lm_polygraph(
            CLAIMS, ESTIMATES, labels=metrics | {("claim", "Mine"): labels}
        )
    del metrics["claim", "OpenAIFactCheck"]
    with pytest.raises(ValueError, match=r"labels .*claim-level"):
        from_lm_polygraph(CLAIMS, ESTIMATES, labels=metrics)


@pytest.mark.parametrize(
    "claims", [[], "claims", None, [["a"], [], ["b"]], [Claim("a", "a.", [0])]]
)
def test_lm_polygraph_says_how_to_get_claims(claims):
    """Without save_stats the manager's stats["claims"] is an empty list."""
    with pytest.raises(ValueError, match=r'save_stats=\["claims"\]'):
        from_lm_polygraph(claims, ESTIMATES)


@pytest.mark.parametrize(
    ("missing", "filled"), [("median", -2.0), ("mean", -3.0), (-9, -9.0)]
)
def test_lm_polygraph_infinite_estimates(missing, filled):
    claims = [[Claim(name, "", []) for name in "abcdef"]]
    estimates = {
        "Max": [1.0, math.inf, 2.0, 6.0, -math.inf, math.nan],
        "Fine": [0.5] * 6,
    }
    with pytest.raises(ValueError, match=r"3 of 'neg_Max'.*problem 0, claim 1"):
        from_lm_polygraph(claims, estimates)
    features = from_lm_polygraph(claims, estimates, missing=missing).graphs.features
    assert features[:, 0].tolist() == [-1.0, filled, -2.0, -6.0, filled, filled]
    assert features[:, 1].tolist() == [-0.5] * 6


# --- all together ---------------------------------------------------------------------------


@pytest.mark.long
def test_adapters_import_nothing_of_the_tools():
    """In a process of its own: other tests load packages that load torch, say."""
    code = "import sys, skdcf.adapters; print(*{m.split('.')[0] for m in sys.modules})"
    names = set(
        subprocess.check_output([sys.executable, "-c", code], text=True).split()
    )
    assert "numpy" in names
    assert names.isdisjoint({"uqlm", "lm_polygraph", "torch", "langchain"})


def test_what_an_adapter_gives_can_be_filtered():
    rng = np.random.default_rng(0)
    claims = [[Claim(str(v), "", []) for v in range(4)] for _ in range(60)]
    wrong = rng.random(240) < 0.2
    estimates = {"Max": rng.random(240) + wrong}
    data = from_lm_polygraph(claims, estimates, labels=wrong.astype(float))
    assert isinstance(data.graphs, GraphBatch)
    cf = HardCF("neg_Max", alpha=0.2, edges="none").fit(
        data.graphs, data.labels, groups=False
    )
    kept = np.stack(list(cf.predict(data.graphs)))
    wrong = wrong.reshape(kept.shape)
    assert 0.1 < (kept & wrong).any(axis=1).mean() <= 0.2
    assert kept[~wrong].mean() > 0.9


# --- every optional key, through every adapter ----------------------------------------------

METADATA = {
    "model": "writer",
    "ticket": {"number": 7},
    "own_keys": ["ticket"],
}
GIVEN = {
    "problems": ["Why?", None],
    "alternatives": [["x", "y"], []],
    "context": ["one passage", None],
    "groups": ["g", 7],
    "metadata": [METADATA, None],
    "edges": [[(0, 1)], None],
}


def check_given(data):
    """Nothing is lost: what was given is in the graphs, and beside them."""
    first, second = data["graphs"]
    assert (first.problem, second.problem) == ("Why?", None)
    assert (first.alternatives, second.alternatives) == (("x", "y"), ())
    assert (first.context, second.context) == (("one passage",), None)
    assert first.edges.tolist() == [[0, 1]]
    assert (first.edges_known, second.edges_known) == (True, False)
    assert first.metadata == METADATA | {"group": "g"}
    assert second.metadata["group"] == 7
    assert data["groups"].tolist() == ["g", 7]
    assert data["metadata"] == [first.metadata, second.metadata]


def made_by(adapter):
    texts = [["a", "b"], ["c"]]
    if adapter == "uqlm":
        claims = [[{"claim": t, "p": 0.5} for t in row] for row in texts]
        return from_uqlm(claims, labels=[[1, 0], [-1]], **GIVEN)
    claims = [[Claim(t, t, [0]) for t in row] for row in texts]
    return from_lm_polygraph(
        claims, {"Max": [1, 2, 3]}, labels=[0, 1, math.nan], **GIVEN
    )


@pytest.mark.parametrize("adapter", ["uqlm", "lm_polygraph"])
def test_all_that_is_given_survives(adapter, tmp_path):
    data = made_by(adapter)
    check_given(data)
    path = write_jsonl(tmp_path / "a.jsonl", data.graphs, data.labels)
    check_given(read_jsonl(path))
    assert json.loads(path.read_text().splitlines()[0])["ticket"] == {"number": 7}


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match=r"unexpected.*'group'"):
        from_uqlm(LONG_TEXT, group=["a", "b"])
