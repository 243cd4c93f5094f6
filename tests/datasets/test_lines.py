"""Problem lines: what is written comes back, and invalid lines are named."""

import gzip
import io
import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdcf import ReasoningGraph
from skdcf.datasets import build_dataset, jsonl_partitions, read_jsonl, write_jsonl

ODD = ["", "\\frac{1}{2} \\\\ \\n", 'quote " and \u2028 line', "שלום", "🧮\0", "\ufffd"]
TEXTS = st.text() | st.sampled_from(ODD)
OWN_VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(-1e300, 1e300) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def lines(draw, width, has_claims):
    """A line with any of the keys. ``width`` is the number of features, or None without them."""
    n = draw(st.integers(0, 5))
    order = draw(st.permutations(range(n)))
    pairs = [[order[u], order[v]] for v in range(n) for u in range(v)]

    def per_claim(values):
        return st.lists(values, min_size=n, max_size=n)

    line = {"version": 1}
    if has_claims:
        line["claims"] = draw(per_claim(TEXTS))
    if width is not None:
        row = st.lists(st.floats(-1e300, 1e300), min_size=width, max_size=width)
        line |= {"features": draw(per_claim(row)), "n_features": width}
        line["feature_names"] = [f"name {j} é" for j in range(width)]
    optional = {
        "id": st.integers() | TEXTS,
        "problem": TEXTS,
        "alternatives": st.lists(TEXTS, max_size=3),
        "context": st.lists(TEXTS.map("p{}".format), max_size=3),
        "edges": st.lists(st.sampled_from(pairs), unique_by=tuple)
        if pairs
        else st.just([]),
        "labels": per_claim(st.sampled_from([1, 0, -1])),
        "mask": per_claim(st.booleans()),
        "group": st.integers() | TEXTS,
        "provenance": st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=2),
        "metadata": st.dictionaries(
            TEXTS.map("m{}".format), OWN_VALUES, min_size=1, max_size=3
        ),
        "ticket": OWN_VALUES,
    }
    return line | {key: draw(v) for key, v in optional.items() if draw(st.booleans())}


def write_lines(folder, *records, name="a.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def canonical(line):
    """What is written: edges are sorted, and what follows from other keys is left out."""
    line = dict(line)
    if "features" in line and not line["features"]:
        line.pop("claims", None)
    if "edges" in line:
        line["edges"] = sorted(line["edges"], key=lambda pair: pair[::-1])
    if line.get("features"):
        line.pop("n_features", None)
    return line


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from([None, 0, 1, 3]), st.booleans(), st.booleans())
def test_what_is_read_is_written_back(
    tmp_path_factory, data, width, has_claims, is_packed
):
    """Every key, also the user's own, from each way to read lines."""
    records = data.draw(
        st.lists(lines(width, has_claims or width is None), min_size=1, max_size=4)
    )
    folder = tmp_path_factory.mktemp("lines")
    path = write_lines(folder, *records)
    back = read_jsonl(path)
    name = "b.jsonl.gz" if is_packed else "b.jsonl"
    has_labels = ["labels" in record for record in records]
    labels = [
        y if known else None
        for y, known in zip(back.labels or has_labels, has_labels, strict=True)
    ]
    copy = write_jsonl(folder / name, back.graphs, labels, back.masks)
    content = gzip.decompress(copy.read_bytes()) if is_packed else copy.read_bytes()
    written = [json.loads(line) for line in content.decode("ascii").splitlines()]
    assert [canonical(line) for line in written] == list(map(canonical, records))
    assert list(read_jsonl(copy).graphs) == list(back.graphs)
    groups = [record.get("group") for record in records]
    assert groups == ([None] * len(groups) if back.groups is None else [*back.groups])
    ids = [record.get("id", f"line {i}") for i, record in enumerate(records)]
    if len({*map(str, ids)}) == len(ids):
        built = build_dataset(dict(zip(ids, records, strict=True)), dict)
        same = [g.replace(id=id) for g, id in zip(back.graphs, ids, strict=True)]
        assert list(built.graphs) == same and built.metadata == back.metadata


GOOD = {"version": 1, "claims": ["a", "b"], "edges": [[0, 1]]}
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
SLIPS = ["labesl", "Claims", "feature_name"]


@pytest.mark.parametrize("key", [*WRONG, *SLIPS])
def test_a_wrong_value_and_a_slip_in_a_key_are_named_with_their_line(tmp_path, key):
    path = write_lines(tmp_path, GOOD, GOOD | {key: WRONG.get(key, 1)})
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 2: .*{key}"):
        read_jsonl(path)


@pytest.mark.parametrize("key", ["features", "labels", "mask", "parents"])
def test_a_list_of_another_length_is_named(tmp_path, key):
    path = write_lines(tmp_path, GOOD, {"claims": ["a", "b"], key: []})
    with pytest.raises(ValueError, match=rf"line 2: {key}.* 2 claims, got 0"):
        read_jsonl(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"version": 1,', "JSON object.* 15"),
        (b"[1]", r"object, got a list.*'\.\[\]'"),
        (b"[" * 200_000, "recursion"),
        (b'{"claims": ["\xff"]}', "0xff.*UTF-8"),
        ('{"claims": []}'.encode("utf-16-le"), "UTF-8"),
        (b'{"claims": ["a"], "claims": ["b"]}', "'claims'"),
        (b'{"claims": [], "own": {"x": 1, "x": 2}}', "'x'"),
        (b'{"claims": ["cut \\ud83d"]}', "'claims' .*surrogate"),
        (b'{"features": [[NaN]]}', "NaN"),
        (b'{"features": [[1e999]]}', "feature 0 .*finite"),
        (b'{"features": [[1' + b"0" * 400 + b"]]}", "too large"),
        (b'{"features": [[1], [1, 2]]}', "features .*shape"),
        (b'{"claims": ["a"], "edges": [[0, 0]]}', "self-loop"),
        (b'{"claims": ["a"], "edges": [[0, 1]]}', "1 claim"),
        (b'{"claims": ["a"], "edges": [], "parents": [[]]}', "edges and parents"),
        (b'{"claims": [], "problem": "?", "question": "!"}', "'problem'.*'question'"),
        (b'{"claims": [], "group": 1, "metadata": {"group": 2}}', "'group'.*1.*2"),
        (b'{"claims": [], "metadata": {"group": 1.5}}', "group .*1.5"),
        (b'{"claims": [], "context": "[\'a\', \'b\']"}', r"context\[0\]"),
        (b'{"problem": "?"}', "claims or features"),
    ],
)
def test_what_is_no_problem_line_is_named(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\n" + line)
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 3: .*{message}"):
        read_jsonl(path)


def test_values_in_other_forms():
    hits = json.dumps([{"text": "x"}, {"text": "y"}, {}])
    line = {"claims": ["a", "b"], "question": "?", "labels": [True, ""]}
    line |= {"parents": [[], [0]], "found": json.dumps({"hits": hits})}
    stream = io.BytesIO(json.dumps(line).encode())
    data = read_jsonl(stream, rename={"found.hits[].text": "context"})
    [graph] = data.graphs
    assert (graph.context, graph.problem) == (("x", "y"), "?")
    assert graph.edges.tolist() == [[0, 1]] and data.labels[0].tolist() == [1, -1]
    words = {"claims": ["a", "b"], "labels": ["unsure", "no claim"], "context": "one"}
    data = build_dataset({"x": words}, dict)
    assert data.labels[0].tolist() == [0, 1] and data.graphs[0].context == ("one",)
    assert not data.graphs.edges_known.any()


def test_paths(tmp_path):
    chat = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "Nine."},
    ]
    line = {"steps": ["a"], "chat": chat, "found": None, "tag": 3, "log.x": "y"}
    rename = {"steps": "claims", "chat[0].content": "problem", "found.hits": "context"}
    [graph] = read_jsonl(write_lines(tmp_path, line), rename=rename).graphs
    assert graph.claims == ("a",) and graph.problem == "When?" and graph.context is None
    assert graph.metadata["chat"] == chat and graph.metadata["tag"] == 3
    for path, message in {
        "chat[1].content": "role 'assistant'",
        "chat[2].content": r"line 1: .*'chat\[2\]\.content'.*chat\[\]\.role.*tracing tool",
        "chat.content": "'chat.content'",
        "tag[0]": r"'tag\[0\]'",
        "said": "line 1: .*'said'.*keys steps",
        "tag": "problem .*str",
    }.items():
        with pytest.raises(ValueError, match=message):
            read_jsonl(
                tmp_path / "a.jsonl", rename={"steps": "claims", path: "problem"}
            )
    twice = write_lines(tmp_path, line | {"claims": ["b"]})
    with pytest.raises(ValueError, match=r"'claims'.*'steps'"):
        read_jsonl(twice, rename=rename)
    assert read_jsonl(
        write_lines(tmp_path, line | {"claims": ["a"]}), rename=rename
    ).graphs


def test_lines_must_have_the_same_features(tmp_path):
    given = {"id": "p", "features": [[1], [2]]}
    for other in (
        GOOD,
        given | {"feature_names": ["f"]},
        given | {"claims": ["a", "b"]},
    ):
        with pytest.raises(ValueError, match=r"a\.jsonl: .*features"):
            read_jsonl(write_lines(tmp_path, given, other))
    with pytest.raises(ValueError, match="at least one problem"):
        read_jsonl(write_lines(tmp_path))


def test_partitions(tmp_path):
    lines = [json.dumps({"claims": [str(i)]}) for i in range(7)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n\n" + "\n\n".join(lines))
    parts = jsonl_partitions(path, 3)
    found = [[graph.claims for graph in part.read().graphs] for part in parts]
    assert found == [[(str(i),) for i in part] for part in ([0, 1, 2], [3, 4, 5], [6])]
    path.write_text(path.read_text().replace('"5"', "[5]"))
    with pytest.raises(ValueError, match=r"a\.jsonl, line 13: claims\[0\]"):
        jsonl_partitions(path, 3)[1].read()
    for content in (gzip.compress(path.read_bytes()), b"\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.jsonl"):
            jsonl_partitions(path)


def test_damaged_file(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    content = gzip.compress(b"".join(b'{"claims": ["%d"]}\n' % v for v in range(5000)))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz.*complete"):
        read_jsonl(path)


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
CHANGED = GRAPH.replace(provenance={"model": "x"})
CHANGED.provenance["model"] = None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [[1, 0], [1, 1]]}, "labels .* 1 .*2"),
        ({"groups": []}, "groups .* 1 .*0"),
        ({"graphs": None}, "graphs .*None"),
        ({"graphs": [{"claims": []}]}, "problem 0: .*dict"),
        ({"graphs": [CHANGED]}, "problem 0: provenance .*None"),
        ({"graphs": [GRAPH.replace(claims=["a", "\ud800"])]}, "problem 0: 'claims'"),
        ({"graphs": [GRAPH.replace(id=np.float64(1))]}, "problem 0: id .*1.0"),
        ({"labels": [[1]]}, r"problem 0: labels.*2 claims.*1"),
        ({"labels": [[1, math.nan]]}, r"problem 0: labels\[1\] .*nan"),
        ({"masks": [[1, 0]]}, r"problem 0: mask\[0\] .*bool"),
        ({"groups": [1.5]}, "problem 0: group .*1.5"),
        ({"metadata": [[1]]}, "problem 0: .*list"),
        ({"metadata": [{"a": {1: 2}}]}, "problem 0: metadata"),
        ({"metadata": [{"a": math.nan}]}, "problem 0: .*JSON"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(tmp_path, arguments, message):
    path = write_jsonl(tmp_path / "a.jsonl", [GRAPH])
    old = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        write_jsonl(path, **({"graphs": [GRAPH]} | arguments))
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == old


def test_arrays_and_numpy_values_are_written_as_plain_values(tmp_path):
    graph = GRAPH.replace(id=np.int64(3), problem=np.str_("?"))
    metadata = [{"a": np.int64(3), "b": (np.float64(0.5), {"c": np.str_("x")})}, None]
    groups = np.array([2**62 + 1, 3])
    columns = {"groups": groups, "metadata": metadata}
    path = write_jsonl(tmp_path / "a.jsonl", [graph, GRAPH], **columns)
    back = read_jsonl(path)
    assert back.metadata[0] == {
        "a": 3,
        "b": [0.5, {"c": "x"}],
        "group": int(groups[0]),
    }
    assert back.groups.tolist() == groups.tolist()


def test_build_dataset_names_and_drops_broken_records():
    def parse(record):
        return {"claims": record["steps"], "labels": np.array(record["ok"]), "id": "?"}

    good = {"steps": ("a", "b"), "ok": [True, False]}
    records = {"x": good, 3: {"steps": ["a"]}, 2.5: good, "y": good | {"ok": [1]}}
    with pytest.raises(ValueError, match=r"""problem "3": .*'ok'"""):
        build_dataset(records, parse)
    data = build_dataset(records.items(), parse, on_invalid="drop")
    assert list(data.graphs.ids) == ["x", "2.5"] and data.groups is None
    assert data.labels[1].tolist() == [1, 0]
    assert [name for name, _ in data.dropped] == [3, "y"]
    with pytest.raises(ValueError, match=r"dropped.*ok"):
        build_dataset({3: records[3]}, parse, on_invalid="drop")
