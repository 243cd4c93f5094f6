"""The help desk of the tutorial: its judged answers, its filter, and a turn as a problem."""

from pathlib import Path

from skdcf import CoherentConformalFilter, ReasoningGraph
from skdcf.apps.llm import split_sentences
from skdcf.datasets import read_jsonl
from skdcf.features import reasoning_features

FOLDER = Path(__file__).resolve().parent.parent / "docs/guide/tutorial"
JUDGED = read_jsonl(FOLDER / "judged.jsonl")
TEST = read_jsonl(FOLDER / "test.jsonl")


def new_filter():
    """A filter as the tutorial has it, not fitted yet."""
    return CoherentConformalFilter(
        features=reasoning_features(), alpha=0.1, random_state=0
    )


def answer_of(graph):
    """The text that the model wrote."""
    return " ".join(graph.claims)


def to_problem(question, passages, answer):
    """An answer over passages; each of its sentences is a claim by itself."""
    return ReasoningGraph(
        None,
        (),
        claims=split_sentences(answer),
        problem=question,
        context=list(passages),
        metadata={"label_meaning": "supported"},
    )
