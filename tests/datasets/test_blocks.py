"""Lines that are checked in blocks: the same problems and errors as one line at a time."""

import json
from itertools import permutations

import numpy as np
import pytest

from skdcf import GraphBatch
from skdcf.datasets import jsonl, read_jsonl, records, write_jsonl
from skdcf.datasets.jsonl import iter_jsonl
from skdcf.datasets.lines import iter_blocks

N_LINES = 40
PLACE = 17  # position of the changed line


def lines_with(**changes):
    """Lines of the usual kind, one of which has other values."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(N_LINES):
        n_claims = int(rng.integers(2, 6))
        lines.append(
            {
                "id": f"q{i}",
                "problem": f"Question {i}?",
                "context": ["A passage.", "Another passage."][: i % 3],
                "claims": [f"Claim {v} of {i}." for v in range(n_claims)],
                "features": rng.normal(size=(n_claims, 2)).tolist(),
                "feature_names": ["length", "doubt"],
                "edges": [[u, v] for v in range(n_claims) for u in range(v)][: i % 4],
                "labels": rng.choice([1, 0, -1, True], n_claims).tolist(),
                "mask": [bool(v % 2) for v in range(n_claims)],
                "group": i // 2,
                "metadata": {"model": "m"},
            }
        )
    lines[PLACE] |= {
        "claims": ["One.", "Two.", "Three."],
        "features": [[0, 1], [0.5, 1], [1, 2]],
        "edges": [[0, 1]],
        "labels": [1, 1, 0],
        "mask": [True, False, False],
    }
    lines[PLACE] |= changes
    absent = [key for key, value in changes.items() if value is ...]
    for key in absent:
        del lines[PLACE][key]
    return lines


def write(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def content_of(problem):
    """Everything in a problem, with the types of its arrays."""
    graph, labels, mask, *rest = problem
    arrays = [graph.features, graph.edges, labels, mask]
    return (
        graph.to_dict(),
        graph.edges_known,
        graph.feature_names,
        [None if a is None else (a.dtype, a.shape, a.tobytes()) for a in arrays],
        [None if a is None else a.flags.writeable for a in arrays],
        rest,
    )


def read_in_both_ways(path, monkeypatch):
    """Contents in blocks and line by line, and the error that follows them."""

    def read(block_bytes):
        monkeypatch.setattr(jsonl, "BLOCK_BYTES", block_bytes)
        found = []
        try:
            for problem in iter_jsonl(path):
                found.append(content_of(problem))
        except ValueError as error:
            return found, str(error)
        return found, None

    return read(2**18), read(0)


SAME = {
    "nothing changed": {},
    "no features": {"features": ...},
    "unknown edges": {"edges": ...},
    "no edges": {"edges": []},
    "parents first or last": {"edges": [[2, 0], [0, 1], [0, 1]]},
    "edges as parents": {"edges": ..., "parents": [[], [0], [0, 1]]},
    "no texts": {"claims": ...},
    "null": {"labels": None, "context": None, "metadata": None},
    "context as a text": {"context": "One passage."},
    "passages as objects": {"context": [{"text": "One passage.", "title": "T"}]},
    "words as labels": {"labels": [None, "unsure", "no claim"]},
    "a question": {"problem": ..., "question": "Why?"},
    "own keys": {"model_name": "x", "run": [1, {"a": None}]},
    "no claims": {"claims": [], "features": [], "n_features": 2}
    | {"labels": [], "edges": [], "mask": []},
    "other names": {"feature_names": ["a", "b"]},
    "large integers": {"features": [[2**62 + 1, 2**70], [0, 0], [1, 1]]},
    "empty labels": {"labels": ["", "  ", 1.0]},
    "nothing but nulls": dict.fromkeys(
        ["id", "problem", "context", "edges", "labels", "mask", "group", "version"]
    ),
    "texts of one and passages of another key": {
        "context": None,
        "contexts": ["One passage."],
    },
    "an empty context": {"context": []},
    "other answers": {"alternatives": ["Another.", ""]},
    "a group in the metadata": {"group": ..., "metadata": {"group": "g"}},
    "a group twice": {"group": 7, "metadata": {"group": 7, "own": {"group": 8}}},
    "a key of the format in the metadata": {"metadata": {"claims": 3}},
}


@pytest.mark.parametrize("name", SAME)
def test_same_problems(tmp_path, monkeypatch, name):
    path = write(tmp_path / "a.jsonl", lines_with(**SAME[name]))
    in_blocks, one_by_one = read_in_both_ways(path, monkeypatch)
    assert in_blocks == one_by_one
    assert len(in_blocks[0]) == N_LINES


FAULTS = {
    "an edge into the next line": {"edges": [[0, 3]]},
    "an edge within the next line": {"edges": [[3, 4]]},
    "a negative position": {"edges": [[-1, 0]]},
    "a huge position": {"edges": [[0, 2**70]]},
    "a cycle": {"edges": [[0, 1], [1, 2], [2, 0]]},
    "a self-loop": {"edges": [[1, 1]]},
    "three ends": {"edges": [[0, 1, 2]]},
    "too few labels": {"labels": [1, 1]},
    "too many labels": {"labels": [1, 1, 0, 0]},
    "a mask of another length": {"mask": [True]},
    "a label that is none": {"labels": [1, 1, 2]},
    "a row too many": {"features": [[0, 1]] * 4},
    "ragged rows": {"features": [[0, 1], [0], [1, 2]]},
    "a text among numbers": {"features": [[0, "1"], [0, 1], [1, 2]]},
    "a number among texts": {"claims": ["One.", 2, "Three."]},
    "an empty passage": {"context": [" "]},
    "a passage with NUL": {"context": ["a\0b"]},
    "two groups": {"group": 1, "metadata": {"group": 2}},
    "nothing to read": {"claims": ..., "features": ...},
    "a misspelled key": {"claims": ..., "features": ..., "claim": ["One."]},
    "another version": {"version": 2},
    "a truth value as a position": {"edges": [[False, True]]},
    "a fraction as a position": {"edges": [[0.0, 1]]},
    "a list among labels": {"labels": [[1], 1, 0]},
    "an unknown word among labels": {"labels": ["unsure", "wrong", 0]},
    "a number in the mask": {"mask": [1, 0, 0]},
    "a truth value as id": {"id": True},
    "a fraction as group": {"group": 1.0},
    "a truth value as group of the metadata": {
        "group": ...,
        "metadata": {"group": True},
    },
    "metadata that are a list": {"metadata": [1]},
    "a passage that is an object": {"context": ["One.", {"text": "Two."}]},
    "a text with half a passage": {"context": "\0"},
    "an overflow": {"features": [[10**400, 1], [0, 1], [1, 2]]},
    "two names of one column": {"feature_names": ["a", "a"]},
    "three names of two columns": {"feature_names": ["a", "b", "c"]},
    "claims that are null": {"claims": None, "features": None},
    "passages under another key": {"context": None, "seen": ["A long passage. " * 5]},
}


@pytest.mark.parametrize("name", FAULTS)
def test_same_errors(tmp_path, monkeypatch, name):
    path = write(tmp_path / "a.jsonl", lines_with(**FAULTS[name]))
    in_blocks, one_by_one = read_in_both_ways(path, monkeypatch)
    assert in_blocks == one_by_one
    assert f"line {PLACE + 1}" in in_blocks[1]
    assert len(in_blocks[0]) == PLACE


@pytest.mark.parametrize("name", [*SAME, *FAULTS])
def test_same_data_set(tmp_path, monkeypatch, name):
    path = write(tmp_path / "a.jsonl", lines_with(**(SAME | FAULTS)[name]))

    def read(block_bytes):
        monkeypatch.setattr(jsonl, "BLOCK_BYTES", block_bytes)
        try:
            data = read_jsonl(path)
        except ValueError as error:
            return str(error)
        contents = [
            content_of(problem)
            for problem in zip(
                data.graphs, data.labels, data.masks, data.metadata, strict=True
            )
        ]
        return contents, data.groups.tolist(), data.groups.dtype, data.feature_names

    assert read(2000) == read(0)


@pytest.mark.parametrize("keys", [*permutations(["claims", "labels", "mask"])])
def test_the_first_fault_of_a_line_is_named(tmp_path, keys):
    path = write(tmp_path / "a.jsonl", [dict.fromkeys(keys, 3)])
    with pytest.raises(ValueError, match=f"line 1: {keys[0]}.*3"):
        read_jsonl(path)


def test_lines_before_a_cut_are_read(tmp_path, monkeypatch):
    lines = list(map(json.dumps, lines_with()))
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\n".join([*lines[:9], lines[9][:50], *lines[10:]]), encoding="utf-8"
    )
    in_blocks, one_by_one = read_in_both_ways(path, monkeypatch)
    assert in_blocks == one_by_one
    assert len(in_blocks[0]) == 9


def test_lines_before_a_long_line_are_read(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl", lines_with(problem="Why? " * 1000))
    found = []
    with pytest.raises(ValueError, match=f"line {PLACE + 1}.*4,000"):
        found.extend(iter_jsonl(path, max_line_bytes=4000))
    assert len(found) == PLACE


def test_usual_lines_are_read_in_blocks(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl", lines_with())
    due = read_jsonl(path)
    back = write_jsonl(tmp_path / "b.jsonl", due.graphs, due.labels, due.masks)
    monkeypatch.setattr(records, "read_problem", None)  # It reads one line.
    assert read_jsonl(path).graphs[PLACE] == due.graphs[PLACE]
    assert list(read_jsonl(back).graphs) == list(due.graphs)


def test_a_block_ends_with_its_size(tmp_path):
    path = write(tmp_path / "a.jsonl", lines_with())
    sizes = [len(block) for block in iter_blocks(path, block_bytes=2000)]
    assert sum(sizes) == N_LINES
    assert 3 < len(sizes) < N_LINES
    assert {len(block) for block in iter_blocks(path, block_bytes=0)} <= {1, 0}


def columns_with(**changes):
    """Packed problems, one of which has other values."""
    problems = list(map(records.read_problem, lines_with(**changes)))
    return records.Columns.join([problems])


@pytest.mark.parametrize(
    "name", [k for k in SAME if k not in ("no features", "other names")]
)
def test_problems_are_written_together_as_one_by_one(name):
    columns = columns_with(**SAME[name])
    one_by_one = list(map(records.format_problem, columns.problems()))
    assert list(records.format_problems(columns)) == one_by_one


def test_usual_problems_are_written_without_unpacking(monkeypatch):
    columns = columns_with(run=[1, {"a": None}])
    due = list(map(records.format_problem, columns.problems()))
    monkeypatch.setattr(GraphBatch, "__iter__", None)
    assert list(records.format_problems(columns)) == due


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", [1, 0]),
        ("labels", [1, 0, 2]),
        ("masks", [True]),
        ("masks", [1, 0, 1]),
        ("groups", 1.5),
        ("metadata", {"pair": (1, 2)}),
        ("metadata", {"share": np.inf}),
        ("metadata", {"own_keys": ["of"], "of": {1: 2}}),
        ("metadata", {"array": np.arange(2)}),
    ],
)
def test_other_values_are_written_or_refused_as_one_by_one(name, value):
    columns = columns_with()
    changed = list(getattr(columns, name))
    changed[PLACE] = value
    columns = columns._replace(**{name: changed})

    def outcome(lines):
        found = []
        try:
            found.extend(lines())
        except ValueError as error:
            return found, str(error)
        return found, None

    def one_by_one():
        graphs = columns.graphs.replace(metadata=columns.metadata)
        for problem in columns._replace(graphs=graphs).problems():
            yield records.format_problem(problem)

    assert outcome(lambda: records.format_problems(columns)) == outcome(one_by_one)
