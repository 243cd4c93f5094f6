"""JSON Lines: what is written comes back, and broken lines are named."""

import json
import math
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


@st.composite
def problems(draw):
    """A graph of any kind, with labels and a mask or without."""
    n = draw(st.integers(0, 6))
    order = draw(st.permutations(range(n)))
    possible = [(order[u], order[v]) for v in range(n) for u in range(v)]
    edges = [pair for pair in possible if draw(st.booleans())]
    width = draw(st.integers(0, 3))
    numbers = st.floats(-1e300, 1e300)
    rows = st.lists(numbers, min_size=width, max_size=width)
    claims = draw(st.none() | st.lists(TEXTS, min_size=n, max_size=n))
    features = draw(st.lists(rows, min_size=n, max_size=n))
    if claims is not None and draw(st.booleans()):
        features = None
    else:
        features = np.array(features, dtype=float).reshape(n, width)
    names = draw(st.none() | st.just([f"name {j} é" for j in range(width)]))
    graph = ReasoningGraph(
        features,
        edges,
        claims=claims,
        problem=draw(st.none() | TEXTS),
        feature_names=names,
        id=draw(st.none() | st.integers() | TEXTS),
    )
    labels = draw(st.none() | st.lists(st.integers(0, 1), min_size=n, max_size=n))
    mask = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    return graph, labels, mask


def same(values, expected):
    if expected is None:
        return values is None
    return values is not None and np.asarray(values).tolist() == list(expected)


@given(st.lists(problems(), max_size=5))
def test_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("jsonl") / "problems.jsonl"
    graphs, labels, masks = ([row[k] for row in rows] for k in range(3))
    back = read_jsonl(write_jsonl(path, graphs, labels, masks))
    assert back.graphs == graphs
    assert back.dropped == []
    for name, expected in (("labels", labels), ("masks", masks)):
        found = back[name] or [None] * len(graphs)
        assert all(map(same, found, expected))


@given(problems())
def test_lines_follow_the_schema(tmp_path_factory, row):
    path = tmp_path_factory.mktemp("jsonl") / "problems.jsonl"
    graph, labels, mask = row
    write_jsonl(path, [graph], [labels], [mask])
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
    "enum": lambda value, wanted: value in wanted and not isinstance(value, bool),
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
    assert back.graphs == [graph]
    assert (back.labels[0] == labels).all()
    assert (back.masks[0] == mask).all()
    assert back.masks[0].dtype == bool


def test_batches_flat_labels_and_predictions(tmp_path):
    graphs, labels = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    masks = HardCF("frequency-score", alpha=0.2).fit(graphs, labels).predict(graphs)
    path = write_jsonl(tmp_path / "a.jsonl", graphs, np.concatenate(labels), masks)
    back = read_jsonl(path)
    assert back.graphs == list(graphs)
    assert all(map(same, back.labels, labels))
    assert all(map(same, back.masks, masks))


def test_without_labels_and_masks(tmp_path):
    graph = ReasoningGraph(None, [], claims=["a"])
    back = read_jsonl(write_jsonl(tmp_path / "a.jsonl", [graph]))
    assert back.labels is None
    assert back.masks is None


GOOD = {"version": 1, "claims": ["a", "b"], "edges": [[0, 1]]}
BROKEN = {
    "not JSON": (b'{"version": 1,', "Expecting"),
    "array": (b"[1]", "list instead of an object"),
    "no version": ({"edges": [], "claims": ["a"]}, "version is None"),
    "version": ({**GOOD, "version": 2}, "version is 2, this program reads 1"),
    "version true": ({**GOOD, "version": True}, "version is True"),
    "cycle": ({**GOOD, "edges": [[0, 1], [1, 0]]}, "cycle"),
    "range": ({**GOOD, "edges": [[0, 2]]}, "only 2 claims"),
    "edges": ({**GOOD, "edges": [[0, 1.0]]}, "not a pair of whole numbers"),
    "triple": ({**GOOD, "edges": [[0, 1, 2]]}, "not a pair of whole numbers"),
    "no edges": ({"version": 1, "claims": ["a"]}, "edges must be a list"),
    "labels": ({**GOOD, "labels": [1]}, "1 labels but 2 claims"),
    "label": ({**GOOD, "labels": [1, 2]}, "labels of claim 1 is 2"),
    "label true": ({**GOOD, "labels": [1, True]}, "labels of claim 1 is True"),
    "mask": ({**GOOD, "mask": [True, 1]}, "mask of claim 1 is 1"),
    "text": ({**GOOD, "claims": ["a", 3]}, "claims must be a list of strings"),
    "unknown": ({**GOOD, "label": [1, 0]}, "unknown keys"),
    "question": ({**GOOD, "problem": 3}, "problem must be a string"),
    "id": ({**GOOD, "id": [1]}, "id must be a string or a whole number"),
    "features": ({**GOOD, "features": [[1.0], [1.0, 2.0]]}, "features"),
    "text feature": ({**GOOD, "features": [["x"], ["y"]]}, "features"),
    "NaN": (b'{"version": 1, "edges": [], "features": [[NaN]]}', "must be finite"),
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
    "nesting": (b"[" * 200_000, "recursion"),
    "bytes": (b'{"version": 1, "edges": [], "claims": ["\xff"]}', "utf-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_lines_are_named_and_the_others_kept(tmp_path, name):
    line, message = BROKEN[name]
    line = line if isinstance(line, bytes) else json.dumps(line).encode()
    good = json.dumps(GOOD).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([good, b"", line, good]))
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 3: .*{message}"):
        read_jsonl(path)
    data = read_jsonl(path, on_invalid="drop")
    assert len(data.graphs) == 2
    ((number, reason),) = data.dropped
    assert number == 3
    assert message in reason


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n")
    assert read_jsonl(path).graphs[0].claims == ("a", "b")


def test_streaming_out(tmp_path):
    """The first problem is there before the second line is looked at."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**GOOD, "labels": [1, 0]}) + "\nbroken\n")
    rows = iter_jsonl(path)
    graph, labels, mask = next(rows)
    assert graph.claims == ("a", "b")
    assert labels.tolist() == [1, 0]
    assert mask is None
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
    assert read_jsonl(path).graphs == [old]
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
        (([GRAPH], [[1]]), r"problem 0: labels have shape \(1,\)"),
        (([GRAPH], [[1, 2]]), "problem 0: labels are .*, expected 0 and 1"),
        (([GRAPH], None, [[1, math.nan]]), "problem 0: mask are"),
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
    assert read_jsonl(path).graphs == list(batch)
    records = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert [r["id"] for r in records] == [0, 1]
    assert records[0]["claims"] == ["a", "b"]
    single = GRAPH.replace(id=np.str_("x"), problem=np.str_("?"))
    assert read_jsonl(write_jsonl(path, [single])).graphs == [single]
    for id in (np.float64(1), np.bool_(True)):
        with pytest.raises(ValueError, match="id must be"):
            write_jsonl(path, [GRAPH.replace(id=id)])


def test_schema_refuses_what_the_reader_refuses():
    check(GOOD, jsonl_schema())
    names = ("label", "label true", "version", "unknown", "mask", "triple", "text")
    for name in (*names, "quoted", "true feature", "null feature", "no rows", "flat"):
        with pytest.raises(AssertionError):
            check(BROKEN[name][0], jsonl_schema())


def test_bad_choice(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH])
    with pytest.raises(ValueError, match="on_invalid is 'skip'"):
        read_jsonl(path, on_invalid="skip")
