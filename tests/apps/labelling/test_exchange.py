"""Label Studio and spreadsheets: read as they mean it, or refused with the place."""

import csv
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skdcf import ReasoningGraph
from skdcf.apps.labelling import LABEL_STUDIO_CONFIG, LabelStore
from skdcf.apps.labelling.exchange import (
    from_label_studio,
    read_csv,
    to_label_studio,
    write_csv,
)

GRAPHS = [
    ReasoningGraph(None, [(0, 1)], claims=["7 is prime", "so it is odd"], id="one"),
    ReasoningGraph(None, (), claims=["9 is prime"], id="two"),
]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1)
WORDS = st.sampled_from(["true", "false", "unsure", "no claim", "unknown", None])


def stored(path, graphs, words):
    path.unlink(missing_ok=True)
    store = LabelStore(graphs, path)
    for i, row in enumerate(words):
        for v, word in enumerate(row):
            store.label(i, v, word, by="ann")
    return store


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claims=st.lists(TEXTS, min_size=2, max_size=4), data=st.data())
def test_labels_go_out_and_come_back(tmp_path, claims, data):
    """Texts that spreadsheets read as formulas, and texts that look escaped, too."""
    problem = data.draw(TEXTS)
    graphs = [ReasoningGraph(None, [(0, 1)], claims=claims, problem=problem)]
    words = [
        "true",
        *data.draw(st.lists(WORDS, min_size=len(claims) - 1, max_size=len(claims) - 1)),
    ]
    store = stored(tmp_path / "journal", graphs, [words])
    write_csv(tmp_path / "t.csv", store, "ann", [0])
    assert read_csv(tmp_path / "t.csv", graphs) == {"ann": [words]}
    with open(tmp_path / "t.csv", encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t")]
    tasks = json.loads(json.dumps(to_label_studio(store, "ann", [0])))
    assert from_label_studio(tasks, graphs) == {"imported": [words]}


def test_tasks_fit_the_labelling_interface(tmp_path):
    store = stored(tmp_path / "journal", GRAPHS, [["true", None], ["unsure"]])
    tasks = to_label_studio(store, "ann", order=[1, 0])
    assert [task["data"]["claim"] for task in tasks] == [
        "9 is prime",
        "7 is prime",
        "so it is odd",
    ]
    assert tasks[2]["data"]["premises"] == "1. 7 is prime"
    assert ["annotations" in task for task in tasks] == [True, True, False]
    [result] = tasks[0]["annotations"][0]["result"]
    for name in (result["from_name"], result["to_name"]):
        assert f'name="{name}"' in LABEL_STUDIO_CONFIG
    for field in ("problem", "context", "premises", "claim"):
        assert f'value="${field}"' in LABEL_STUDIO_CONFIG and field in tasks[0]["data"]


def annotation(*choices, control="verdict", by=1, **more):
    results = [
        {"from_name": control, "to_name": "claim", "value": {"choices": [choice]}}
        for choice in choices
    ]
    return {"completed_by": by, "result": results, **more}


@pytest.fixture
def tasks_with(tmp_path):
    """Tasks of which the first has these annotations."""
    tasks = to_label_studio(LabelStore(GRAPHS, tmp_path / "journal"), "ann", [0, 1])

    def make(*annotations, **more):
        tasks[0] |= {"annotations": list(annotations), **more}
        return tasks

    return make


def test_annotators_of_label_studio_are_told_apart(tasks_with):
    tasks = tasks_with(
        annotation("true", by={"email": "a@b.org"}),
        annotation("false", by={"id": 8}),
        annotation("unsure", by=9),
        annotation("true", by=9, was_cancelled=True),
        annotation("hard", control="difficulty", by=10),
    )
    assert from_label_studio(tasks, GRAPHS) == {
        by: [[word, None], [None]]
        for by, word in (("a@b.org", "true"), ("8", "false"), ("9", "unsure"))
    }


@pytest.mark.parametrize(
    ("annotations", "match"),
    [
        ([annotation("true", control="choice")], "choice"),
        ([annotation()], "verdict"),
        ([annotation("true", was_cancelled=True)], "verdict"),
        ([annotation("true", "false")], "task 1.*JSON"),
        ([annotation("true"), annotation("false")], "task 1.*1 judged"),
        ([annotation("maybe")], "task 1.*'maybe'"),
        ([12], "task 1.*JSON"),
        ([{"result": [{"from_name": "verdict", "value": "false"}]}], "task 1.*JSON"),
    ],
)
def test_other_exports_are_refused(tasks_with, annotations, match):
    with pytest.raises(ValueError, match=match):
        from_label_studio(tasks_with(*annotations), GRAPHS)


def test_exports_without_annotations_are_refused():
    with pytest.raises(ValueError, match="verdict"):
        from_label_studio([{"verdict": "true"}], GRAPHS)


HEAD = "problem_id,claim_number,claim,label,annotator\n"


def table(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def test_tables_as_spreadsheets_write_them(tmp_path):
    rows = "one,1,7  is prime,True ,\none,2,so it is odd, ,\ntwo,1,9 is prime,0,bob\n"
    assert read_csv(table(tmp_path, HEAD + rows), GRAPHS) == {
        "imported": [["true", None], [None]],
        "bob": [[None, None], ["false"]],
    }


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (HEAD + "three,1,9 is prime,true,\n", 'row 2.*"problem_id".*three'),
        (HEAD + "two,2,9 is prime,true,\n", 'row 2.*"claim_number".*2'),
        (HEAD + "two,1,9 is odd,true,\n", 'row 2.*"claim".*9 is odd'),
        (HEAD + "two,1,9 is prime,perhaps,\n", 'row 2.*"label".*perhaps'),
        (HEAD + "two,1,,true,\none,1,,x,\n", "row 2.*row 3"),
        (HEAD + "two,1,9 is prime,true,a\ntwo,1,9 is prime,false,a\n", "row 3.* a "),
        (HEAD + "two,1,9 is prime,,\n", "1 rows.*label"),
        ("problem_id,claim_number,Label\none,1,true\n", "'label'"),
    ],
)
def test_the_place_of_a_fault_is_named(tmp_path, text, match):
    with pytest.raises(ValueError, match=rf"(?s)t\.csv.*{match}"):
        read_csv(table(tmp_path, text), GRAPHS)


def test_ids_that_occur_twice_take_no_labels(tmp_path):
    graphs = [graph.replace(id="a") for graph in GRAPHS]
    with pytest.raises(ValueError, match=r"2 .*'a'"):
        to_label_studio(LabelStore(graphs, tmp_path / "journal"), "ann", [0])
