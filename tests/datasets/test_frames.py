"""Tables with one row per claim become problems, and problems become tables."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdcf import ReasoningGraph
from skdcf.datasets import from_frame, to_frame

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


@st.composite
def problems(draw):
    """Problems as a table can contain them, with their labels."""
    n_features = draw(st.integers(0, 2))
    row = [st.floats(-1e300, 1e300)] * n_features
    names = [f"f{j}" for j in range(n_features)] or None
    claims = st.lists(
        st.tuples(st.text(), st.sampled_from([1, 0, -1]), *row),
        min_size=1,
        max_size=4,
        unique_by=lambda claim: claim[0],
    )
    graphs, labels = [], []
    for id in draw(st.lists(st.integers() | st.text(), min_size=1, unique_by=str)):
        texts, verdicts, *columns = zip(*draw(claims), strict=True)
        features = list(zip(*columns, strict=True)) or None
        more = {"problem": draw(st.text()), "feature_names": names, "id": id}
        graphs.append(ReasoningGraph(features, claims=texts, **more))
        labels.append(list(verdicts))
    return graphs, labels, names or []


@settings(max_examples=30, deadline=None)
@given(problems())
def test_a_table_of_problems_is_read_back(given):
    graphs, labels, features = given
    names = {"claim": "claim", "answer": "answer", "question": "question"}
    frame = to_frame(graphs, labels)
    back = from_frame(frame, label="label", features=features, **names)
    assert list(back.graphs) == graphs
    assert [y.tolist() for y in back.labels] == labels
    del names["question"]
    back = from_frame(to_frame([g.replace(id=None) for g in graphs]), **names)
    assert back.graphs.ids.tolist() == list(range(len(graphs))) and back.labels is None


@pytest.mark.parametrize("blank", [None, math.nan, pd.NA, "", " "])
def test_a_blank_label_is_unknown(blank):
    right = pd.Series([1, blank, False, blank], dtype=object)
    data = from_frame(table(right=right), **NAMES)
    assert [y.tolist() for y in data.labels] == [[1, 0], [-1, -1]]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int8", "object"])
def test_named_columns_of_any_numeric_type_are_read(dtype):
    frame = table(score=[3, 2, 1, 0]).astype({"right": dtype, "score": dtype})
    data = from_frame(frame, features=["score"], **NAMES)
    assert [g.claims for g in data.graphs] == [("a", "c"), ("b", "d")]
    assert [g.problem for g in data.graphs] == ["P?", "Q?"]
    assert [y.tolist() for y in data.labels] == [[1, -1], [0, 1]]
    assert data.graphs.features.ravel().tolist() == [3, 1, 2, 0]


@pytest.mark.parametrize(
    ("name", "values", "place"),
    [
        ("text", [None, 3], r'"p": claims\[1\]'),
        ("id", [math.nan, 1.0], "'id', row 2"),
        ("asked", [None, "R?"], '"p".*asked'),
        ("right", [2, 0.5, "true"], r'"p": labels\[1\]'),
        ("score", ["0.9", None], r'"p": features\[1\]\[0\]'),
    ],
)
def test_a_bad_cell_is_named_by_place_and_value(name, values, place):
    for value in values:
        frame = table().astype({name: object})
        frame.loc[2, name] = value
        with pytest.raises(ValueError, match=f"{place}.*{re.escape(repr(value))}"):
            from_frame(frame, features=["score"], **NAMES)


@pytest.mark.parametrize("cells", [["yes", "no", "", None], [True] * 4])
def test_a_column_without_numbers_is_refused_with_the_remedy(cells):
    frame = table(cited=cells)
    with pytest.raises(ValueError, match=f"'cited'.*{cells[0]!r}.*yes by 1"):
        from_frame(frame, features=["cited"], **NAMES)


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
    equal = frame.assign(label=1)
    remedy = r".*'It is tall[.]'.*'annotator'.*drop_duplicates\(\['problem', 'text'\]\)"
    for wrong in (frame, equal):
        with pytest.raises(ValueError, match=remedy):
            from_frame(wrong, **names)
    one = frame.drop_duplicates(["problem", "text"])
    assert from_frame(one, **names).labels[0].tolist() == [1, 0]
    # An answer may state something twice.
    assert from_frame(equal[:3], **names).graphs[0].n_claims == 3


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ({"id": [1]}, {}, "DataFrame, got a dict"),
        (table().iloc[:0], {}, "at least one"),
        (table(), {"claim": "txt"}, r"'txt'.*'text'"),
        (table(), {"features": "score"}, "features .*str"),
        (table(), {"features": ["right"]}, "'right'"),
        (pd.concat([table(), table()[["text"]]], axis=1), {}, "'text'"),
    ],
)
def test_what_cannot_be_read_is_named(frame, options, message):
    with pytest.raises(ValueError, match=message):
        from_frame(frame, **(NAMES | options))


@pytest.mark.parametrize("more", [{"id": 1}, {"feature_names": ["claim"]}])
def test_what_a_table_cannot_tell_apart_is_refused(more):
    graph = ReasoningGraph([[1.0]], claims=["a"], **more)
    with pytest.raises(ValueError, match=r"ids.*claim"):
        to_frame([graph, graph])
