"""Exports of fact checkers, of UQLM and of Argilla, and tables that say too much."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.adapters import from_frame, from_uqlm, from_verdicts
from skdcf.datasets import read_jsonl
from skdcf.exceptions import LabelWarning, ParameterWarning
from skdcf.graphs.labels import read_words

pd = pytest.importorskip("pandas")


def labels_of(rows, **options):
    return [y.tolist() for y in from_verdicts(rows, **options).labels]


# --------------------------------------------------------- several verdicts on one claim


@pytest.mark.parametrize(
    "claim",
    [
        {"verdict": "supported", "human_label": 0},
        {"factuality": True, "label": "false"},
        {"verdict": 1, "human": "no"},
        {"is_supported": True, "annotation": "Refuted"},
        {"label": 1, "gold_verdict": 0},
        {"verdict": "yes", "label": "irrelevant"},
        {"verdict": "yes", "humanLabel": 0},
        {"verdict": "yes", "annotator_1": "no"},
        {"verdict": "yes", "annotator_2": 0},
        {"verdict": "yes", "reviewer": False},
        {"verdict": "yes", "expert_verdict": 0},
        {"verdict": "yes", "human": {"label": 0}},
        {"verdict": "yes", "human_labels": [1, 0]},
        {"verdict": "yes", "annotations": [{"label": "no", "by": 3}]},
        {"verdict": "yes", "correct": False},
        {"verdict": 1, "final_verdict": "refuted"},
        {"is_supported": True, "is_hallucination": True},
        {"verdict": "no", "hallucinated": 0},
        {"verdict": "supported", "override": "refuted"},
        {"verdict": "supported", "adjudicated": "refuted"},
        {"verdict": "yes", "consensus": "no"},
        {"verdict": "yes", "accurate": False},
        {"verdict": "yes", "inaccurate": True},
        {"verdict": "yes", "user_rating": "wrong"},
        {"verdict": "yes", "checks": [{"who": "ann", "verdict": "no"}]},
        {"verdict": "yes", "metadata": {"second": {"label": 0}}},
    ],
)
def test_verdicts_that_differ_are_refused_whichever_comes_first(claim):
    for keys in (list(claim), list(claim)[::-1]):
        row = {"claim": "Ada flew."} | {key: claim[key] for key in keys}
        with pytest.raises(ValueError, match=rf"problem 0, claim 0.*{keys[0]}.*{keys[1]}|"
                           rf"problem 0, claim 0.*{keys[1]}.*{keys[0]}"):  # fmt: skip
            from_verdicts([[row]])


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ({"verdict": "supported", "human_label": 1}, 1),
        ({"verdict": None, "label": 0}, 0),
        ({"verdict": "no", "human_label": ""}, 0),
        ({"verdict": "no", "human_score": 0.7}, 0),
        ({"verdict": "no", "annotator": 1}, 0),
        ({"human_label": 0}, 0),
        ({"verdict": "yes", "human_labels": [1, None, "true"]}, 1),
        ({"verdict": "yes", "is_hallucination": False, "label_id": 0}, 1),
        ({"verdict": "no", "hallucination": "hallucinated"}, 0),
        ({"verdict": "yes", "evidences": [{"label": "refutes"}]}, 1),
        ({"verdict": "yes", "metadata": {"page": 0, "final": "see above"}}, 1),
    ],
)
def test_verdicts_that_agree_or_are_missing(claim, label):
    assert labels_of([[{"claim": "Ada flew."} | claim]]) == [[label]]


def test_a_claim_that_is_listed_twice_with_two_verdicts_is_unsure():
    rows = [
        {"claim": "Ada flew.", "verdict": "yes"},
        {"claim": "Ada flew.", "verdict": "no"},
    ]
    other = [{"claim": "Ada lived.", "verdict": "yes"}] * 2
    spelt = [
        {"claim": "Ada  Sailed", "verdict": 0},
        {"claim": "ada sailed.", "verdict": 1},
        {"claim": "at a caf\u00e9", "verdict": 1},
        {"claim": "at a cafe\u0301", "verdict": 0},
    ]
    with pytest.warns(LabelWarning, match=r"Ada flew"):
        assert labels_of([[*rows, *other, *spelt]]) == [[0, 0, 1, 1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("word", "label"),
    [("borderline", 0), ("idk", 0), ("1.0", 1), ("0.0", 0), ("SUPPORTS", 1),
     ("REFUTES", 0), ("grounded", 1), ("NOT_ENOUGH_INFO", 0), ("not_supported", 0),
     ("Partially supported", 0), ("mixed", 0), ("Unclear", 0), ("contradictory", 0),
     ("NEI", 0), ("Not-Supported", 0), ("non-factual", 0), ("No.", 0), ("faithful", 1),
     ("not attributable", 0), ("N/A", -1), ("nan", -1)],
)  # fmt: skip
def test_words_of_other_tools(word, label):
    assert labels_of([[{"claim": "a", "verdict": word}]]) == [[label]]
    assert read_words([word]).tolist() == [label]


# ------------------------------------------------------------------ readers of exports


def test_factscore():
    """What its get_score returns, with None where the model abstained."""
    facts = [{"atom": "Ada lived.", "is_supported": True},
             {"atom": "Ada flew.", "is_supported": np.False_}]  # fmt: skip
    result = {"score": 0.5, "respond_ratio": 0.5, "decisions": [facts, None, facts[:1]]}
    data = from_verdicts(result, on_invalid="drop", problems=["a", "b", "c"])
    assert [y.tolist() for y in data.labels] == [[1, 0], [1]]
    assert [graph.id for graph in data.graphs] == ["verdicts/0", "verdicts/2"]
    assert [graph.problem for graph in data.graphs] == ["a", "c"]
    assert [place for place, _ in data.dropped] == [1]
    with pytest.raises(ValueError, match=r"problem 1 .*on_invalid"):
        from_verdicts(result)
    assert labels_of([{"topic": "Ada", "decisions": facts}]) == [[1, 0]]


def test_refchecker():
    line = {
        "response": "...", "question": "Who was Ada?", "reference": ["One.", "Two."],
        "claims": [["Ada", "was born in", "1815"], ["Ada", "flew to", "Mars"], "She lived."],
        "ys": ["Entailment", "Contradiction", "Neutral"], "Y": "Contradiction",
    }  # fmt: skip
    data = from_verdicts([line])
    assert data.graphs[0].claims == (
        "Ada was born in 1815",
        "Ada flew to Mars",
        "She lived.",
    )
    assert data.labels[0].tolist() == [1, 0, 0]
    assert data.graphs[0].problem == "Who was Ada?"
    assert data.graphs[0].context == ("One.", "Two.")
    several = [
        ["Neutral", "Entailment"],
        ["Entailment", "Contradiction"],
        ["Neutral"] * 2,
    ]
    assert labels_of([line | {"ys": several}]) == [[1, 0, 0]]
    with pytest.raises(ValueError, match=r"ys .* 3 claims, got 2"):
        from_verdicts([line | {"ys": ["Neutral"] * 2}])


def test_the_two_lists_of_deepeval():
    result = {"claims": ["a", "b", "c"], "verdicts": [
        {"verdict": "yes", "reason": None}, {"verdict": "borderline", "reason": "r"},
        {"verdict": "no"}]}  # fmt: skip
    data = from_verdicts([result])
    assert data.labels[0].tolist() == [1, 0, 0]
    assert data.metadata[0]["reasons"] == [None, "r", None]
    metric = SimpleNamespace(truths=["t"], **result)
    assert from_verdicts([metric]).labels[0].tolist() == [1, 0, 0]


def test_answers_on_which_a_checker_failed_are_left_out_and_listed():
    good = {"statements": [{"statement": "a", "verdict": 1}]}
    failed = [None, {}, {"statements": None}, {"error": "timeout"}, float("nan")]
    rows = [good, *failed, good]
    groups = list("abcdefg")
    data = from_verdicts(rows, on_invalid="drop", groups=groups, edges=[[]] * 7)
    assert [place for place, _ in data.dropped] == [1, 2, 3, 4, 5]
    assert "failed" in data.dropped[4][1]
    assert data.groups.tolist() == ["a", "g"]
    with pytest.raises(ValueError, match="on_invalid"):
        from_verdicts(rows, on_invalid="skip")
    with pytest.raises(ValueError, match=r"answers.*dropped"):
        from_verdicts(failed, on_invalid="drop")


@pytest.mark.parametrize(
    "kind", ["frame", "polars", "dict", "records", "json", "prompts"]
)
def test_uqlm_keeps_the_question(kind):
    table = {
        "prompt": ["Who was Ada?", "Who was Bob?"],
        "response": ["x", "y"],
        "sampled_responses": [["s", "t"], ["u", "v"]],
        "claims_data": [
            [{"claim": "Ada lived.", "removed": False, "entailment": 0.9}],
            [{"claim": "Bob lived.", "removed": False, "entailment": 0.4}],
        ],
    }
    frame = pd.DataFrame(table)
    result = {
        "frame": frame,
        "dict": frame.to_dict("list"),
        "records": frame.to_dict("records"),
        "json": json.loads(frame.to_json()),
        "prompts": {"prompts": table["prompt"], **table},
    }.get(kind)
    if kind == "polars":
        result = pytest.importorskip("polars").DataFrame(table)
    data = from_uqlm(result)
    assert data.graphs.problems.tolist() == table["prompt"]
    assert data.graphs[1].alternatives == ("u", "v")
    assert data.graphs.features.ravel().tolist() == [0.9, 0.4]


# ------------------------------------------------------------------------------ Argilla


def argilla(*responses, **more):
    """Records as `to_list(flatten=True)` gives them; each response is (word, status)."""
    return pd.DataFrame([
        {"id": f"r{v}", "claim": f"claim {v}", "problem": "p", "score": 0.5,
         "verdict.responses": [word for word, _ in said],
         "verdict.responses.status": [status for _, status in said],
         "verdict.suggestion": "true", "verdict.suggestion.score": 0.9, **more}
        for v, said in enumerate(responses)
    ])  # fmt: skip


SAID = [
    [("true", "submitted"), ("false", "draft")],
    [("true", "discarded")],
    [("true", "submitted"), ("false", "submitted")],
    [("false", "submitted"), ("false", "submitted"), ("true", "discarded")],
    [],
]


def test_submitted_responses_of_argilla_are_labels():
    with pytest.warns(ParameterWarning, match=r"verdict\.suggestion\.score"):
        data = from_frame(argilla(*SAID))
    assert data.labels[0].tolist() == [1, -1, 0, 0, -1]
    assert data.graphs[0].claims == tuple(f"claim {v}" for v in range(5))
    assert data.graphs.feature_names == ("score",)
    named = ["verdict.suggestion.score"]
    asked = from_frame(argilla(*SAID), label="verdict", features=named)
    assert asked.labels[0].tolist() == [1, -1, 0, 0, -1]
    assert asked.graphs.feature_names == tuple(named)


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.ParameterWarning")
@pytest.mark.parametrize(
    ("responses", "states", "label"),
    [
        ([True, False], ["ResponseStatus.submitted", "ResponseStatus.draft"], 1),
        (["", "true"], ["submitted", "submitted"], 1),
        ([None], ["submitted"], -1),
        ("['true', None]", "['submitted', 'draft']", 1),
        ('["it\'s", "false"]', '["draft", "Submitted"]', 0),
    ],
)
def test_responses_of_argilla_as_files_and_enums_hold_them(responses, states, label):
    frame = argilla(SAID[0])
    frame["verdict.responses"], frame["verdict.responses.status"] = (
        [responses],
        [states],
    )
    assert from_frame(frame).labels[0].tolist() == [label]


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.ParameterWarning")
@pytest.mark.parametrize(
    ("cell", "name"),
    [("['true' 'false']", "responses"), (["true", "false"], "validated")],
)
def test_responses_of_argilla_that_are_not_read_are_named(cell, name):
    frame = argilla([("true", "validated"), ("true", "submitted")])
    frame["verdict.responses"] = [cell]
    with pytest.raises(ValueError, match=name):
        from_frame(frame)


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.ParameterWarning")
def test_argilla_says_what_is_missing():
    two = argilla(*SAID)
    two["ease.responses"] = [["hard"]] * 5
    two["ease.responses.status"] = [["submitted"]] * 5
    with pytest.raises(ValueError, match=r"label.*verdict.*ease"):
        from_frame(two)
    assert from_frame(two, label="verdict").labels[0].tolist() == [1, -1, 0, 0, -1]
    with pytest.raises(ValueError, match="'hard'"):
        from_frame(two, label="ease.responses")
    nested = pd.DataFrame([{
        "id": "a", "fields": {"claim": "x"}, "metadata": {}, "suggestions": {},
        "responses": {"verdict": [{"value": "true", "user_id": "u"}]}, "status": "pending",
    }])  # fmt: skip
    with pytest.raises(ValueError, match=r"flatten=True"):
        from_frame(nested)


# ------------------------------------------------------------------------------- tables


def table(**columns):
    return pd.DataFrame({"problem": list("ppqq"), "parents": "", **columns})


@pytest.mark.parametrize("blank", [None, float("nan"), "", " "])
def test_a_blank_label_is_unknown_at_every_reader(tmp_path, blank):
    frame = table(score=[0.9, 0.2, 0.5, 0.1], label=[1, blank, 0, blank])
    assert [y.tolist() for y in from_frame(frame).labels] == [[1, -1], [0, -1]]
    as_text = frame.assign(label=frame["label"].astype(str))
    assert [y.tolist() for y in from_frame(as_text).labels] == [[1, -1], [0, -1]]
    assert labels_of([[{"claim": "a", "verdict": blank}]]) == [[-1]]
    if blank == blank:  # in lists, NaN is no label
        claims = [[{"claim": "a", "score": 0.5}, {"claim": "b", "score": 0.5}]]
        assert from_uqlm(claims, labels=[[1, blank]]).labels[0].tolist() == [1, -1]
        path = tmp_path / "lines.jsonl"
        line = {"claims": ["a", "b"], "edges": [], "labels": [blank, 1]}
        path.write_text(json.dumps(line) + "\n")
        assert read_jsonl(path).labels[0].tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["0.9", "0.2", "n/a", "0.1"], r"3 of its 4.*'n/a'"),
        ([0.9, 0.2, "low", 0.1], r"3 of its 4.*'low'"),
        (["0,9", "0,2", "0,5", None], "3 of its 3"),
        (["90%", " 20 %", "$5", "1,200.50"], "4 of its 4"),
        ([True, "?", False, True], r"3 of its 4.*'[?]'"),
        (["0.9", "inf", "nan", "1e-3"], "4 of its 4"),
    ],
)
def test_numbers_in_a_text_column_are_told_of(cells, shown):
    frame = table(score=cells, other=[1.0, 2.0, 3.0, 4.0])
    with pytest.warns(ParameterWarning, match=rf"score.*{shown}"):
        data = from_frame(frame)
    assert data.graphs.feature_names == ("other",)


@pytest.mark.parametrize(
    "name",
    [
        "human_score",
        "suggestion.score",
        "Annotator 2",
        "gold-3",
        "humanScore",
        "expert_rating",
        "is_hallucination",
        "verdict.responses",
        "label_share",
        "groundTruth",
        "_input_hash",
        "_timestamp",
        "lead_time",
        "annotation_id",
        "is_wrong",
        "supported",
        "target",
        "crowd_votes",
        "thumbs_up",
        "user_rating",
        "y_true",
        "truth score",
        "manual_quality",
        "adjudicated",
    ],
)
def test_what_people_say_is_no_feature_unless_asked_for(name):
    frame = table(**{name: [1.0, 0.0, 1.0, 1.0], "score": [0.9, 0.2, 0.5, 0.1]})
    with pytest.warns(ParameterWarning, match=name):
        assert from_frame(frame).graphs.feature_names == ("score",)
    assert from_frame(frame, features=[name]).graphs.feature_names == (name,)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("Label", [1, 0, 1, 0]),
        ("verdict", ["true", "false", None, "true"]),
        ("is_correct", [True, False, True, True]),
        ("answer", ["accept", "reject", "accept", "ignore"]),
    ],
)
def test_labels_under_another_name_are_named(name, cells):
    frame = table(score=[0.9, 0.2, 0.5, 0.1], **{name: cells})
    with pytest.warns(ParameterWarning, match=rf"label.*{name}"):
        assert from_frame(frame).labels is None


def test_answers_that_are_texts_are_no_labels(recwarn):
    frame = table(score=[0.9, 0.2, 0.5, 0.1], answer=["accept", "b", "c", "d"])
    assert from_frame(frame).labels is None
    assert from_frame(frame.assign(verdict=1), label=None).labels is None
    assert not recwarn.list


def test_labels_in_a_column_of_text():
    frame = table(score=[0.9, 0.2, 0.5, 0.1], label=["-1", "1", "0", "-1.0"])
    assert [y.tolist() for y in from_frame(frame).labels] == [[-1, 1], [0, -1]]


def test_uqlm_as_read_from_csv_is_refused_with_what_to_do():
    frame = pd.DataFrame({"prompt": ["Who?"], "claims_data": ["[{'claim': 'a'}]"]})
    with pytest.raises(ValueError, match=r"problem 0.*str.*JSON"):
        from_uqlm(frame)


def test_uqlm_as_read_from_parquet():
    claims = np.array([{"claim": "Ada lived.", "entailment": 0.9}], dtype=object)
    frame = pd.DataFrame({"prompt": ["Who?"], "claims_data": [claims]})
    assert from_uqlm(frame).graphs.features.tolist() == [[0.9]]


@pytest.mark.parametrize("words", [["TRUE", "no", " "], ["1", "0.0", ""],
                                   ["supported", "unsure", None]])  # fmt: skip
def test_words_in_a_column_of_labels(words):
    frame = pd.DataFrame(
        {"problem": list("ppq"), "score": [0.9, 0.2, 0.5], "label": words}
    )
    assert [y.tolist() for y in from_frame(frame).labels] == [[1, 0], [-1]]


def test_a_column_of_labels_with_a_space_in_its_name_is_no_feature():
    frame = table(**{"Label ": [1.0, 0.0, 1.0, 1.0], "score": [0.9, 0.2, 0.5, 0.1]})
    assert from_frame(frame, label=None).graphs.feature_names == ("score",)


def test_words_within_words_are_features(recwarn):
    frame = table(humanity=[1.0] * 4, goldilocks=[1.0] * 4, word=list("abcd"))
    assert from_frame(frame).graphs.feature_names == ("humanity", "goldilocks")
    assert not recwarn.list


# ----------------------------------------------------------------- edges of other tools


@pytest.mark.parametrize("key", ["links", "edges"])
def test_node_link_data_names_the_reader(key):
    """The key of the edges is "links" before networkx 3.6, and "edges" since."""
    data = {"directed": True, "multigraph": False, "graph": {}}
    data |= {"nodes": [{"id": 0}, {"id": 1}], key: [{"source": 0, "target": 1}]}
    with pytest.raises(ValueError, match="from_networkx"):
        ReasoningGraph.from_dict(data)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("links", [[0, 1]]),
        ("links", [{"source": 0, "target": 1}]),
        ("depends_on", [[0, 1]]),
        ("adjacency", [[0, 1]]),
        ("edge_list", [[0, 1]]),
        ("premises", [[], [0]]),
        ("deps", [[], [0]]),
    ],
)
def test_other_names_for_edges_are_refused(tmp_path, key, value):
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"claims": ["a", "b"], key: value}) + "\n")
    ours = "edges" if len(value) == 1 else "parents"
    with pytest.raises(ValueError, match=rf'"{key}".*edges.*"{ours}"'):
        read_jsonl(path)
    if not isinstance(value[0], dict):
        renamed = read_jsonl(path, rename={key: ours})
        assert renamed.graphs[0].edges.tolist() == [[0, 1]]
    assert read_jsonl(path, own=[key]).metadata[0][key] == value
    known = {"claims": ["a", "b"], "edges": [[0, 1]], key: value}
    path.write_text(json.dumps(known) + "\n")
    assert read_jsonl(path).graphs[0].edges.tolist() == [[0, 1]]
