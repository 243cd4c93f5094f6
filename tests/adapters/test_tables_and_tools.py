"""What other tools write becomes graphs, with the right polarity and nothing lost."""

import json
import math
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.adapters import (
    from_frame,
    from_lm_polygraph,
    from_uqlm,
    from_verdicts,
    to_frame,
)
from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl
from skdcf.edges import chain_edges, no_edges
from skdcf.features import TextFeatures

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
            r"uqlm/0.*: labels must be .*, but labels\[2\] is 2",
        ),
        ({"problems": ["?"]}, "problems must .*2"),
        ({"labels": [[1, 0, math.nan], [1]]}, r"and -1 .*, but labels\[2\] is nan"),
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


def test_lists_of_parents_survive_a_file():
    """What pandas writes of a list, and columns that are no features."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "problem": ["p"] * 3,
            "parents": ["[]", "[0]", "[0, 1]"],
            "score": [0.5, 0.2, 0.1],
            "Unnamed: 0": [0, 1, 2],
            "is_true": [True, False, True],
        }
    )
    (graph,) = from_frame(frame, label=None).graphs
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.feature_names == ("score",)


def test_columns_of_a_frame_under_other_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "problem": ["p"] * 2,
            "number": [1, 0],
            "said": ["second", "first"],
            "asked": ["Why?"] * 2,
            "about": ['{"source": "x"}'] * 2,
            "parents": ["[0]", "[]"],
        }
    )
    names = {
        "claim": "number",
        "text": "said",
        "question": "asked",
        "metadata": "about",
    }
    (graph,) = from_frame(frame, features=[], **names).graphs
    assert graph.claims == ("first", "second") and graph.problem == "Why?"
    assert graph.metadata == {"source": "x"}


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


# --- frames -----------------------------------------------------------------------------


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    return pytest.importorskip(request.param)


def test_frame_round_trip(library):
    graphs, labels = make_reasoning_graphs(40, random_state=1, return_X_y=True)
    frame = to_frame(graphs, labels, backend=library.__name__)
    assert isinstance(frame, library.DataFrame)
    assert frame.shape == (graphs.n_claims, 4 + graphs.n_features)
    data = from_frame(frame)
    assert [g.replace(id=None) for g in data.graphs] == list(graphs)
    assert all((a == b).all() for a, b in zip(data.labels, labels, strict=True))


def text_graphs():
    """Texts, ids, and a parent that comes after its child."""
    first = ReasoningGraph(
        [[1.0, 0.0], [2.5, 1.0], [0.0, 0.0]],
        [(2, 0), (0, 1), (2, 1)],
        claims=["$x$", "", "שלום 🧮"],
        problem="Why?",
        feature_names=["score", "flag"],
        id="p-1",
    )
    return [first, first.replace(id="p-2", problem="How?", edges=[])]


def test_frame_with_texts(library):
    frame = to_frame(text_graphs(), backend=library.__name__)
    assert list(frame["parents"]) == ["2", "0 2", "", "", "", ""]
    data = from_frame(frame)
    assert list(data.graphs) == text_graphs()
    assert data.labels is None


def test_frame_rows_in_any_order(library):
    graphs, labels = make_reasoning_graphs(20, random_state=2, return_X_y=True)
    frame = to_frame(graphs, labels, backend=library.__name__)
    order = np.random.default_rng(0).permutation(len(frame))
    frame = frame.iloc[order] if library.__name__ == "pandas" else frame[order]
    data = from_frame(frame)
    found = {
        g.id: (g.replace(id=None), y)
        for g, y in zip(data.graphs, data.labels, strict=True)
    }
    for i, (graph, y) in enumerate(zip(graphs, labels, strict=True)):
        assert found[i][0] == graph
        assert found[i][1].tolist() == y.tolist()


def test_frame_through_a_csv_file(library, tmp_path):
    path = str(tmp_path / "a.csv")
    frame = to_frame(text_graphs(), [[1, 0, 1], [0, 0, 0]], backend=library.__name__)
    if library.__name__ == "pandas":
        frame.to_csv(path, index=False)
    else:
        frame.write_csv(path)
    back = library.read_csv(path)
    data = from_frame(back, text=None)  # an empty text reads as missing
    for graph, expected in zip(data.graphs, text_graphs(), strict=True):
        assert graph == expected.replace(claims=None)
    assert [y.tolist() for y in data.labels] == [[1, 0, 1], [0, 0, 0]]


def test_frame_columns_of_the_caller(library):
    frame = library.DataFrame(
        {
            "q": ["b", "a", "b"],
            "sentence": ["s0", "s1", "s2"],
            "true": [True, False, True],
            "p": [0.5, 0.25, 1.0],
            "other": [1, 2, 3],
        }
    )
    data = from_frame(
        frame,
        features=["p"],
        problem="q",
        text="sentence",
        label="true",
        edges=chain_edges,
    )
    assert list(data.graphs.ids) == ["b", "a"]
    assert data.graphs[0].claims == ("s0", "s2")
    assert data.graphs[0].edges.tolist() == [[0, 1]]
    assert data.graphs.feature_names == ("p",)
    assert [y.tolist() for y in data.labels] == [[1, 1], [0]]


def test_frame_lists_of_parents(library):
    parents = [[], [0], [0, 1]]
    frame = library.DataFrame(
        {"problem": [1, 1, 1], "x": [1, 2, 3], "parents": parents}
    )
    edges = from_frame(frame).graphs.edges.tolist()
    assert edges == [[0, 1], [0, 2], [1, 2]]


def test_frame_of_chains_through_a_csv_file(library, tmp_path):
    """Single parents come back as numbers."""
    path = tmp_path / "a.csv"
    path.write_text("problem,parents,x\n1,,0.5\n1,0,0.25\n2,,1.0\n")
    data = from_frame(library.read_csv(str(path)))
    assert data.graphs.edges.tolist() == [[0, 1]]


def test_frame_missing_features(library):
    frame = library.DataFrame({"problem": [1, 1, 2], "x": [1.0, None, 3.0]})
    with pytest.raises(ValueError, match=r"1 of 'x'.*row 1"):
        from_frame(frame)
    data = from_frame(frame, missing="mean")
    assert data.graphs.features.ravel().tolist() == [1.0, 2.0, 3.0]


def some_unknown():
    """Not every problem has a question and texts."""
    graph = ReasoningGraph([[1.0]], [], claims=["3"], problem="q", id="a")
    return [
        graph,
        graph.replace(problem=None, id="b"),
        graph.replace(claims=None, id="c"),
    ]


def test_frame_questions_and_texts_that_are_not_known(library, tmp_path):
    """Not NaN: that is no text, and unlike itself."""
    graphs = some_unknown()
    data = from_frame(to_frame(graphs, backend=library.__name__))
    assert [g.replace(feature_names=None) for g in data.graphs] == graphs
    write_jsonl(tmp_path / "a.jsonl", data.graphs)
    assert list(read_jsonl(tmp_path / "a.jsonl").graphs) == list(data.graphs)
    bare = [g.replace(features=None) for g in graphs[:2]]
    found = from_frame(to_frame(bare, backend=library.__name__)).graphs
    expected, made = (TextFeatures().fit_transform(x) for x in (bare, found))
    assert np.array_equal(expected.features, made.features)


@pytest.mark.parametrize("nothing", ["None", "nan", "NA", "NaT"])
def test_frame_all_kinds_of_nothing(nothing):
    pd = pytest.importorskip("pandas")
    nothing = {"None": None, "nan": math.nan, "NA": pd.NA, "NaT": pd.NaT}[nothing]
    columns = {"problem": ["a", "b", "b"], "text": [nothing, "s", "t"], "x": [1.0] * 3}
    columns |= {"question": [nothing, "q", "q"], "parents": [nothing, nothing, 0]}
    frame = pd.DataFrame(columns, dtype=object).astype({"x": float})
    graphs = from_frame(frame).graphs
    assert [g.claims for g in graphs] == [None, ("s", "t")]
    assert [g.problem for g in graphs] == [None, "q"]
    assert graphs.edges.tolist() == [[1, 2]]


def test_frame_alternatives(library, tmp_path):
    others = [("one, two", 'a "b" é\n'), (), None, ("x",)]
    graphs = [
        text_graphs()[0].replace(id=i, alternatives=t) for i, t in enumerate(others)
    ]
    frame = to_frame(graphs, backend=library.__name__)
    assert list(from_frame(frame).graphs) == graphs
    frame = to_frame([graph.subgraph(np.arange(3) != 1) for graph in graphs])
    frame.to_csv(tmp_path / "a.csv", index=False)
    read = pytest.importorskip("pandas").read_csv(tmp_path / "a.csv")
    assert list(from_frame(read).graphs.alternatives) == others
    assert from_frame(frame, alternatives=None).graphs.alternatives is None
    lists = library.DataFrame({"problem": [0], "x": [1.0], "alternatives": [["a"]]})
    assert from_frame(lists).graphs[0].alternatives == ("a",)
    for wrong in ("one answer", '"one answer"', "[1]"):
        lists = library.DataFrame({"problem": [0], "x": [1.0], "others": [wrong]})
        with pytest.raises(
            ValueError, match=r'"0": alternatives must be a list of texts, but'
        ):
            from_frame(lists, alternatives="others")


def test_frame_rows_without_problem(library):
    """Pooled or split, such rows would pass for problems."""
    frame = {"problem": ["a", None, None, "b"], "x": [1.0] * 4}
    with pytest.raises(ValueError, match=r"rows \[1, 2\] .*'problem'"):
        from_frame(library.DataFrame(frame))
    frame["problem"] = [0.0, math.nan, 1.0, math.nan]
    with pytest.raises(ValueError, match=r"rows \[1, 3\] .*'problem'"):
        from_frame(library.DataFrame(frame))
    frame = library.DataFrame({"problem": [None] * 11, "x": [1.0] * 11})
    with pytest.raises(ValueError, match=r"8, 9.*'problem'"):
        from_frame(frame)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "string", "object"])
def test_frame_nullable_types(dtype):
    pd = pytest.importorskip("pandas")
    parents = [None, "0", "1"] if dtype == "string" else [None, 0, 1]
    columns = {"problem": [1] * 3, "x": pd.array([1, 2, 3], "Int64")}
    frame = pd.DataFrame(columns | {"parents": pd.array(parents, dtype)})
    assert from_frame(frame).graphs.edges.tolist() == [[0, 1], [1, 2]]


def test_frame_converted_types():
    pytest.importorskip("pandas")
    graphs, labels = make_reasoning_graphs(20, random_state=3, return_X_y=True)
    data = from_frame(to_frame(graphs, labels).convert_dtypes())
    assert [g.replace(id=None) for g in data.graphs] == list(graphs)
    assert all((a == b).all() for a, b in zip(data.labels, labels, strict=True))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("label", [1, 0, 2], r'"1": .* and -1 .*, but labels\[1\] is 2'),
        (
            "label",
            ["maybe", "0", "1"],
            r"""\"1": labels .*, but labels\[0\] is 'maybe'""",
        ),
        ("claim", [0, None, 0], "row 1: claim .*None"),
        ("claim", [0, 0.5, 0], "row 1: claim .*0.5"),
        ("parents", [None, None, 0.5], "row 2: a parent .*0.5"),
        ("parents", [None, 1.9, None], "row 1: a parent .*1.9"),
        ("parents", ["", "", "x"], "row 2: a parent .*'x'"),
        ("parents", [[], [], [0, None]], "row 2: a parent .*None"),
        ("text", ["a", "b", None], r'"1": claims must .* claims\[1\] is None'),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "object", "nullable", "polars"])
def test_frame_rows_are_blamed_by_their_place(kind, name, values, message):
    """The middle row is a problem of its own, so that rows have to move."""
    library = pytest.importorskip("polars" if kind == "polars" else "pandas")
    options = {"polars": {"strict": False}, "object": {"dtype": object}}.get(kind, {})
    given = (name, values) if kind == "polars" else (values,)
    column = library.Series(*given, **options)
    frame = library.DataFrame({"problem": [1, 2, 1], "x": [1.0] * 3, name: column})
    if kind == "nullable":
        frame = frame.convert_dtypes()
    with pytest.raises(ValueError, match=message):
        from_frame(frame)


def test_frame_guessed_edges_need_all_texts(library):
    frame = to_frame(some_unknown(), backend=library.__name__)
    with pytest.raises(ValueError, match=r'"c": .* text'):
        from_frame(frame, edges=chain_edges)
    with pytest.raises(ValueError, match=r'problem "c".*claims.*features'):
        from_frame(frame, features=[])


def test_frame_labels_are_no_features(library):
    columns = {"problem": [1, 1], "x": [0.5, 0.25], "gold": [1, 0], "label": [1, 0]}
    columns |= {"Annotation": [1.0, 0.0], "claim_idx": [3, 4], "removed": [False, True]}
    frame = library.DataFrame(columns)
    for label in ("gold", "label", None):
        data = from_frame(frame, label=label)
        assert data.graphs.feature_names == ("x",)
        assert (data.labels is None) == (label is None)
    asked_for = from_frame(frame, features=["claim_idx"], label="gold").graphs
    assert asked_for.features.tolist() == [[3.0], [4.0]]
    with pytest.raises(ValueError, match=r"'gold'.*labels"):
        from_frame(frame, features=["x", "gold"], label="gold")


def test_frame_of_a_bootstrap(library):
    batch = GraphBatch.from_graphs(text_graphs())
    with pytest.raises(ValueError, match=r"problems 0 and 2 .*'p-1'"):
        to_frame(batch[[0, 1, 0]], backend=library.__name__)
    numbered = [g.replace(id=None) for g in batch[[0, 1, 0]]]
    back = from_frame(to_frame(numbered, backend=library.__name__)).graphs
    assert [g.replace(id=None) for g in back] == numbered


def test_frame_of_numpy_scalars(library):
    batch = GraphBatch.from_arrays(
        None,
        [0, 1, 2],
        claims=np.array(["a", "b"]),
        problems=np.array(["p", "q"]),
        ids=np.arange(2),
    )
    back = from_frame(to_frame(batch, backend=library.__name__)).graphs
    assert list(back) == list(batch)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"p": [1]}, {}, "column 'problem'"),
        (
            {"problem": [1], "x": [1]},
            {"parents": "deps"},
            "column 'deps' .*'parents'",
        ),
        ({"problem": [1], "x": [1]}, {"label": "gold"}, "column 'gold' .*'label'"),
        ({"problem": [1], "x": [1]}, {"features": "x"}, "features .*'x'"),
        ({"problem": [1], "x": ["a"]}, {"features": ["x"]}, "'x'.* numeric"),
        ({"problem": [1], "x": [1]}, {"edges": "chain"}, "edges .*'chain'"),
        ({"problem": [], "x": []}, {}, "table.*row"),
        ({"problem": [1], "x": [1]}, {"features": ["y"]}, r"columns \['y'\]"),
        ({"problem": [1, 1], "claim": [0, 2], "x": [1, 2]}, {}, "2 instead of 1"),
        (
            {"problem": [1], "parents": ["1"], "x": [1]},
            {},
            r'"1": edge \(1, 0\) is out of range',
        ),
        ({"problem": [1], "label": [2], "x": [1]}, {}, r"labels\[0\] is 2"),
        ({"problem": [1], "x": [1]}, {"edges": chain_edges}, "edges=no_edges"),
    ],
)
def test_frame_bad_input(library, columns, options, message):
    with pytest.raises(ValueError, match=message):
        from_frame(library.DataFrame(columns), **options)


def test_frame_without_edges(library):
    """Silently, for that is a choice; a column that the caller names must be there."""
    columns = {"problem": [1, 1], "parents": ["", "0"], "x": [0.5, 0.25]}
    frame = library.DataFrame(columns)
    assert len(from_frame(frame).graphs.edges) == 1
    assert len(from_frame(frame, edges=no_edges).graphs.edges) == 0  # needs no texts
    assert len(from_frame(frame, parents=None).graphs.edges) == 0


def test_frame_unknown_labels(library):
    graphs = text_graphs()
    labels = [[1, 0, -1], [-1, True, False]]
    frame = to_frame(graphs, labels, backend=library.__name__)
    assert frame["label"].to_list() == [1, 0, -1, -1, 1, 0]
    assert [y.tolist() for y in from_frame(frame).labels] == [[1, 0, -1], [-1, 1, 0]]
    flat = to_frame(GraphBatch.from_graphs(graphs), np.array([1, 0, -1, -1, 1, 0]))
    assert flat["label"].to_list() == [1, 0, -1, -1, 1, 0]
    with pytest.raises(ValueError, match=r"1.*2.*0"):
        to_frame(graphs, [[1, 0, -1], [2, 1, 0]])


@pytest.mark.parametrize("kind", ["dict", "path", "series", "lazy"])
def test_frame_of_other_kinds(kind):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"problem": [1], "x": [0.5]}
    made = {"dict": columns, "path": "claims.csv", "series": pd.Series([1])}
    frame = made.get(kind, pl.LazyFrame(columns))
    what = (
        r"Pass frame\.collect\(\)"
        if kind == "lazy"
        else "frame must be a data frame.*pandas"
    )
    with pytest.raises(ValueError, match=what):
        from_frame(frame)


def test_frame_infinite_features(library):
    frame = library.DataFrame({"problem": [1, 1, 2], "x": [1.0, math.inf, 3.0]})
    with pytest.raises(ValueError, match=r"1 of 'x'.*row 1"):
        from_frame(frame)
    filled = from_frame(frame, missing="median").graphs.features
    assert filled.ravel().tolist() == [1.0, 2.0, 3.0]


def test_frames_without_narwhals(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[frame\]"'):
        to_frame([ReasoningGraph([[1.0]], [])])


def test_frame_clashing_names():
    pytest.importorskip("narwhals")
    graph = ReasoningGraph([[1.0]], [], feature_names=["label"])
    with pytest.raises(ValueError, match=r"features \['label'\]"):
        to_frame([graph])
    with pytest.raises(ValueError, match=r"\['gold'\] .*label"):
        to_frame([graph.replace(feature_names=["gold"])])


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
    cf = HardCF("neg_Max", alpha=0.2).fit(data.graphs, data.labels, groups=False)
    kept = np.stack(list(cf.predict(data.graphs)))
    wrong = wrong.reshape(kept.shape)
    assert 0.1 < (kept & wrong).any(axis=1).mean() <= 0.2
    assert kept[~wrong].mean() > 0.9


# --- verdicts of fact checkers ---------------------------------------------------------

FACTOOL = {
    "average_claim_level_factuality": 0.5,
    "detailed_information": [
        {
            "prompt": "Who was Ada?",
            "response": "?",
            "category": "kbqa",
            "claims": [
                {"claim": "She was born."},
                {"claim": "She flew."},
                {"claim": "c"},
            ],
            "queries": [["?"]],
            "claim_level_factuality": [
                {"claim": "She was born.", "factuality": True, "reasoning": "so it is"},
                {"claim": "She flew.", "factuality": False, "reasoning": "nobody did"},
                None,
            ],
            "response_level_factuality": False,
        }
    ],
}


def test_verdicts_of_factool():
    data = from_verdicts(FACTOOL, edges=chain_edges)
    graph = data.graphs[0]
    assert graph.claims == ("She was born.", "She flew.", "c")
    assert (graph.problem, graph.id) == ("Who was Ada?", "verdicts/0")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.features is None  # the reasons and verdicts are no features
    assert data.labels[0].tolist() == [1, 0, -1]
    assert data.metadata == [{"reasons": ["so it is", "nobody did", None]}]
    again = from_verdicts(FACTOOL["detailed_information"], edges=[[(0, 1), (1, 2)]])
    assert list(again.graphs) == list(data.graphs)


def test_verdicts_of_ragas_survive_json_lines(tmp_path):
    class Output:  # a model of pydantic
        def __init__(self, *rows):
            self.rows = rows

        def model_dump(self):
            keys = ("statement", "reason", "verdict")
            rows = [dict(zip(keys, row, strict=True)) for row in self.rows]
            return {"statements": rows}

    data = from_verdicts(
        [Output(("a", "r", 1), ("b", "s", 0)), Output()], problems=["?", "!"]
    )
    assert [y.tolist() for y in data.labels] == [[1, 0], []]
    assert data.graphs[0].claims == ("a", "b")
    path = write_jsonl(tmp_path / "v", data.graphs, data.labels, metadata=data.metadata)
    assert read_jsonl(path).metadata == [{"reasons": ["r", "s"]}, {"reasons": []}]


def test_verdicts_of_factcheck_gpt_and_openfactcheck():
    rows = [
        {"reasoning": "", "error": "", "correction": "", "factuality": f, "claim": c}
        for c, f in [("a", 1), ("b", -1), ("c", 0)]
    ]
    pd = pytest.importorskip("pandas")
    log = pd.DataFrame([row | {"factuality": row["factuality"] > 0} for row in rows])
    assert from_verdicts([log]).labels[0].tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match=r"problem 0, claim 1 .*verdict -1.*\{-1: 0\}"):
        from_verdicts([{"detail": rows}])
    stances = {-1: 0, 0: -1}
    data = from_verdicts([{"detail": rows}, pd.DataFrame(rows)], values=stances)
    assert [y.tolist() for y in data.labels] == [[1, 0, -1]] * 2
    assert data.metadata[0] == {"reasons": ["", "", ""]}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [(True, 1), (np.True_, 1), (1.0, 1), (" Supported", 1), ("REFUTED", 0), ("0", 0),
     (np.int64(0), 0), (math.nan, -1), (None, -1), ("Not enough evidence", 0), ("unsure", 0),
     ("unknown", -1)],
)  # fmt: skip
def test_words_and_numbers_of_verdicts(verdict, expected):
    data = from_verdicts([[{"claim": "a", "verdict": verdict}]])
    assert data.labels[0].tolist() == [expected]
    mine = from_verdicts([[{"claim": "a", "label": "Mostly"}]], values={"mostly": 0})
    assert mine.labels[0].tolist() == [0]


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        (
            [[{"claim": "a", "verdict": "perhaps"}]],
            {},
            "verdict 'perhaps'",
        ),
        ([[{"claim": "a", "verdict": [1]}]], {}, r"verdict \[1\]"),
        ([[{"claim": "a"}]], {}, "problem 0, claim 0 .*'verdict'"),
        ([[{"verdict": 1}]], {}, "problem 0, claim 0 .*'claim'"),
        ([[True]], {}, "problem 0, claim 0 .*True"),
        ({"score": 0.5}, {}, "problem 0 .*'statements'"),
        ([[]], {"problems": ["?", "!"]}, "problems must .*1"),
        (
            [[{"claim": "a", "verdict": 2}]],
            {"values": {2: 7}},
            r"labels\[0\] is 7",
        ),
        ([], {}, "the data must contain at least one problem"),
    ],
)
def test_verdicts_that_make_no_sense(results, options, message):
    with pytest.raises(ValueError, match=message):
        from_verdicts(results, **options)


# --- every optional key, through every adapter ----------------------------------------------

METADATA = {
    "extraction": {"model": "m", "prompts": {"decompose": 2}, "samples": 5},
    "edges_corrected": True,
    "label_meaning": "supported",
    "no_verdict": [1],
    "model": "writer",
    "sampling": "random",
    "label_sources": [{"kind": "human", "by": "me"}, None],
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


def check_given(data, reasons=None):
    """Nothing is lost: what was given is in the graphs, and beside them."""
    first, second = data["graphs"]
    assert (first.problem, second.problem) == ("Why?", None)
    assert (first.alternatives, second.alternatives) == (("x", "y"), ())
    assert (first.context, second.context) == (("one passage",), None)
    assert first.edges.tolist() == [[0, 1]]
    assert (first.edges_known, second.edges_known) == (True, False)
    assert first.metadata == METADATA | {"group": "g"} | (reasons or {})
    assert second.metadata["group"] == 7
    assert data["groups"].tolist() == ["g", 7]
    assert data["metadata"] == [first.metadata, second.metadata]


def made_by(adapter):
    texts = [["a", "b"], ["c"]]
    if adapter == "uqlm":
        claims = [[{"claim": t, "p": 0.5} for t in row] for row in texts]
        return from_uqlm(claims, labels=[[1, 0], [-1]], **GIVEN)
    if adapter == "lm_polygraph":
        claims = [[Claim(t, t, [0]) for t in row] for row in texts]
        return from_lm_polygraph(
            claims, {"Max": [1, 2, 3]}, labels=[0, 1, math.nan], **GIVEN
        )
    claims = [[{"claim": t, "verdict": v} for t, v in zip(row, "10", strict=False)]
              for row in texts]  # fmt: skip
    return from_verdicts(claims, **GIVEN)


@pytest.mark.parametrize("adapter", ["uqlm", "lm_polygraph", "verdicts"])
def test_all_that_is_given_survives(adapter, tmp_path):
    data = made_by(adapter)
    reasons = {"reasons": [None, None]} if adapter == "verdicts" else None
    check_given(data, reasons)
    path = write_jsonl(tmp_path / "a.jsonl", data.graphs, data.labels)
    check_given(read_jsonl(path), reasons)
    assert json.loads(path.read_text().splitlines()[0])["ticket"] == {"number": 7}


@pytest.mark.parametrize("through", ["memory", "csv"])
def test_all_that_is_known_survives_a_table(library, through, tmp_path):
    data = made_by("uqlm")
    frame = to_frame(data.graphs, data.labels, backend=library.__name__)
    if through == "csv":
        path = str(tmp_path / "a.csv")
        is_pandas = library.__name__ == "pandas"
        frame.to_csv(path, index=False) if is_pandas else frame.write_csv(path)
        frame = library.read_csv(path)
        assert from_frame(frame).metadata[0]["group"] == "g"
        first, second = from_frame(frame).graphs
        assert (first, second.edges_known) == (data.graphs[0], False)
        return
    back = from_frame(frame)
    assert back.groups.tolist() == ["g", "7"]  # a column has one type
    whole = back.graphs[1].metadata | {"group": 7}
    back.graphs = back.graphs.replace_metadata([back.graphs[0].metadata, whole])
    check_given(back | {"groups": data.groups, "metadata": list(back.graphs.metadata)})
    assert list(back.graphs) == list(data.graphs)


def test_groups_of_rows_are_those_of_their_problem(library):
    columns = {"problem": [1, 1, 2], "x": [0.5] * 3, "group": ["a", "b", "a"]}
    with pytest.raises(ValueError, match=r"row 0.*group 'a'"):
        from_frame(library.DataFrame(columns))
    numbers = columns | {"group": [3.0, 3.0, 4.0]}
    assert from_frame(library.DataFrame(numbers)).groups.tolist() == [3, 4]
    named = columns | {"who": ["a", "a", "b"], "passages": ['["p", "q"]', None, "p"]}
    graphs = from_frame(
        library.DataFrame(named), group="who", context="passages"
    ).graphs
    assert [g.context for g in graphs] == [("p", "q"), ("p",)]
    assert [g.metadata for g in graphs] == [{"group": "a"}, {"group": "b"}]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (3, "context must be a text or a list of texts, but context is 3"),
        (["a", ""], "passage 1 of the context is empty"),
        (["a\0"], "passage 0 of the context contains a NUL .* 1"),
        (["\udc00"], "passage 0 of the context contains an unpaired surrogate"),
        (["x" * 6_000_000] * 2, "the context .*at most .*12,000,000"),
    ],
)
def test_contexts_that_are_refused_name_problem_and_passage(context, message):
    claims = [[{"claim": "a", "p": 0.5}]] * 2
    with pytest.raises(ValueError, match=f'problem "uqlm/1": .*{message}'):
        from_uqlm(claims, context=["fine", context])


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match=r"unexpected.*'group'"):
        from_uqlm(LONG_TEXT, group=["a", "b"])
    with pytest.raises(TypeError, match=r"unexpected.*'groups'"):
        from_frame(None, groups="a")
