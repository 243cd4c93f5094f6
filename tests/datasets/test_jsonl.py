"""JSON Lines: what is written comes back, and broken lines are named."""

import contextlib
import gzip
import io
import json
import math
import re
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import (
    build_dataset,
    jsonl_partitions,
    make_reasoning_graphs,
    read_jsonl,
    write_jsonl,
)
from skdcf.datasets.jsonl import iter_jsonl
from skdcf.datasets.records import jsonl_schema
from skdcf.exceptions import UnknownKeyWarning

TEXTS = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "",
            "\\frac{1}{2} \\\\ \\n",
            'quote " and \u2028 line',
            "שלום",
            "🧮\0",
            "\ufffd",
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


@settings(max_examples=10)
@given(files())
def test_round_trip(tmp_path_factory, rows):
    path = written(tmp_path_factory.mktemp("jsonl"), rows)
    back = list(iter_jsonl(path))
    assert len(back) == len(rows)
    for found, (graph, labels, mask, group, metadata) in zip(back, rows, strict=True):
        if group is not None:
            metadata = {**(metadata or {}), "group": group}
        assert found.graph == graph
        assert same(found.labels, labels)
        assert same(found.mask, mask)
        assert (found.group, type(found.group)) == (group, type(group))
        assert found.metadata == metadata == found.graph.metadata


@settings(max_examples=20)
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
    "minimum": lambda value, wanted: not isinstance(value, int) or value >= wanted,
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
        "Expecting .* at character 15",
    ),
    "array": (b"[1]", "must be an object, got list"),
    "version": ({**GOOD, "version": 2}, "version must be the number 1, .* is 2"),
    "version true": ({**GOOD, "version": True}, "version is True"),
    "cycle": ({**GOOD, "edges": [[0, 1], [1, 0]]}, "cycle"),
    "range": ({**GOOD, "edges": [[0, 2]]}, "edge .*2 claims"),
    "edges": (
        {**GOOD, "edges": [[0, 1.0]]},
        r"list of pairs .* edges\[0\]\[1\] is 1.0",
    ),
    "negative": ({**GOOD, "edges": [[0, -1]]}, r"from 0, but edges\[0\]\[1\] is -1"),
    "triple": ({**GOOD, "edges": [[0, 1, 2]]}, r"edges\[0\] is \[0, 1, 2\]"),
    "edges as text": ({**GOOD, "edges": "0 1"}, "edges must be a list of pairs"),
    "parents": ({"claims": ["a"], "parents": [["0"]]}, r"parents\[0\]\[0\] is '0'"),
    "too few parents": (
        {"claims": ["a", "b"], "parents": [[]]},
        r"2 claims.*1",
    ),
    "both": ({**GOOD, "parents": [[], [0]]}, r"edges.*parents"),
    "two questions": (
        {**GOOD, "problem": "?", "question": "!"},
        r"'problem'.*'question'",
    ),
    "alternatives as one text": (
        {**GOOD, "alternatives": "a"},
        "alternatives must be a list of texts",
    ),
    "null alternative": (
        {**GOOD, "alternatives": [None]},
        r"list of texts, but alternatives\[0\] is None",
    ),
    "context as number": ({**GOOD, "context": 3}, "context must be a text or a list"),
    "null passage": ({**GOOD, "context": ["a", None]}, r"context\[1\] is None"),
    "empty passage": (
        {**GOOD, "context": ["a", " "]},
        "passage 1 of the context is empty",
    ),
    "empty context": ({**GOOD, "context": ""}, "passage 0 of the context is empty"),
    "NUL": ({**GOOD, "context": "a\0b"}, "passage 0 .* a NUL at character 1"),
    "nothing": ({"problem": "?"}, r"claims.*features"),
    "labels": ({**GOOD, "labels": [1]}, r"labels.*2 claims.*1"),
    "label": ({**GOOD, "labels": [1, 2]}, r"must be a list of 1 .* labels\[1\] is 2"),
    "label text": ({**GOOD, "labels": ["1", 0]}, r"labels\[0\] is '1'"),
    "mask": ({**GOOD, "mask": [True, 1]}, r"true and false, but mask\[1\] is 1"),
    "text": ({**GOOD, "claims": ["a", 3]}, r"a list of texts, but claims\[1\] is 3"),
    "slip": ({**GOOD, "label": [1, 0]}, '"label": did you mean "labels"'),
    "transposed": ({**GOOD, "labesl": [1, 0]}, 'did you mean "labels"'),
    "capital": ({"Claims": ["a"]}, 'did you mean "claims"'),
    "group": ({**GOOD, "group": 1.5}, "group must be a text or a whole number"),
    "group true": ({**GOOD, "group": False}, "group must be a text or a whole number"),
    "two groups": (
        {**GOOD, "group": "a", "metadata": {"group": "b"}},
        r"'group'.*'a'.*'b'.*metadata",
    ),
    "group in metadata": ({**GOOD, "metadata": {"group": 1.5}}, "group must be a text"),
    "metadata": ({**GOOD, "metadata": [1]}, "metadata must be an object"),
    "NaN metadata": (
        b'{"claims": [], "metadata": {"a": NaN}}',
        "NaN is not valid JSON",
    ),
    "question": ({**GOOD, "problem": 3}, "problem must be a text, but problem is 3"),
    "id": ({**GOOD, "id": [1]}, "id must be a text or a whole number"),
    "features": ({**GOOD, "features": [[1.0], [1.0, 2.0]]}, "features"),
    "NaN": (b'{"edges": [], "features": [[NaN]]}', "NaN .*must be finite"),
    "huge": (
        b'{"version": 1, "edges": [], "features": [[1' + b"0" * 400 + b"]]}",
        "too large",
    ),
    "quoted": ({**GOOD, "features": [[1.0], ["0.5"]]}, r"features\[1\]\[0\] is '0.5'"),
    "true feature": ({**GOOD, "features": [[True], [1.0]]}, r"\[0\]\[0\] is True"),
    "null feature": ({**GOOD, "features": [[None], [1.0]]}, r"\[0\]\[0\] is None"),
    "no rows": ({"version": 1, "edges": [], "features": {}}, "must be a list of rows"),
    "text rows": (
        {"version": 1, "edges": [], "features": ""},
        "must be a list of rows",
    ),
    "flat": ({**GOOD, "features": [1.0, 2.0]}, r"features\[0\] is 1.0"),
    "nesting": (b"[" * 200_000, "nested brackets"),
    "bytes": (b'{"version": 1, "edges": [], "claims": ["\xff"]}', "0xff.*UTF-8"),
    "cp1252": (
        '{"edges": [], "claims": ["na\u00efve"]}'.encode("cp1252"),
        "0xef.*cp1252",
    ),
    "key twice": (
        b'{"edges": [], "claims": ["a"], "claims": ["b"]}',
        "'claims'.*repeated",
    ),
    "key twice inside": (
        b'{"edges": [], "claims": ["a"], "metadata": {"x": 1, "x": 2}}',
        "'x'.*repeated",
    ),
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
        (([GRAPH], [[1, 0], [1, 1]]), "only 1 .*graphs"),
        (([GRAPH, GRAPH], [[1, 0]]), "only 1 .*labels"),
        (([GRAPH], [[1, 0]], []), "only 0 .*masks"),
        (([GRAPH], [[1]]), r"problem 0: labels.*2 claims.*1"),
        (([GRAPH], [[1, 2]]), r"problem 0: labels must be .*, but labels\[1\] is 2"),
        (([GRAPH], [[1, math.nan]]), r"and -1 .*, but labels\[1\] is nan"),
        (
            ([GRAPH], None, [[1, math.nan]]),
            r"problem 0: mask must be .*, but mask\[0\] is 1",
        ),
        (([GRAPH], None, [[True]]), r"problem 0: mask.*2 claims, got 1"),
        ((GRAPH,), "graphs must be a list.*ReasoningGraph"),
        ((None,), "graphs must be a list.*None"),
        (([{"claims": []}],), "problem 0: graphs .*dict"),
        ((GraphBatch.from_graphs([GRAPH]), np.ones(3)), r"2.*3"),
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
        with pytest.raises(ValueError, match=r"id.*must"):
            write_jsonl(path, [GRAPH.replace(id=id)])


def test_schema_refuses_what_the_reader_refuses():
    check(GOOD, jsonl_schema())
    names = "label, version, group, metadata, nothing, mask, triple, text"
    names += ", quoted, true feature, null feature, no rows, flat, negative, parents"
    for name in names.split(", "):
        with pytest.raises(AssertionError):
            check(BROKEN[name][0], jsonl_schema())


def test_half_a_character_in_a_passage_is_not_written(tmp_path):
    """At reading it is replaced, in every text; see tests/apps/text/test_sentences.py."""
    graph = GRAPH.replace(context=["a", "b\ud800"])
    with pytest.raises(ValueError, match=r"passage 1 .*'\\ud800' at 1"):
        write_jsonl(tmp_path / "a.jsonl", [graph])


def test_bad_choice(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH])
    for read in (read_jsonl, iter_jsonl):
        with pytest.raises(ValueError, match=r"on_invalid .*'skip'"):
            read(path, on_invalid="skip")


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
    groups = np.array([2**62 + 1, 3])
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
        ({"groups": "a"}, "groups must be a list.*'a'"),
        ({"groups": []}, "only 0 .*groups"),
        ({"groups": [1.5]}, "problem 0: group must be a text or a whole number"),
        ({"groups": [False]}, "problem 0: group must be a text or a whole number"),
        ({"metadata": {"a": 1}}, "metadata must be a list"),
        ({"metadata": [[1]]}, "problem 0: metadata must be a dict"),
        (
            {"metadata": [{"a": (1, 2)}]},
            "problem 0: metadata .*would change",
        ),
        ({"metadata": [{1: 2}]}, "problem 0: metadata .*would change"),
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
    with pytest.raises(ValueError, match=r"a\.jsonl.*problem.*1"):
        read_jsonl(path)


def test_files_without_problems(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [])
    assert list(iter_jsonl(path)) == []
    with pytest.raises(ValueError, match=r"a\.jsonl.*data.*contain.*problem"):
        read_jsonl(path)
    path.write_text("broken")
    with pytest.raises(ValueError, match=r"1.*problems"):
        read_jsonl(path, on_invalid="drop")


def test_metadata_belongs_to_the_graph_too(tmp_path):
    """So that a guarantee can be asked for by it after reading."""
    graphs, _ = make_reasoning_graphs(2, random_state=0, return_X_y=True)
    path = write_jsonl(tmp_path / "a.jsonl", graphs, metadata=[{"model": "a"}, None])
    back = read_jsonl(path)
    assert list(back.graphs.metadata) == back.metadata == [{"model": "a"}, None]
    again = read_jsonl(write_jsonl(tmp_path / "b.jsonl", back.graphs))
    assert again.metadata == back.metadata


# --- lines as people have them ---------------------------------------------------------


def lines_of(tmp_path, *records, name="a.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_parents_and_question(tmp_path):
    record = {
        "claims": ["a", "b", "c"],
        "parents": [[], [], [1, 0]],
        "question": "Why?",
    }
    graph = read_jsonl(lines_of(tmp_path, record)).graphs[0]
    assert graph.edges.tolist() == [[0, 2], [1, 2]]
    assert graph.problem == "Why?"
    assert graph.edges_known


def test_edges_that_nobody_knows_and_edges_that_are_not_there(tmp_path):
    claims = {"claims": ["a", "b"]}
    more = [
        {},
        {"edges": None},
        {"parents": None},
        {"edges": []},
        {"parents": [[], []]},
    ]
    path = lines_of(tmp_path, *[claims | one for one in more])
    graphs = read_jsonl(path).graphs
    assert graphs.edges_known.tolist() == [False, False, False, True, True]
    again = read_jsonl(write_jsonl(tmp_path / "b.jsonl", graphs)).graphs
    assert again.edges_known.tolist() == graphs.edges_known.tolist()


def test_context_as_a_text_or_a_list(tmp_path):
    more = [
        {},
        {"context": None},
        {"context": []},
        {"context": "p"},
        {"context": ["p", "q"]},
    ]
    path = lines_of(tmp_path, *[{"claims": ["a"]} | one for one in more])
    graphs = read_jsonl(path).graphs
    assert [g.context for g in graphs] == [None, None, (), ("p",), ("p", "q")]
    again = read_jsonl(write_jsonl(tmp_path / "b.jsonl", graphs)).graphs
    assert list(again) == list(graphs)


def test_a_whole_collection_is_no_context(tmp_path):
    path = lines_of(tmp_path, GOOD, {**GOOD, "context": ["x" * 50_000_000]})
    with pytest.raises(ValueError, match=r"line 2: the context .* 50,000,000"):
        read_jsonl(path)


def test_keys_under_other_names(tmp_path):
    record = {"steps": ["a", "b"], "deps": [[], [0]], "verdicts": [1, 0], "who": "me"}
    names = {"steps": "claims", "deps": "parents", "verdicts": "labels", "none": "id"}
    path = lines_of(tmp_path, record)
    data = read_jsonl(path, rename=names | {"who": "group"})
    assert data.graphs[0].edges.tolist() == [[0, 1]]
    assert data.labels[0].tolist() == [1, 0]
    assert data.groups.tolist() == ["me"]
    (row,) = iter_jsonl(path, rename=names)
    assert row.graph.claims == ("a", "b")
    with pytest.raises(ValueError, match=r"'claims'.*twice"):
        read_jsonl(lines_of(tmp_path, record | {"claims": ["c"]}), rename=names)


@pytest.mark.parametrize(
    "passages", [["x y", "z"], [{"text": "x y"}, {"text": "z"}], "x y"]
)
def test_a_line_of_the_format_may_repeat_its_values(tmp_path, passages):
    log = {"turn": {"asked": "Who?"}, "found": {"hits": passages}}
    names = {"turn.asked": "problem", "found.hits": "context"}
    line = GOOD | {"problem": "Who?", "context": passages} | log
    [graph] = read_jsonl(lines_of(tmp_path, line), rename=names).graphs
    assert graph.problem == "Who?" and graph.context[0] == "x y"
    for key, value in {"problem": "When?", "context": ["other"]}.items():
        path = lines_of(tmp_path, line | {key: value})
        with pytest.raises(ValueError, match=f"'{key}'.*twice.*'(turn|found)"):
            read_jsonl(path, rename=names)


def test_several_keys_hold_the_passages(tmp_path):
    names = {"p2": "context", "p1": "context", "found.hits[].text": "context"}
    hits = {"hits": [{"text": "c"}, {"text": "d"}]}
    lines = [
        GOOD | {"p1": "a", "p2": ["b"], "found": hits},
        GOOD | {"p1": "a", "p2": None},
        GOOD | {"p1": None, "p2": None},
    ]
    graphs = read_jsonl(lines_of(tmp_path, *lines), rename=names).graphs
    assert list(map(list, graphs.context)) == [["b", "a", "c", "d"], ["a"], []]
    joined = lines[0] | {"context": ["b", "a", "c", "d"]}
    read_jsonl(lines_of(tmp_path, joined), rename=names)
    with pytest.raises(ValueError, match=r"'context'.*twice"):
        read_jsonl(lines_of(tmp_path, lines[0] | {"context": ["b"]}), rename=names)


def test_keys_of_ones_own_come_back_where_they_stood(tmp_path):
    own = {"ticket": 7, "tags": ["x", None], "nothing": None, "problem_id": "p"}
    record = {**GOOD, **own, "group": "g", "metadata": {"model": "m"}}
    data = read_jsonl(lines_of(tmp_path, record))
    assert own.items() <= data.metadata[0].items()
    assert data.metadata[0]["group"] == "g"
    for graphs in (data.graphs, data.graphs[[0]], list(data.graphs)):
        written = write_jsonl(tmp_path / "b.jsonl", graphs)
        assert json.loads(written.read_text()) == record
        assert read_jsonl(written).metadata == data.metadata
    again = write_jsonl(tmp_path / "c.jsonl", data.graphs, metadata=data.metadata)
    assert json.loads(again.read_text()).items() >= own.items()
    with pytest.raises(ValueError, match=r"'ticket'.*7.*8"):
        read_jsonl(lines_of(tmp_path, record | {"metadata": {"ticket": 8}}))


def test_near_misses_warn_where_the_key_is_there(tmp_path):
    record = {
        **GOOD,
        "labels": [1, 0],
        "label": "mine",
        "questions": 3,
        "question": "?",
    }
    with pytest.warns(UnknownKeyWarning) as caught:
        data = read_jsonl(lines_of(tmp_path, record, record))
    assert sorted(str(w.message).split(" is ")[0] for w in caught) == [
        'the unknown key "label"',
        'the unknown key "questions"',
    ]
    assert all(w.filename == __file__ for w in caught)
    assert data.metadata[1]["label"] == "mine"
    bad = {**GOOD, "label": [1, 0]}
    with (
        pytest.warns(UnknownKeyWarning),
        pytest.raises(ValueError, match=r"line 2: .*labels"),
    ):
        read_jsonl(lines_of(tmp_path, {**record, "questions": 3}, bad))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_files_of_other_programs(tmp_path, encoding, packed, stream):
    records = [{"claims": [text]} for text in ("ä\u0a0a", "🧮", "\u2028")]
    text = "\r\n".join(json.dumps(r, ensure_ascii=False) for r in records)
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    content = (mark + text).encode(encoding)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(content) if packed else content)
    source = io.BytesIO(path.read_bytes()) if stream else path
    assert [g.claims[0] for g in read_jsonl(source).graphs] == [
        "ä\u0a0a",
        "🧮",
        "\u2028",
    ]
    if stream:
        assert not source.closed
    elif packed or "16" in encoding:
        with pytest.raises(ValueError, match=r"UTF-8.*file"):
            jsonl_partitions(path)


@pytest.mark.parametrize(
    ("text", "read"),
    [(b"\xed\xa0\xbd\xed\xb8\x80", "\U0001f600"), (b"\xed\xa0\xbd", "\ufffd")],
)
def test_halves_of_characters_that_are_encoded_separately(tmp_path, text, read):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"claims": ["' + text + b'"]}\n')
    lone = (
        contextlib.nullcontext() if read != "\ufffd" else pytest.warns(UnicodeWarning)
    )
    with lone:
        assert read_jsonl(path).graphs[0].claims == (read,)


def test_files_that_are_cut_off(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    content = gzip.compress(b"".join(b'{"claims": ["%d"]}\n' % v for v in range(5000)))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"complete.*file"):
        read_jsonl(path)
    path.write_bytes('\ufeff{"claims": []}'.encode("utf-16-le")[:-1])
    with pytest.raises(ValueError, match="UTF-16"):
        read_jsonl(path)


@pytest.mark.parametrize("content", ['[{"claims": []}]', '\n [\n{"claims": []}\n]'])
@pytest.mark.parametrize("on_invalid", ["raise", "drop"])
def test_an_array_is_no_list_of_lines(tmp_path, content, on_invalid):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"line.*'\.\[\]'"):
        read_jsonl(path, on_invalid=on_invalid)
    path.write_text('{\n "claims": []\n}')
    with pytest.raises(ValueError, match=r"lines.*\."):
        read_jsonl(path, on_invalid=on_invalid)


def test_where_every_line_is_bad_all_are_listed(tmp_path):
    path = lines_of(tmp_path, {"claims": 3}, {"problem": "?"})
    with pytest.raises(ValueError, match=r"2.*problems") as caught:
        read_jsonl(path, on_invalid="drop")
    assert [number for number, _ in caught.value.dropped] == [1, 2]


FULL = {
    "id": "p",
    "problem": "Why?",
    "claims": ["a", "b", "c"],
    "alternatives": ["x", "y"],
    "context": ["one", "two"],
    "features": [[1.0], [0.5], [0.0]],
    "feature_names": ["score"],
    "edges": [[0, 2]],
    "labels": [1, 0, -1],
    "mask": [True, False, False],
    "group": "g",
    "provenance": {"label_meaning": "supported", "samples": 5},
    "metadata": {
        "model": "writer",
    },
    "ticket": {"number": 7},
}


def test_every_optional_key_survives_json_lines(tmp_path):
    data = read_jsonl(lines_of(tmp_path, FULL))
    columns = (data.graphs, data.labels, data.masks)
    for more in ({}, {"groups": data.groups, "metadata": data.metadata}):
        path = write_jsonl(tmp_path / "b.jsonl", *columns, **more)
        assert json.loads(path.read_text().splitlines()[0]) == {"version": 1, **FULL}
        data = read_jsonl(path)
    made = build_dataset({"p": {k: v for k, v in FULL.items() if k != "id"}}, dict)
    assert list(made.graphs) == [data.graphs[0]]
    assert made.metadata == data.metadata[:1]
    assert made.groups.tolist() == ["g"]


def test_build_dataset_names_and_drops_broken_records():
    def parse(record):
        return {"claims": record["steps"], "labels": np.array(record["ok"]), "id": "?"}

    good = {"steps": ("a", "b"), "ok": [True, False]}
    records = {"x": good, 3: {"steps": ["a"]}, 2.5: good, "y": good | {"ok": [1]}}
    with pytest.raises(ValueError, match="""problem "3": the field 'ok' is missing"""):
        build_dataset(records, parse)
    data = build_dataset(records.items(), parse, on_invalid="drop", descr="mine")
    assert list(data.graphs.ids) == ["x", "2.5"]
    assert [name for name, _ in data.dropped] == [3, "y"]
    assert data.DESCR == "mine"
    assert data.groups is None
    _, labels, groups = build_dataset(
        {"x": good, "y": good}, parse, return_X_y=True, return_groups=True
    )
    assert labels[1].tolist() == [1, 0]
    assert len(set(groups.tolist())) == 2
    with pytest.raises(ValueError, match=r"return_groups=True.*return_X_y=True"):
        build_dataset({"x": good}, parse, return_groups=True)


def test_unsure_is_read_as_false(tmp_path):
    path = tmp_path / "a.jsonl"
    record = {"claims": ["a", "b", "c", "d"], "labels": [1, "unsure", -1, "unsure"]}
    path.write_text(json.dumps(record))
    check(record, jsonl_schema())
    data = read_jsonl(path)
    assert data.labels[0].tolist() == [1, 0, -1, 0]
    again = read_jsonl(write_jsonl(tmp_path / "b.jsonl", data.graphs, data.labels))
    assert again.labels[0].tolist() == [1, 0, -1, 0]
    assert again.graphs[0].metadata == data.graphs[0].metadata
    for word in ("Unsure", "maybe", "true"):
        path.write_text(json.dumps(record | {"labels": [1, word, -1, 0]}))
        with pytest.raises(ValueError, match=r"labels\[1\] is"):
            read_jsonl(path)


@pytest.mark.parametrize("name", ["long.jsonl", "long.jsonl.gz", "utf16.jsonl"])
def test_a_line_that_is_too_long_is_refused_before_it_is_in_memory(tmp_path, name):
    """A gzip file of 1 MB held a line of 1 GB, which took 2.1 GB of memory."""
    path = tmp_path / name
    write_jsonl(path, [ReasoningGraph([[1.0]], ())])
    data = path.read_bytes()
    text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
    long = " " * 30_000_000
    if name == "utf16.jsonl":
        path.write_text(text + long + text, encoding="utf-16")
    else:
        with (gzip.open if name.endswith("gz") else open)(path, "wt") as file:
            file.write(text + long + text)
    assert len(read_jsonl(path).graphs) == 2  # within the default
    tracemalloc.start()
    for read in (read_jsonl, iter_jsonl):
        with pytest.raises(ValueError, match=r"line 2.*1,000,000.*max_line_bytes"):
            list(read(path, max_line_bytes=10**6, on_invalid="drop"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7
    assert len(read_jsonl(path, max_line_bytes=10**8).graphs) == 2
    with pytest.raises(ValueError, match="max_line_bytes"):
        read_jsonl(path, max_line_bytes=0)
