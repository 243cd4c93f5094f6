"""Tables with one row per claim become problems."""

import math
import re

import pytest

from skdcf.adapters import from_frame

pd = pytest.importorskip("pandas")

NAMES = {"claim": "text", "answer": "id", "label": "right", "question": "asked"}


def table(**columns):
    return pd.DataFrame(
        {
            "id": ["p", "q", "p", "q"],
            "text": ["a", "b", "c", "d"],
            "asked": ["P?", "Q?", "P?", "Q?"],
            "right": [1, 0, -1, 1],
            "score": [0.9, 0.2, 0.5, 0.1],
            "human_score": [5, 1, 2, 3],
        }
        | columns
    )


def test_named_columns_are_read_and_others_left_alone():
    data = from_frame(table(), features=["score"], **NAMES)
    assert [g.id for g in data.graphs] == ["p", "q"]
    assert [g.claims for g in data.graphs] == [("a", "c"), ("b", "d")]
    assert [g.problem for g in data.graphs] == ["P?", "Q?"]
    assert [g.features.ravel().tolist() for g in data.graphs] == [
        [0.9, 0.5],
        [0.2, 0.1],
    ]
    assert data.graphs.feature_names == ("score",)
    assert [y.tolist() for y in data.labels] == [[1, -1], [0, 1]]
    assert not data.graphs.edges_known.any()


def test_only_claims_and_answers_are_needed():
    data = from_frame(table(id=[3, 1, 3, 1]), claim="text", answer="id")
    assert [g.id for g in data.graphs] == [3, 1]
    assert data.labels is None and data.graphs.features is None
    assert [g.problem for g in data.graphs] == [None, None]


@pytest.mark.parametrize("blank", [None, math.nan, pd.NA, "", " "])
def test_a_blank_label_is_unknown(blank):
    right = pd.Series([1, blank, False, blank], dtype=object)
    data = from_frame(table(right=right), **NAMES)
    assert [y.tolist() for y in data.labels] == [[1, 0], [-1, -1]]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "float", "int8", "object"])
def test_labels_and_features_of_any_numeric_type(dtype):
    frame = table(score=[3, 2, 1, 0])
    frame = frame.astype({"right": dtype, "score": dtype})
    data = from_frame(frame, features=["score"], **NAMES)
    assert [y.tolist() for y in data.labels] == [[1, -1], [0, 1]]
    assert data.graphs.features.ravel().tolist() == [3, 1, 2, 0]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("text", [None, 3]),
        ("id", [math.nan, True, 1.0]),
        ("asked", [None, "R?"]),
        ("right", [2, 0.5, "true"]),
        ("score", [math.nan, math.inf, 10**400, "0.9", None]),
    ],
)
def test_a_bad_cell_is_named_by_column_row_and_value(name, values):
    for value in values:
        frame = table().astype({name: object})
        frame.loc[2, name] = value
        said = re.escape(repr(value))
        with pytest.raises(ValueError, match=f"column '{name}', row 2: .*{said}"):
            from_frame(frame, features=["score"], **NAMES)


def test_two_verdicts_on_a_claim_are_refused():
    frame = pd.DataFrame(
        {
            "problem": ["p"] * 4,
            "text": ["It is tall.", "It is tall.", "It is red.", "It is red."],
            "annotator": ["ann", "ben"] * 2,
            "label": [1, 0, 0, 0],
        }
    )
    names = {"claim": "text", "answer": "problem", "label": "label"}
    with pytest.raises(ValueError, match=r"row 1: .*'It is tall[.]'") as caught:
        from_frame(frame, **names)
    assert "'annotator'" in str(caught.value)
    assert "frame.drop_duplicates(['problem', 'text'])" in str(caught.value)
    one = frame.drop_duplicates(["problem", "text"])
    assert from_frame(one, **names).labels[0].tolist() == [1, 0]
    equal = frame.assign(label=1)
    with pytest.raises(ValueError, match=r"row 1: .*'annotator'"):
        from_frame(equal, **names)
    # An answer may state something twice.
    assert from_frame(equal[:3], **names).graphs[0].n_claims == 3


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ({"id": [1]}, {}, "DataFrame, got a dict"),
        (table().iloc[:0], {}, "at least one"),
        (table(), {"claim": "txt"}, r"'txt'.*'text'"),
        (table(), {"features": ["score", "f"]}, "'f'"),
        (table(), {"features": "score"}, "features .*str"),
        (table(), {"features": ["right"]}, "'right'"),
        (table(), {"answer": "text"}, "'text'"),
        (pd.concat([table(), table()[["text"]]], axis=1), {}, "'text'"),
    ],
)
def test_what_cannot_be_read_is_named(frame, options, message):
    with pytest.raises(ValueError, match=message):
        from_frame(frame, **(NAMES | options))
