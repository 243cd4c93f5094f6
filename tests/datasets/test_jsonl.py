"""JSON Lines: what is written comes back, and invalid lines are named."""

import gzip
import json
import math
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdcf import ReasoningGraph
from skdcf.datasets import build_dataset, jsonl_partitions, read_jsonl, write_jsonl

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
        claims=draw(texts),
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


def lines_of(folder, *records):
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@settings(max_examples=25)
@given(st.data(), st.integers(0, 3), st.booleans(), st.booleans())
def test_round_trip(tmp_path_factory, data, width, features, packed):
    rows = data.draw(files(width=width, features=features))
    folder = tmp_path_factory.mktemp("jsonl")
    path = written(folder, rows)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    back = read_jsonl(path)
    graphs, labels, masks, groups, metadata = map(list, zip(*rows, strict=True))
    assert list(back.graphs) == graphs
    for i, group in enumerate(groups):
        if group is not None:
            metadata[i] = {**(metadata[i] or {}), "group": group}
    missing = [None] * len(rows)
    assert list(back.metadata or missing) == metadata
    assert back.graphs.metadata is None or list(back.graphs.metadata) == metadata
    assert (missing if back.groups is None else back.groups.tolist()) == groups
    assert all(map(same, back.masks or missing, masks))
    if back.labels is None:
        assert labels == missing
    else:
        sizes = back.graphs.sizes
        known = [
            [-1] * n if y is None else y for y, n in zip(labels, sizes, strict=True)
        ]
        assert all(map(same, back.labels, known))
    if not packed:
        [part] = jsonl_partitions(path, len(rows))
        assert list(part.read().graphs) == graphs


GOOD = {"version": 1, "claims": ["a", "b"], "edges": [[0, 1]]}
FULL = GOOD | {
    "id": "p",
    "problem": "Why?",
    "alternatives": ["x", "y"],
    "context": ["one", "two"],
    "features": [[1.0], [0.5]],
    "feature_names": ["score"],
    "labels": [1, -1],
    "mask": [True, False],
    "group": "g",
    "provenance": {"label_meaning": "supported", "samples": 5},
    "metadata": {"model": "writer"},
    "ticket": {"number": 7},
    "nothing": None,
}
WRONG = {
    "version": 2,
    "id": [1],
    "problem": 3,
    "claims": ["a", 3],
    "alternatives": [None],
    "context": ["a", " "],
    "features": [[1.0], ["0.5"]],
    "feature_names": "score",
    "edges": [[0, 1, 2]],
    "labels": [1, 2],
    "mask": [True, 1],
    "group": False,
    "provenance": "me",
    "metadata": [1],
}


def test_every_key_comes_back_where_it_stood(tmp_path):
    data = read_jsonl(lines_of(tmp_path, FULL))
    columns = (data.graphs, data.labels, data.masks)
    for more in ({}, {"groups": data.groups, "metadata": data.metadata}):
        path = write_jsonl(tmp_path / "b.jsonl", *columns, **more)
        assert json.loads(path.read_text("ascii")) == FULL
    made = build_dataset({"p": FULL}, dict)
    assert list(made.graphs) == list(data.graphs)
    assert made.metadata == data.metadata


@pytest.mark.parametrize("key", WRONG)
@pytest.mark.parametrize("damage", ["value", "length", "name"])
def test_a_damaged_key_is_named_with_its_line(tmp_path, key, damage):
    """A wrong value, a list of another length, and a slip in the name of each key."""
    line = dict(FULL)
    if damage == "value":
        line[key] = WRONG[key]
    elif damage == "length":
        if key not in ("labels", "mask", "features"):
            return
        line[key] = line[key][:1]
    elif len(key) > 4:
        line[key[:-2] + key[:-3:-1]] = line.pop(key)
    else:
        return
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 2: .*{key}"):
        read_jsonl(lines_of(tmp_path, GOOD, line))
    data = read_jsonl(lines_of(tmp_path, GOOD, line), on_invalid="drop")
    assert [number for number, _ in data.dropped] == [2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"version": 1,', "complete JSON object: .* at character 15"),
        (b"[1]", r"must be an object, got a list.*'\.\[\]'"),
        (b"[" * 200_000, "nested brackets"),
        (b'{"claims": ["\xff"]}', "0xff.*UTF-8"),
        ('{"claims": []}'.encode("utf-16-le"), "UTF-16.*UTF-8"),
        (b'{"claims": ["a"], "claims": ["b"]}', "'claims'.*repeated"),
        (b'{"claims": [], "own": {"x": 1, "x": 2}}', "'x'.*repeated"),
        (b'{"claims": ["cut \\ud83d"]}', "'claims' contains an unpaired surrogate"),
        (b'{"features": [[NaN]]}', "NaN .*must be finite"),
        (b'{"features": [[1e999]]}', "features must be finite"),
        (b'{"features": [[1' + b"0" * 400 + b"]]}", "features must be finite"),
        (b'{"features": [[1], [1, 2]]}', "features must have rows of the same length"),
        (b'{"claims": ["a"], "edges": [[0, 0]]}', "self-loop"),
        (b'{"claims": ["a"], "edges": [[0, 1]]}', "edge .*1 claim"),
        (b'{"claims": ["a"], "edges": [], "parents": [[]]}', "edges and parents"),
        (b'{"claims": [], "problem": "?", "question": "!"}', "'problem'.*'question'"),
        (b'{"claims": [], "group": 1, "metadata": {"group": 2}}', "'group'.*1.*2"),
        (b'{"claims": [], "context": "[\'a\', \'b\']"}', r"context\[0\] .*one passage"),
        (b'{"problem": "?"}', "claims or features"),
    ],
)
def test_what_is_no_problem_line(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\n" + line)
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 3: .*{message}"):
        read_jsonl(path)
    data = read_jsonl(path, on_invalid="drop")
    assert len(data.graphs) == 1
    path.write_bytes(line)
    with pytest.raises(ValueError, match="all 1 problems were dropped"):
        read_jsonl(path, on_invalid="drop")


def test_values_that_may_be_written_in_several_ways(tmp_path):
    hits = [{"text": "x"}, {"text": "y"}, {}]
    ways = [
        {"context": ["x", "y"], "edges": [[0, 1]], "problem": "?", "labels": [1, -1]},
        {
            "context": '["x", "y"]',
            "parents": [[], [0]],
            "question": "?",
            "labels": [True, None],
        },
        {
            "found": {"hits": hits},
            "edges": [[0, 1]],
            "problem": "?",
            "labels": ["no claim", ""],
        },
        {"found": json.dumps({"hits": hits}), "edges": [[0, 1]], "problem": "?"},
    ]
    for way in ways:
        rename = {"found.hits[].text": "context"} if "found" in way else None
        path = lines_of(tmp_path, {"claims": ["a", "b"]} | way)
        data = read_jsonl(path, rename=rename)
        [graph] = data.graphs
        assert graph.context == ("x", "y") and graph.problem == "?"
        assert graph.edges.tolist() == [[0, 1]] and graph.edges_known
        assert data.labels is None or data.labels[0].tolist() == [1, -1]
    unknown = read_jsonl(
        lines_of(tmp_path, {"claims": ["a"], "edges": None, "context": []})
    )
    assert not unknown.graphs.edges_known.any() and unknown.graphs[0].context == ()
    assert (
        read_jsonl(lines_of(tmp_path, {"claims": ["a"], "labels": ["unsure"]})).labels[
            0
        ]
        == 0
    )


CHAT = [
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "At nine."},
]


def test_paths(tmp_path):
    line = {"steps": ["a"], "chat": CHAT, "found": None, "tag": 3}
    rename = {
        "steps": "claims",
        "chat[0].content": "problem",
        "found.hits[].text": "context",
    }
    [graph] = read_jsonl(lines_of(tmp_path, line), rename=rename).graphs
    assert graph.claims == ("a",) and graph.problem == "When?" and graph.context is None
    assert graph.metadata["chat"] == CHAT and graph.metadata["tag"] == 3
    for path, message in {
        "chat[1].content": "the role 'assistant'",
        "chat[2].content": r"line 1: .*'chat\[2\]\.content'.*chat\[\]\.role.*From a tracing tool",
        "said": "line 1: .*'said'.*only the keys steps",
        "tag": "problem must be a string",
    }.items():
        with pytest.raises(ValueError, match=message):
            read_jsonl(
                lines_of(tmp_path, line), rename={"steps": "claims", path: "problem"}
            )
    with pytest.raises(ValueError, match="'claims' must not be set twice"):
        read_jsonl(lines_of(tmp_path, line | {"claims": ["b"]}), rename=rename)
    read_jsonl(lines_of(tmp_path, line | {"claims": ["a"]}), rename=rename)


def test_several_invalid_lines_are_named_together(tmp_path):
    path = lines_of(tmp_path, *[{"claims": 3}] * 7)
    with pytest.raises(ValueError, match="line 1: ") as caught:
        read_jsonl(path)
    assert str(caught.value).count("a.jsonl, line ") == 5
    with path.open("rb") as stream, pytest.raises(ValueError, match="line 1") as caught:
        read_jsonl(stream)
    assert str(caught.value).count("line ") == 1


def test_lines_that_differ_in_their_features(tmp_path):
    path = lines_of(tmp_path, GOOD | {"features": [[1], [2]]}, GOOD)
    with pytest.raises(ValueError, match=r"a\.jsonl.*problem.*1"):
        read_jsonl(path)
    with pytest.raises(ValueError, match="at least one problem"):
        read_jsonl(lines_of(tmp_path))


def test_compressed_files(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    content = gzip.compress(b"".join(b'{"claims": ["%d"]}\n' % v for v in range(5000)))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"complete.*file"):
        read_jsonl(path)
    with pytest.raises(ValueError, match="uncompressed"):
        jsonl_partitions(path)


def test_a_line_that_is_too_long_is_refused_before_it_is_in_memory(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("skdcf.datasets.lines.MAX_LINE_BYTES", 10**6)
    path = tmp_path / "long.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write(json.dumps(GOOD) + "\n" + " " * 30_000_000)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"line 2.*1,000,000"):
        read_jsonl(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7


GRAPH = ReasoningGraph([[1.0], [2.0]], [(0, 1)], claims=["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [[1, 0], [1, 1]]}, "only 1 .*graphs"),
        ({"groups": []}, "only 0 .*groups"),
        ({"graphs": None}, "graphs must be a list.*None"),
        ({"graphs": [{"claims": []}]}, "problem 0: graphs .*dict"),
        (
            {"graphs": [GRAPH.replace(claims=["a", "\ud800"])]},
            "problem 0: 'claims' contains",
        ),
        ({"graphs": [GRAPH.replace(id=np.float64(1))]}, "problem 0: id must be"),
        ({"labels": [[1]]}, r"problem 0: labels.*2 claims.*1"),
        ({"labels": [[1, math.nan]]}, r"problem 0: labels\[1\] must be .*nan"),
        ({"masks": [[1, 0]]}, r"problem 0: mask\[0\] must be true or false"),
        ({"groups": [1.5]}, "problem 0: group must be"),
        ({"metadata": [[1]]}, "problem 0: metadata must be a dict"),
        ({"metadata": [{"a": (1, 2)}]}, "problem 0: metadata .*would change"),
        ({"metadata": [{"a": math.nan}]}, "problem 0: .*not JSON compliant"),
    ],
)
def test_what_cannot_be_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_jsonl(tmp_path / "a.jsonl", **({"graphs": [GRAPH]} | arguments))
    assert list(tmp_path.iterdir()) == []


def test_numpy_scalars_are_written_as_plain_values(tmp_path):
    graph = GRAPH.replace(id=np.int64(3), problem=np.str_("?"))
    metadata = [{"a": np.int64(3), "b": [np.float64(0.5), {"c": np.str_("x")}]}]
    path = write_jsonl(tmp_path / "a.jsonl", [graph], metadata=metadata)
    assert read_jsonl(path).metadata == [{"a": 3, "b": [0.5, {"c": "x"}]}]


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


def test_groups_of_the_data_sets_come_back(tmp_path):
    groups = np.array([2**62 + 1, 3])
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH] * 2, groups=groups)
    back = read_jsonl(path).groups
    assert back.dtype == groups.dtype
    assert back.tolist() == groups.tolist()
    huge = [2**63, -5]
    path = write_jsonl(path, [GRAPH] * 2, groups=huge)
    assert read_jsonl(path).groups.tolist() == huge
