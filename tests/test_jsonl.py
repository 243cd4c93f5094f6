"""JSON Lines: what is written comes back, and broken lines are named."""

import ast
import json
import math
import re
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import (
    iter_jsonl,
    jsonl_schema,
    make_reasoning_graphs,
    question_groups,
    read_jsonl,
    write_jsonl,
)

TEXTS = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "",
            "\\frac{1}{2} \\\\ \\n",
            'quote " and \u2028 line',
            "שלום",
            "🧮\0",
            "\ud800",
        ]
    ),
)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def problems(draw, width=None, features=None):
    """A graph of any kind, with what may be known about it, or without.

    ``width`` is the number of features and ``features`` says whether there are any;
    None leaves them open.
    """
    n = draw(st.integers(0, 6))
    order = draw(st.permutations(range(n)))
    possible = [(order[u], order[v]) for v in range(n) for u in range(v)]
    edges = [pair for pair in possible if draw(st.booleans())]
    width = draw(st.integers(0, 3)) if width is None else width
    features = draw(st.booleans()) if features is None else features
    numbers = st.floats(-1e300, 1e300)
    rows = st.lists(numbers, min_size=width, max_size=width)
    texts = st.lists(TEXTS, min_size=n, max_size=n)
    table = draw(st.lists(rows, min_size=n, max_size=n))
    table = np.array(table, dtype=float).reshape(n, width)
    graph = ReasoningGraph(
        table if features else None,
        edges,
        claims=draw(st.none() | texts) if features else draw(texts),
        problem=draw(st.none() | TEXTS),
        alternatives=draw(st.none() | st.lists(TEXTS, max_size=3)),
        feature_names=[f"name {j} é" for j in range(width)],
        id=draw(st.none() | st.integers() | TEXTS),
    )
    label = st.sampled_from([1, 0, -1, True, False])
    return (
        graph,
        draw(st.none() | st.lists(label, min_size=n, max_size=n)),
        draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n)),
        draw(st.none() | st.integers() | TEXTS),
        draw(st.none() | st.dictionaries(TEXTS, JSON_VALUES, max_size=3)),
    )


def files(**limits):
    return st.lists(problems(**limits), min_size=1, max_size=5)


def same(values, expected):
    if expected is None:
        return values is None
    return values is not None and np.asarray(values).tolist() == list(expected)


def written(folder, rows):
    graphs, labels, masks, groups, metadata = map(list, zip(*rows, strict=True))
    more = {"groups": groups, "metadata": metadata}
    return write_jsonl(folder / "problems.jsonl", graphs, labels, masks, **more)


@given(files())
def test_round_trip(tmp_path_factory, rows):
    path = written(tmp_path_factory.mktemp("jsonl"), rows)
    back = list(iter_jsonl(path))
    assert len(back) == len(rows)
    for found, (graph, labels, mask, group, metadata) in zip(back, rows, strict=True):
        assert found.graph == graph
        assert same(found.labels, labels)
        assert same(found.mask, mask)
        assert (found.group, type(found.group)) == (group, type(group))
        assert json.dumps(found.metadata) == json.dumps(metadata)


@given(st.data(), st.integers(0, 3), st.booleans())
def test_all_at_once_as_one_at_a_time(tmp_path_factory, data, width, features):
    """The whole file holds what its lines hold."""
    rows = data.draw(files(width=width, features=features))
    path = written(tmp_path_factory.mktemp("jsonl"), rows)
    single, back = list(iter_jsonl(path)), read_jsonl(path)
    assert isinstance(back.graphs, GraphBatch)
    assert list(back.graphs) == [row.graph for row in single]
    assert back.dropped == []
    columns = {"masks": "mask", "groups": "group", "metadata": "metadata"}
    for name, field in columns.items():
        expected = [getattr(row, field) for row in single]
        if all(value is None for value in expected):
            assert back[name] is None
        elif name == "masks":
            assert all(map(same, back[name], expected))
        else:
            assert list(back[name]) == expected
    judged = [row.labels for row in single]
    if all(labels is None for labels in judged):
        assert back.labels is None
    else:
        judged = [
            [-1] * row.graph.n_claims if row.labels is None else row.labels
            for row in single
        ]
        assert all(map(same, back.labels, judged))
        assert {y.dtype for y in back.labels} == {np.dtype(np.int64)}


@given(problems())
def test_lines_follow_the_schema(tmp_path_factory, row):
    path = written(tmp_path_factory.mktemp("jsonl"), [row])
    check(json.loads(path.read_text("ascii")), jsonl_schema())


TYPES = {"object": dict, "array": list, "string": str, "null": type(None)}
TYPES |= {"boolean": bool, "integer": int, "number": (int, float)}


def has_type(value, kinds):
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, TYPES[kind]) for kind in kinds)


# As much of JSON schema as ours uses.
KEYWORDS = {
    "type": has_type,
    "const": lambda value, wanted: value == wanted and type(value) is type(wanted),
    "enum": lambda value, wanted: (
        (value, type(value)) in [(w, type(w)) for w in wanted]
    ),
    "anyOf": lambda value, wanted: any(
        set(w["required"]) <= set(value) for w in wanted
    ),
    "required": lambda value, wanted: set(wanted) <= set(value),
    "minItems": lambda value, wanted: len(value) >= wanted,
    "maxItems": lambda value, wanted: len(value) <= wanted,
    "minimum": lambda value, wanted: value >= wanted,
    "additionalProperties": lambda value, wanted: wanted is False,
    "properties": lambda value, wanted: set(value) <= set(wanted),
    "items": lambda value, wanted: True,
}


def check(value, schema, where="line"):
    """Fails where the value breaks the schema, and on a keyword it does not know."""
    for keyword in set(schema) - {"$schema", "title", "description"}:
        assert KEYWORDS[keyword](value, schema[keyword]), (where, keyword)
    for key, part in schema.get("properties", {}).items():
        if key in value:
            check(value[key], part, f"{where}.{key}")
    for i, item in enumerate((value or []) if "items" in schema else []):
        check(item, schema["items"], f"{where}[{i}]")


def test_other_programs_can_read_the_lines(tmp_path):
    """ASCII, one object per line, and no number that JSON does not have."""
    graph = ReasoningGraph([[1e-300, 5e300]], [], claims=["a\u2028b\nc 🧮"], id=3)
    path = write_jsonl(tmp_path / "a.jsonl", [graph] * 3)
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == 3
    for line in lines:
        record = json.loads(line.decode("ascii"), parse_constant=pytest.fail)
        assert record["claims"] == ["a\u2028b\nc 🧮"]
        assert record["version"] == 1


def test_ten_thousand_claims(tmp_path):
    n = 10_000
    rng = np.random.default_rng(0)
    graph = ReasoningGraph(
        rng.normal(size=(n, 3)),
        [(v // 2, v) for v in range(1, n)],
        claims=[f"claim {v}: $x_{{{v}}}$" for v in range(n)],
    )
    labels, mask = rng.integers(0, 2, n), rng.random(n) < 0.5
    back = read_jsonl(write_jsonl(tmp_path / "a.jsonl", [graph], [labels], [mask]))
    assert list(back.graphs) == [graph]
    assert (back.labels[0] == labels).all()
    assert (back.masks[0] == mask).all()
    assert back.masks[0].dtype == bool


def test_batches_flat_labels_and_predictions(tmp_path):
    graphs, labels = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    masks = HardCF("frequency-score", alpha=0.2).fit(graphs, labels).predict(graphs)
    path = write_jsonl(tmp_path / "a.jsonl", graphs, np.concatenate(labels), masks)
    back = read_jsonl(path)
    assert list(back.graphs) == list(graphs)
    assert all(map(same, back.labels, labels))
    assert all(map(same, back.masks, masks))


def test_without_labels_and_masks(tmp_path):
    graph = ReasoningGraph(None, [], claims=["a"])
    back = read_jsonl(write_jsonl(tmp_path / "a.jsonl", [graph]))
    assert back.labels is None
    assert back.masks is None


GOOD = {"version": 1, "claims": ["a", "b"], "edges": [[0, 1]]}
BROKEN = {
    "not JSON": (
        b'{"version": 1,',
        "not a JSON object on one line: Expecting .* at character 15",
    ),
    "array": (b"[1]", "list instead of an object"),
    "no version": ({**GOOD, "version": None}, "version is None"),
    "version": ({**GOOD, "version": 2}, "version is 2, this program reads 1"),
    "version true": ({**GOOD, "version": True}, "version is True"),
    "cycle": ({**GOOD, "edges": [[0, 1], [1, 0]]}, "cycle"),
    "range": ({**GOOD, "edges": [[0, 2]]}, "only 2 claims"),
    "edges": ({**GOOD, "edges": [[0, 1.0]]}, "not a pair of whole numbers"),
    "triple": ({**GOOD, "edges": [[0, 1, 2]]}, "not a pair of whole numbers"),
    "alternatives as one text": (
        {**GOOD, "alternatives": "a"},
        "alternatives must be a list",
    ),
    "null alternative": (
        {**GOOD, "alternatives": [None]},
        "alternatives must be a list of strings",
    ),
    "edges of text": ({**GOOD, "edges": "01"}, "edges must be a list"),
    "context": ({**GOOD, "context": "a passage"}, "context must be a list of strings"),
    "null context": ({**GOOD, "context": [None]}, "context must be a list of strings"),
    "nothing": ({"problem": "?"}, "neither claims nor features"),
    "labels": (
        {**GOOD, "labels": [1]},
        r"labels of shape \(1,\), but there are 2 claims",
    ),
    "label": ({**GOOD, "labels": [1, 2]}, "claim 1: the label is 2; labels are 1"),
    "label null": ({**GOOD, "labels": [1, None]}, "the label is None; .* or -1"),
    "label text": ({**GOOD, "labels": ["1", 0]}, "claim 0: the label is '1'"),
    "mask": ({**GOOD, "mask": [True, 1]}, "mask of claim 1 is 1"),
    "text": ({**GOOD, "claims": ["a", 3]}, "claims must be a list of strings"),
    "unknown": ({**GOOD, "label": [1, 0]}, r"unknown keys \['label'\]"),
    "group": ({**GOOD, "group": 1.5}, "group must be a string or a whole number"),
    "group true": ({**GOOD, "group": False}, "group must be a string or a whole"),
    "metadata": ({**GOOD, "metadata": [1]}, "metadata must be an object"),
    "NaN metadata": (b'{"claims": [], "metadata": {"a": NaN}}', "NaN is no JSON"),
    "question": ({**GOOD, "problem": 3}, "problem must be a string"),
    "id": ({**GOOD, "id": [1]}, "id must be a string or a whole number"),
    "features": ({**GOOD, "features": [[1.0], [1.0, 2.0]]}, "features"),
    "text feature": ({**GOOD, "features": [["x"], ["y"]]}, "features"),
    "NaN": (b'{"edges": [], "features": [[NaN]]}', "NaN is no JSON: .* must be finite"),
    "huge": (
        b'{"version": 1, "edges": [], "features": [[1' + b"0" * 400 + b"]]}",
        "too large",
    ),
    "quoted": (
        {**GOOD, "features": [[1.0], ["0.5"]]},
        "features of claim 1 hold '0.5'",
    ),
    "true feature": ({**GOOD, "features": [[True], [1.0]]}, "claim 0 hold True"),
    "null feature": ({**GOOD, "features": [[None], [1.0]]}, "claim 0 hold None"),
    "no rows": ({"version": 1, "edges": [], "features": {}}, "must be a list of rows"),
    "text rows": (
        {"version": 1, "edges": [], "features": ""},
        "must be a list of rows",
    ),
    "flat": ({**GOOD, "features": [1.0, 2.0]}, "must be a list of rows"),
    "nesting": (b"[" * 200_000, "nested too deeply"),
    "bytes": (b'{"version": 1, "edges": [], "claims": ["\xff"]}', "utf-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_lines_are_named_and_the_others_kept(tmp_path, name):
    line, message = BROKEN[name]
    line = line if isinstance(line, bytes) else json.dumps(line).encode()
    good = json.dumps(GOOD).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([good, b"", line, good]))
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 3: .*{message}") as caught:
        read_jsonl(path)
    assert "drop" not in str(caught.value)  # no advice to delete data
    data = read_jsonl(path, on_invalid="drop")
    assert len(data.graphs) == 2
    ((number, reason),) = data.dropped
    assert number == 3
    assert re.search(message, reason)


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n")
    assert read_jsonl(path).graphs[0].claims == ("a", "b")


def test_streaming_out(tmp_path):
    """The first problem is there before the second line is looked at."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**GOOD, "labels": [1, 0]}) + "\nbroken\n")
    rows = iter_jsonl(path)
    graph, labels, mask, group, metadata = next(rows)
    assert graph.claims == ("a", "b")
    assert labels.tolist() == [1, 0]
    assert mask is group is metadata is None
    with pytest.raises(ValueError, match="line 2"):
        next(rows)
    assert len(list(iter_jsonl(path, on_invalid="drop"))) == 1


def test_streaming_in(tmp_path):
    """A generator is written as it comes, never held."""
    alive = []

    def graphs():
        for v in range(100):
            alive.append(v)
            yield ReasoningGraph([[float(v)]], [])

    path = write_jsonl(tmp_path / "a.jsonl", graphs(), ([v % 2] for v in range(100)))
    assert len(alive) == 100
    assert [int(y[0]) for y in read_jsonl(path).labels] == [v % 2 for v in range(100)]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interruption_leaves_the_old_file(tmp_path, error):
    old = ReasoningGraph([[1.0]], [])
    path = write_jsonl(tmp_path / "a.jsonl", [old])

    def graphs():
        yield ReasoningGraph([[2.0]], [])
        raise error

    with pytest.raises(error):
        write_jsonl(path, graphs())
    assert list(read_jsonl(path).graphs) == [old]
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_readers_see_the_old_or_the_new_file(tmp_path):
    """While it is rewritten, never half of it."""
    path = tmp_path / "a.jsonl"
    sizes = (3, 40)
    versions = [[ReasoningGraph([[float(n)]], [])] * n for n in sizes]
    write_jsonl(path, versions[0])
    seen, done = set(), threading.Event()

    def read():
        while not done.is_set():
            seen.add(len(read_jsonl(path).graphs))

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(20):
        write_jsonl(path, versions[k % 2])
    done.set()
    reader.join()
    assert seen <= set(sizes)


GRAPH = ReasoningGraph([[1.0], [2.0]], [(0, 1)], claims=["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([GRAPH], [[1, 0], [1, 1]]), "there are only 1 graphs"),
        (([GRAPH, GRAPH], [[1, 0]]), "there are only 1 labels"),
        (([GRAPH], [[1, 0]], []), "there are only 0 masks"),
        (([GRAPH], [[1]]), r"problem 0: labels of shape \(1,\)"),
        (([GRAPH], [[1, 2]]), "problem 0: claim 1: the label is 2; labels are 1"),
        (([GRAPH], [[1, math.nan]]), "the label is nan; .* or -1"),
        (
            ([GRAPH], None, [[1, math.nan]]),
            "problem 0: mask of claim 0 is 1, but must be",
        ),
        (([GRAPH], None, [[True]]), "problem 0: mask of shape"),
        ((GRAPH,), "graphs is ReasoningGraph.*: pass a list"),
        ((None,), "graphs is None: pass a list"),
        (([{"claims": []}],), "problem 0: a dict instead of a ReasoningGraph"),
        ((GraphBatch.pack([GRAPH]), np.ones(3)), r"\(3,\) values but 2 claims"),
        (([GRAPH.replace(id=(1, 2))],), "problem 0: id must be"),
    ],
)
def test_what_cannot_be_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_jsonl(tmp_path / "a.jsonl", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_numpy_scalars_are_written_as_plain_values(tmp_path):
    """The graph classes take them, so they have to be written, too."""
    batch = GraphBatch.from_arrays(
        None,
        [0, 2, 3],
        claims=np.array(["a", "b", "ש"]),
        problems=np.array(["p", "q"]),
        ids=np.arange(2),
    )
    path = write_jsonl(tmp_path / "a.jsonl", batch)
    assert list(read_jsonl(path).graphs) == list(batch)
    records = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert [r["id"] for r in records] == [0, 1]
    assert records[0]["claims"] == ["a", "b"]
    single = GRAPH.replace(id=np.str_("x"), problem=np.str_("?"))
    assert list(read_jsonl(write_jsonl(path, [single])).graphs) == [single]
    for id in (np.float64(1), np.bool_(True)):
        with pytest.raises(ValueError, match="id must be"):
            write_jsonl(path, [GRAPH.replace(id=id)])


def test_schema_refuses_what_the_reader_refuses():
    check(GOOD, jsonl_schema())
    names = (
        "label",
        "label null",
        "version",
        "group",
        "metadata",
        "nothing",
        "unknown",
        "mask",
        "triple",
        "text",
    )
    for name in (*names, "quoted", "true feature", "null feature", "no rows", "flat"):
        with pytest.raises(AssertionError):
            check(BROKEN[name][0], jsonl_schema())


def test_bad_choice(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH])
    for read in (read_jsonl, iter_jsonl):
        with pytest.raises(
            ValueError, match="on_invalid is 'skip', but must be one of"
        ):
            read(path, on_invalid="skip")


def test_the_message_names_every_key_of_the_schema(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"claims": [], "source": "web"}')
    with pytest.raises(ValueError, match="unknown keys") as caught:
        read_jsonl(path)
    known = re.search(r"may hold (\[.*?\])", str(caught.value)).group(1)
    assert sorted(ast.literal_eval(known)) == sorted(jsonl_schema()["properties"])
    assert 'called "metadata"' in str(caught.value)


def test_lines_of_other_programs(tmp_path):
    """No version, no edges, labels as booleans."""
    path = tmp_path / "a.jsonl"
    record = {"claims": ["a", "b", "c"], "labels": [True, False, -1]}
    path.write_text(json.dumps(record) + "\n" + json.dumps({"claims": []}))
    check(record, jsonl_schema())
    data = read_jsonl(path)
    assert len(data.graphs.edges) == 0
    assert [y.tolist() for y in data.labels] == [[1, 0, -1], []]
    assert data.labels[0].dtype == np.int64


def test_unlabelled_problems_are_unknown_where_others_have_labels(tmp_path):
    path = write_jsonl(
        tmp_path / "a.jsonl", [GRAPH] * 2, [None, [1, 0]], groups=["x", 3]
    )
    data = read_jsonl(path)
    assert [y.tolist() for y in data.labels] == [[-1, -1], [1, 0]]
    assert data.groups.tolist() == ["x", 3]
    assert [row.labels is None for row in iter_jsonl(path)] == [True, False]


def test_groups_of_the_data_sets_come_back(tmp_path):
    groups = question_groups(["What is 2 + 2?", "Why?"])
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH] * 2, groups=groups)
    back = read_jsonl(path).groups
    assert back.dtype == groups.dtype
    assert back.tolist() == groups.tolist()
    huge = [2**63, -5]
    path = write_jsonl(path, [GRAPH] * 2, groups=huge)
    assert read_jsonl(path).groups.tolist() == huge


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": "a"}, "groups is 'a': pass a list, one entry per problem"),
        ({"groups": []}, "there are only 0 groups"),
        ({"groups": [1.5]}, "problem 0: group must be a string or a whole number"),
        ({"groups": [False]}, "problem 0: group must be a string or a whole number"),
        ({"metadata": {"a": 1}}, "metadata is .*: pass a list"),
        ({"metadata": [[1]]}, "problem 0: metadata must be an object"),
        (
            {"metadata": [{"a": (1, 2)}]},
            "problem 0: metadata would not be read as it is",
        ),
        ({"metadata": [{1: 2}]}, "problem 0: metadata would not be read as it is"),
        ({"metadata": [{"a": math.nan}]}, "problem 0: .*not JSON compliant"),
        ({"metadata": [{"a": {1}}]}, "problem 0: .*not JSON serializable"),
    ],
)
def test_groups_and_metadata_that_cannot_be_written(tmp_path, more, message):
    with pytest.raises(ValueError, match=message):
        write_jsonl(tmp_path / "a.jsonl", [GRAPH], **more)
    assert list(tmp_path.iterdir()) == []


def test_numpy_scalars_in_metadata(tmp_path):
    metadata = [{"a": np.int64(3), "b": [np.float64(0.5), {"c": np.str_("x")}]}]
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH], metadata=metadata)
    assert read_jsonl(path).metadata == [{"a": 3, "b": [0.5, {"c": "x"}]}]


def test_problems_that_do_not_fit_into_one_batch(tmp_path):
    graphs = [GRAPH, GRAPH.replace(features=None)]
    path = write_jsonl(tmp_path / "a.jsonl", graphs)
    assert [row.graph for row in iter_jsonl(path)] == graphs
    with pytest.raises(ValueError, match=r"a\.jsonl: problem 1.*some have none"):
        read_jsonl(path)


def test_files_without_problems(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [])
    assert list(iter_jsonl(path)) == []
    with pytest.raises(ValueError, match=r"a\.jsonl: there is no problem in the data"):
        read_jsonl(path)
    path.write_text("broken")
    with pytest.raises(ValueError, match="no problem is left: 1 were dropped"):
        read_jsonl(path, on_invalid="drop")


def test_metadata_belongs_to_the_graph_too(tmp_path):
    """So that a guarantee can be asked for by it after reading."""
    graphs, _ = make_reasoning_graphs(2, random_state=0, return_X_y=True)
    path = write_jsonl(tmp_path / "a.jsonl", graphs, metadata=[{"model": "a"}, None])
    back = read_jsonl(path)
    assert list(back.graphs.metadata) == back.metadata == [{"model": "a"}, None]
    again = read_jsonl(write_jsonl(tmp_path / "b.jsonl", back.graphs))
    assert again.metadata == back.metadata
