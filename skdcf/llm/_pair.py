"""Scores of pairs of texts, such as those of models for natural-language inference."""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from .._checks import check_choice
from .._parameters import StrOptions
from ..graphs import ReasoningGraph
from ._chat import Chat
from ._judge import JudgeStep
from ._step import Expense, Size


@runtime_checkable
class PairScorer(Protocol):
    """A function of a premise and a claim: how far the first entails the second.

    Any callable will do. Higher means more; probabilities are usual.

    Examples
    --------
    >>> from skdcf.llm import PairScorer
    >>> def overlap(premise, claim):
    ...     words = set(claim.lower().split())
    ...     return len(words & set(premise.lower().split())) / len(words)
    >>> isinstance(overlap, PairScorer)
    True
    """

    def __call__(self, premise: str, claim: str) -> float:
        """The score of one pair.

        Parameters
        ----------
        premise, claim : str

        Returns
        -------
        float
        """


def _premises(graph, v):
    """What claim v builds on, and the question, as one text."""
    parents = graph.edges[graph.edges[:, 1] == v, 0]
    return [" ".join([graph.problem or "", *(graph.claims[u] for u in parents)])]


def _alternatives(graph, v):
    if graph.alternatives is None:
        raise ValueError("a problem has no alternatives to score its claims against")
    return graph.alternatives


_TEXTS = {"premises": _premises, "alternatives": _alternatives}


class PairFeature(JudgeStep):
    """A column with the scores of a `PairScorer`, without any call of a model.

    `apply` takes graphs, and returns an array of shape (n_claims, 1) for each; the
    column is called ``pair_premises`` or ``pair_alternatives``.

    Parameters
    ----------
    scorer : PairScorer
        ``scorer(premise, claim)`` gives a finite number.
    over : {"premises", "alternatives"}
        What is the premise: the question with the claims that a claim builds on, or
        each of the other answers, of which the mean is taken (0 where there are none).

    Raises
    ------
    ValueError
        If a parameter has a wrong value, or the alternatives of a problem are not known.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.llm import PairFeature
    >>> def contains(premise, claim):
    ...     return float(claim in premise)
    >>> graph = ReasoningGraph(None, [], claims=["x = 2"], alternatives=["So x = 2", "3"])
    >>> PairFeature(contains, over="alternatives").apply([graph], model="none")
    [array([[0.5]])]
    """

    prompt = model = None
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "scorer": [callable],
        "over": [StrOptions(set(_TEXTS))],
    }

    def __init__(self, scorer: PairScorer, over: str = "premises"):
        self.scorer = scorer
        self.over = over

    @property
    def names(self) -> tuple[str, ...]:
        return (f"pair_{self.over}",)

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        check_choice("over", self.over, _TEXTS)
        column = np.zeros((graph.n_claims, 1))
        for v, claim in enumerate(graph.claims):
            texts = _TEXTS[self.over](graph, v)
            scores = [float(self.scorer(text, claim)) for text in texts]
            column[v] = np.mean(scores) if scores else 0.0
        return column

    def _expect(self, size: Size) -> Expense:
        return Expense()

    def told(self) -> None:
        """There is no prompt."""
