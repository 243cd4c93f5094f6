"""The help desk of the tutorial: its judged answers, its filter and its problems."""

from pathlib import Path

from skdcf import CoherentConformalFilter, ReasoningGraph
from skdcf.apps.text import split_sentences
from skdcf.datasets import read_jsonl
from skdcf.features import reasoning_features

FOLDER = Path(__file__).resolve().parent.parent / "docs/guide/tutorial"
JUDGED = read_jsonl(FOLDER / "judged.jsonl")
TEST = read_jsonl(FOLDER / "test.jsonl")


def new_filter():
    """Return the unfitted filter of the tutorial."""
    return CoherentConformalFilter(
        features=reasoning_features(), alpha=0.1, random_state=0
    )


def answer_of(graph):
    """Return the text of an answer."""
    return " ".join(graph.claims)


def to_problem(question, passages, answer):
    """Return an answer as a problem, in which each sentence is an independent claim."""
    return ReasoningGraph(
        None,
        (),
        claims=split_sentences(answer),
        problem=question,
        context=list(passages),
        metadata={"label_meaning": "supported"},
    )
