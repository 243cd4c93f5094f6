"""The journal of labels: shared by processes, never losing a verdict."""

import random
import stat
import subprocess
import sys

import pytest

from skdcf import ReasoningGraph
from skdcf.apps.labelling import LabelStore, describe_labels


def problem(*claims, edges=(), **fields):
    return ReasoningGraph(None, edges, claims=claims, **fields)


GRAPHS = [problem("a", "b", edges=[(0, 1)]), problem("c", problem="q?")]


@pytest.fixture
def store(tmp_path):
    return LabelStore(GRAPHS, tmp_path / "journal")


def test_each_verdict_is_in_the_journal_before_the_next(store, tmp_path):
    verdicts = [(0, 0, "true"), (1, 0, "unsure"), (0, 0, "false"), (1, 0, None)]
    for problem_, claim, word in verdicts:
        store.label(problem_, claim, word, by="ann")
        again = LabelStore(GRAPHS, tmp_path / "journal")
        assert again.said(problem_, "ann")[claim] == word
    assert store.in_order("ann") == [(0, 0)]
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o600


def test_verdicts_follow_their_problem(store, tmp_path):
    store.label(1, 0, "false", by="ann")
    moved = LabelStore([problem("new"), *GRAPHS[::-1]], tmp_path / "journal")
    assert moved.said(1, "ann") == ["false"]
    changed = LabelStore([problem("c!", problem="q?")], tmp_path / "journal")
    assert changed.said(0, "ann") == [None]


def test_purposes_and_annotators_are_separate(store, tmp_path):
    store.label(0, 0, "true", by="ann")
    store.label(0, 0, "false", by="bob")
    review = LabelStore(GRAPHS, tmp_path / "journal", purpose="review")
    assert review.said(0, "ann") == [None, None] and review.annotators() == []
    assert store.said(0, "ann") == ["true", None]
    assert store.annotators() == ["ann", "bob"]
    with pytest.raises(ValueError, match="edges"):
        review.correct_edges(0, [], by="ann")


@pytest.mark.parametrize("content", ['{"label": "true"}\n', "Dear diary\n" * 100])
def test_other_files_are_refused_and_kept(tmp_path, content):
    path = tmp_path / "old.labels"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"old\.labels.*JSON Lines"):
        LabelStore(GRAPHS, path)
    assert path.read_text() == content


def test_labels_of_people_replace_those_of_a_model(tmp_path):
    store = LabelStore(GRAPHS, tmp_path / "journal", labels=[[1, 1], [0]])
    store.label(0, 1, "unsure", by="ann")
    assert [row.tolist() for row in store.export("ann").labels] == [[1, 0], [0]]
    of_people = store.labels("ann", known=False)
    assert [row.tolist() for row in of_people] == [[-1, 0], [-1]]
    store.label(0, 0, "unknown", by="ann")
    store.label(1, 0, "no claim", by="ann")
    assert [row.tolist() for row in store.labels("ann")] == [[-1, 0], [1]]


def test_corrected_edges_are_exported(store, tmp_path):
    store.correct_edges(0, [], by="ann")
    out = LabelStore(GRAPHS, tmp_path / "journal").export("ann")
    assert out.n_corrected == 1 and out.graphs[0].edges.tolist() == []
    assert out.graphs[0].provenance["edges_corrected"] is True
    assert store.export("bob").graphs[0].edges.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="cycle"):
        store.correct_edges(0, [[0, 1], [1, 0]], by="ann")


def test_unknown_edges_cannot_be_corrected(tmp_path):
    """Edges that are added to a few problems say nothing about the others."""
    store = LabelStore([problem("a", "b", edges=None)], tmp_path / "journal")
    with pytest.raises(ValueError, match="problem 0 must have known edges"):
        store.correct_edges(0, [[0, 1]], by="ann")


def test_labels_are_described():
    by_person = GRAPHS[0].replace(provenance={"label_source": "person"})
    sentence = describe_labels([by_person, GRAPHS[1]], [[1, -1], [1]])
    assert "1 judged by people" in sentence and "1 judged by an unknown" in sentence
    assert "1 not judged" in sentence and "1 unjudged claim," in sentence
    # The claim that depends on a false claim is dropped anyway.
    assert "unjudged" not in describe_labels(GRAPHS, [[0, -1], [1]])


LABEL_FOREVER = """
import sys
from skdcf.apps.labelling import LabelStore
from skdcf import ReasoningGraph
path, by = sys.argv[1:]
graphs = [ReasoningGraph(None, (), claims=[f"{i} {v}" for v in range(10)]) for i in range(100)]
store = LabelStore(graphs, path)
for i, v in [(i, v) for i in range(100) for v in range(10)]:
    if store.said(i, by)[v] is None:
        store.label(i, v, "true", by=by)
        print(i, v, flush=True)
"""


@pytest.mark.long
def test_killed_processes_lose_no_confirmed_label(tmp_path):
    """Two processes write 2,000 labels to one journal, and are killed again and again."""
    journal = tmp_path / "journal"
    graphs = [problem(*(f"{i} {v}" for v in range(10))) for i in range(100)]
    rng = random.Random(0)
    said = {"ann": set(), "bob": set()}
    while any(len(places) < 1000 for places in said.values()):
        programs = {
            by: subprocess.Popen(
                [sys.executable, "-c", LABEL_FOREVER, journal, by],
                stdout=subprocess.PIPE,
                text=True,
            )
            for by in said
        }
        n = rng.randint(300, 600)
        for by, program in programs.items():
            lines = [program.stdout.readline() for _ in range(n)]
            program.kill()  # SIGKILL
            lines += program.communicate()[0].split("\n")[:-1]
            said[by] |= {tuple(map(int, line.split())) for line in lines if line}
        store = LabelStore(graphs, journal)
        for by, places in said.items():
            judged = set(store.in_order(by))
            # A label may be in the journal although its process could not confirm it.
            assert places <= judged
            said[by] = judged
    assert store.version == 2000
