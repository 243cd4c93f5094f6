"""Exports of Label Studio and sheets as people make them: read as they mean it, or refused."""

import codecs
import csv
import json
import re

import pytest

from skdcf import ReasoningGraph
from skdcf.apps.cli import main
from skdcf.apps.labelling import from_label_studio, to_label_studio
from skdcf.apps.labelling.exchange import read_csv, write_csv
from skdcf.datasets import write_jsonl
from skdcf.exceptions import LabelWarning

GRAPHS = [
    ReasoningGraph(None, [(0, 1)], claims=["7 is prime", "so it is odd"], id="one"),
    ReasoningGraph(None, (), claims=["9 is prime"], id="two"),
]
WORDS = [["true", "true"], ["false"]]


def annotation(*choices, control="verdict", by=1, **more):
    results = [
        {"from_name": control, "to_name": "claim", "value": {"choices": [choice]}}
        for choice in choices
    ]
    return {"completed_by": by, "result": results, **more}


def tasks_with(*annotations, drafts=()):
    """The tasks, of which the first has these annotations."""
    tasks = to_label_studio(GRAPHS)
    tasks[0] |= {"annotations": list(annotations), "drafts": list(drafts)}
    return tasks


EMPTY = {
    "a control of another name": (
        tasks_with(annotation("true", control="choice")), "choice"),
    "a control with a number": (
        tasks_with(annotation("false", control="verdict_2")), "verdict_2"),
    "labels in place of choices": (
        tasks_with({"result": [{"from_name": "verdict", "value": {"labels": ["true"]}}]}),
        "without choices.*labels"),
    "drafts alone": (tasks_with(drafts=[annotation("true")]), "1 drafts"),
    "empty results": (tasks_with(annotation()), "empty results"),
    "skipped": (
        tasks_with(annotation("true", was_cancelled=True)), "skipped annotations"),
    "nothing": (tasks_with(), "3 tasks"),
    "at least one task": ([], "0 tasks"),
}  # fmt: skip


@pytest.mark.parametrize("kind", EMPTY)
def test_an_import_in_which_nothing_is_found_is_an_error(tmp_path, capsys, kind):
    tasks, found = EMPTY[kind]
    with pytest.raises(ValueError, match=rf"verdict.*{found}"):
        from_label_studio(tasks, GRAPHS)
    file = write_jsonl(tmp_path / "claims.jsonl", GRAPHS)
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    command = ["label", file, "--no-page", "--import", export]
    assert main([str(word) for word in command]) == 2
    assert re.search(found, capsys.readouterr().err)


def test_other_controls_beside_the_verdict_are_told_of():
    tasks = tasks_with(annotation("true"))
    tasks[1]["annotations"] = [annotation("hard", control="difficulty")]
    with pytest.warns(LabelWarning, match=r"1 of 2 annotations.*difficulty"):
        assert from_label_studio(tasks, GRAPHS) == {"1": [["true", None], [None]]}


def test_two_choices_are_unsure_in_one_result_and_in_two():
    for chosen in (
        annotation("true", "false"),
        {"completed_by": 1, "result": [
            {"from_name": "verdict", "value": {"choices": ["true", "false"]}}]},
    ):  # fmt: skip
        with pytest.warns(LabelWarning, match="unsure"):
            words = from_label_studio(tasks_with(chosen), GRAPHS)
        assert words == {"1": [["unsure", None], [None]]}
    assert from_label_studio(tasks_with(annotation("true", "true")), GRAPHS) == {
        "1": [["true", None], [None]]
    }


@pytest.mark.parametrize("key", ["created_at", "updated_at"])
@pytest.mark.parametrize("order", [1, -1])
def test_the_later_of_two_annotations_counts(key, order):
    early = annotation("true", **{key: "2026-03-01T10:00:00.5Z"})
    late = annotation("false", **{key: "2026-03-01T12:30:00+01:00"})
    other = annotation("true", by=2, **{key: "2026-03-05T00:00:00Z"})
    tasks = tasks_with(*[early, late, other][::order])
    with pytest.warns(LabelWarning, match="'true', 'false'|'false', 'true'"):
        words = from_label_studio(tasks, GRAPHS)
    assert words == {"1": [["false", None], [None]], "2": [["true", None], [None]]}


def test_two_annotations_without_dates_are_refused_if_they_differ():
    day = {"created_at": "2026-03-01T10:00:00Z"}
    for one, two in (({}, {}), (day, {}), (day, day)):
        both = annotation("true", **one), annotation("false", **two)
        with pytest.raises(ValueError, match=r"claim 1 of .*one.*'true', 'false'"):
            from_label_studio(tasks_with(*both), GRAPHS)
        assert from_label_studio(tasks_with(both[0], both[0]), GRAPHS) == {
            "1": [["true", None], [None]]
        }


# ----------------------------------------------------------------------- sheets


def sheet(path, encoding, delimiter=",", note="naïve", labels=("true", " ", "false")):
    rows = [["problem_id", "claim_number", "label", "note"]]
    places = [("one", 1), ("one", 2), ("two", 1)]
    rows += [[*place, label, note] for place, label in zip(places, labels, strict=True)]
    text = "\r\n".join(delimiter.join(map(str, row)) for row in rows) + "\r\n"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_sheets_in_the_encodings_that_their_first_bytes_tell(
    tmp_path, encoding, delimiter
):
    path = sheet(tmp_path / "s.csv", encoding, delimiter)
    assert read_csv(path, GRAPHS) == {"imported": [["true", None], ["false"]]}
    big = sheet(tmp_path / "big.csv", "utf-16-be")
    big.write_bytes(codecs.BOM_UTF16_BE + big.read_bytes())
    assert read_csv(big, GRAPHS) == {"imported": [["true", None], ["false"]]}


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp850"])
def test_other_sheets_are_refused_with_what_to_do(tmp_path, encoding):
    path = sheet(tmp_path / "sheet.csv", encoding)
    with pytest.raises(ValueError, match=r"sheet\.csv, line 2: .*UTF-8.*Save it"):
        read_csv(path, GRAPHS)
    cut = tmp_path / "cut.csv"
    cut.write_bytes(sheet(tmp_path / "whole.csv", "utf-16").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"cut\.csv.*UTF-16"):
        read_csv(cut, GRAPHS)


def test_a_sheet_without_a_label_is_an_error(tmp_path):
    path = sheet(tmp_path / "sheet.csv", "utf-8", labels=("", " ", "\t"))
    with pytest.raises(ValueError, match=r"sheet\.csv.*3 rows.*label"):
        read_csv(path, GRAPHS)


CLAIMS = [
    "=1+1",
    "+5 is positive",
    "-3 is negative",
    "@home",
    "'=quoted",
    "'plain",
    "\t=x",
]


def test_no_claim_is_written_as_a_formula_and_all_come_back(tmp_path):
    graphs = [ReasoningGraph(None, (), claims=CLAIMS, id="=id", problem="-q")]
    path = tmp_path / "t.csv"
    write_csv(path, graphs, [["true"] * len(CLAIMS)])
    with open(path, encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    assert read_csv(path, graphs) == {"imported": [["true"] * len(CLAIMS)]}


@pytest.mark.parametrize(
    ("yes", "no"), [("Yes", "no"), ("Supported", "UNSUPPORTED"), ("1", "0")]
)
def test_words_with_a_known_meaning_are_labels(tmp_path, yes, no):
    path = sheet(tmp_path / "t.csv", "utf-8", labels=(yes, "no_claim", no))
    assert read_csv(path, GRAPHS) == {"imported": [["true", "no claim"], ["false"]]}
    tasks = tasks_with(annotation(no))
    assert from_label_studio(tasks, GRAPHS) == {"1": [["false", None], [None]]}


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ("three,1,9 is prime,true", "problem_id", "'three'"),
        ("two,2,9 is prime,true", "claim_number", "'2'"),
        ("two,1,9 is odd,true", "claim", "9 is odd"),
        ("two,1,9 is prime,perhaps", "label", "'perhaps'"),
    ],
)
def test_the_row_the_column_and_the_value_are_named(tmp_path, row, column, value):
    path = tmp_path / "t.csv"
    rows = ["problem_id,claim_number,claim,label", "one,1,7 is prime,", row]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=rf't\.csv, row 3, .*"{column}": .*{value}'):
        read_csv(path, GRAPHS)


def test_a_table_has_the_question_and_the_passages_if_there_are_any(tmp_path):
    path = tmp_path / "t.csv"
    graphs = [GRAPHS[0].replace(problem="odd?", context=["=a", "b"]), GRAPHS[1]]
    for problems, extra in ((graphs, {"problem", "context"}), (GRAPHS, set())):
        write_csv(path, problems, WORDS)
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = next(csv.DictReader(file))
        assert {"problem", "context"} & first.keys() == extra
        assert first.get("context") in ("'=a\n\nb", None)
        assert read_csv(path, problems) == {"imported": WORDS}


def test_a_sheet_in_which_one_person_says_two_things(tmp_path):
    path = tmp_path / "t.csv"
    head = "problem_id,claim_number,label,annotator,when\n"
    rows = "one,1,true,ann,2026-01-02\none,1,false,ann,2026-01-01\n"
    path.write_text(head + rows)
    with pytest.warns(LabelWarning, match="ann"):
        assert read_csv(path, GRAPHS) == {"ann": [["true", None], [None]]}
    path.write_text(head + rows.replace("2026-01-02", ""))
    with pytest.raises(ValueError, match="ann"):
        read_csv(path, GRAPHS)


def test_all_rows_that_are_wrong_are_named(tmp_path):
    path = tmp_path / "t.csv"
    wrong = ["one,1,7 is prime,maybe", "three,1,,true", "two,1,9 is odd,true"]
    rows = ["problem_id,claim_number,claim,label", "one,1,7 is prime,true", *wrong]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(
        ValueError, match=r"row 3.*maybe.*row 4.*three.*row 5.*9 is odd"
    ):
        read_csv(path, GRAPHS)
    path.write_text("\n".join([*rows, *wrong[:1] * 30]) + "\n")
    with pytest.raises(ValueError, match=r"row 22.*13 other rows"):
        read_csv(path, GRAPHS)


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_the_delimiters_of_spreadsheets(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    table = "problem_id,claim_number,claim,label\none,1,7 is prime,TRUE\n"
    path.write_text(table.replace(",", delimiter))
    assert read_csv(path, GRAPHS) == {"imported": [["true", None], [None]]}


def test_a_row_with_more_cells_than_columns_is_refused(tmp_path):
    """A comma in a text without quotation marks moves the cells after it."""
    path = tmp_path / "labels.csv"
    head = "problem_id,claim_number,premises,label,note\n"
    path.write_text(head + "one,1,,true,x\none,2,a,true,false,x\n")
    with pytest.raises(ValueError, match=r"labels\.csv.*row.* \[3\]"):
        read_csv(path, GRAPHS)
    path.write_text(head + "one,1,,true,x,,\n")
    assert read_csv(path, GRAPHS) == {"imported": [["true", None], [None]]}


@pytest.mark.parametrize("name", ["labels.tsv", "labels.txt", "labels.CSV"])
def test_sheets_are_recognised_by_their_content(tmp_path, name, capsys):
    source, path = tmp_path / "p.jsonl", tmp_path / name
    write_jsonl(source, GRAPHS)
    path.write_text("problem_id\tclaim_number\tlabel\none\t1\ttrue\n", "utf-16")
    command = ["label", str(source), "--no-page", "-o", str(tmp_path / "o")]
    assert main([*command, "--import", str(path)]) == 0
    assert "imported 1" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"[1]\n[2]\n", b"[{", b"PK\x03\x04\x14\0\0\0"])
def test_an_import_that_is_neither_json_nor_a_sheet_is_named(tmp_path, capsys, content):
    source, path = tmp_path / "p.jsonl", tmp_path / "labels.json"
    write_jsonl(source, GRAPHS)
    path.write_bytes(content)
    command = ["label", str(source), "--no-page", "-o", str(tmp_path / "o")]
    assert main([*command, "--import", str(path)]) == 2
    assert "labels.json" in capsys.readouterr().err


def test_two_columns_of_labels_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("problem_id,claim_number,label,label\none,1,true,false\n")
    with pytest.raises(ValueError, match="'label'"):
        read_csv(path, GRAPHS)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_encodings_that_are_not_read_are_named(tmp_path, encoding):
    path = tmp_path / "t.csv"
    text = "problem_id,claim_number,label\none,1,true\n"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(ValueError, match=r"t\.csv.*UTF-16.*CSV UTF-8"):
        read_csv(path, GRAPHS)


def test_people_whose_address_is_not_exported_are_told_apart():
    both = tasks_with(
        annotation("true", by={"id": 7}), annotation("false", by={"id": 8})
    )
    assert from_label_studio(both, GRAPHS) == {
        "7": [["true", None], [None]],
        "8": [["false", None], [None]],
    }


def test_a_choice_that_is_no_list_and_a_result_that_is_none():
    """The letters of a word are no choices."""
    result = annotation("false")["result"][0] | {"value": {"choices": "false"}}
    for results in ([result], result):
        task = tasks_with(annotation("false") | {"result": results})
        assert list(from_label_studio(task, GRAPHS).values()) == [
            [["false", None], [None]]
        ]


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("false", "'false'"),
        ([3], "3"),
        ([{"from_name": "verdict", "value": {"choices": [{"text": "false"}]}}], "text"),
        ([{"from_name": "verdict", "value": "false"}], "verdict"),
    ],
)
def test_results_of_other_forms_are_shown(result, shown):
    with pytest.raises(ValueError, match=shown):
        from_label_studio(tasks_with(annotation("true") | {"result": result}), GRAPHS)


def test_a_quotation_without_an_end_is_refused(tmp_path):
    """All rows after it would be one cell."""
    path = tmp_path / "t.csv"
    path.write_text('problem_id,claim_number,label,note\none,1,true,"x\none,2,false,\n')
    with pytest.raises(ValueError, match=r"t\.csv.*quotation"):
        read_csv(path, GRAPHS)


def test_numbers_in_the_place_of_annotations_are_refused():
    with pytest.raises(ValueError, match=r"12.*JSON"):
        from_label_studio([to_label_studio(GRAPHS)[0] | {"annotations": [12]}], GRAPHS)
