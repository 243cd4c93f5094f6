"""Made-up word problems with answers in sentences, for demonstrations and tests.

A plot is a question and the steps of its solution. A step calculates with numbers of the
question, which have letters, and with results of earlier steps, which have positions.
"""

import json
from functools import cache
from importlib.resources import files
from numbers import Integral
from operator import add, mul, sub
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch, check_random_state

from ..graphs import GraphBatch, ReasoningGraph
from ._fetch import describe

_CARELESS = 0.03  # probability of a mistake per step
_SIGNS = {"+": add, "-": sub, "*": mul}
_NAMES = ("Ann", "Bob", "Carla", "Deniz", "Eva", "Femi", "Grace", "Hana", "Ivan", "Jo")
_GOODS = ("apples", "cups", "pens", "tiles", "bulbs", "plates")


class _Step(NamedTuple):
    text: str
    left: str | int
    sign: str
    right: str | int


class _Trap(NamedTuple):
    """A mistake that lies near in one question."""

    step: int | None
    kind: int
    choice: int
    pull: float  # probability that an answer makes it


class _Plot(NamedTuple):
    question: str
    numbers: dict  # smallest and largest value of each letter
    steps: tuple


@cache
def _plots():
    rows = json.loads(
        files(__package__).joinpath("word_problems.json").read_text("utf-8")
    )
    return [
        _Plot(row["question"], row["numbers"], [_Step(*step) for step in row["steps"]])
        for row in rows
    ]


def make_word_problems(
    n_problems: int = 300,
    *,
    n_alternatives: int = 2,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[GraphBatch, list[np.ndarray]]:
    """Generate questions with answers in sentences, some of them wrong.

    Parameters
    ----------
    n_problems : int
        Number of problems, at least 1. Each asks a question of its own.
    n_alternatives : int
        How many other answers to its question each problem has.
    random_state : int, RandomState instance or None
        Seed; the same seed gives the same problems.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with claims, questions, alternatives and the exact edges,
        without features), ``labels`` (list of one 0/1 int array per problem), ``groups``
        (problem numbers: all questions differ), ``feature_names`` (None), ``DESCR``.

    Raises
    ------
    ValueError
        If a number is too small.

    See Also
    --------
    make_reasoning_graphs : Graphs with the statistics of the paper's data, no texts.

    Examples
    --------
    >>> from skdcf.datasets import make_word_problems
    >>> data = make_word_problems(50, random_state=0)
    >>> graph = data.graphs[0]
    >>> print(graph.problem[:51])
    A baker makes 15 trays of 23 rolls in the morning a
    >>> print(*graph.claims[2:], sep="\\n")
    These hold 11 * 23 = 253 rolls.
    On that day 345 + 253 = 598 rolls are made.
    Of them, 598 - 56 = 542 are sold.
    The answer is 542.
    >>> graph.edges.tolist()
    [[1, 2], [0, 3], [2, 3], [3, 4], [4, 5]]
    >>> data.labels[0].tolist()
    [1, 1, 1, 1, 1, 1]
    """
    for name, value, low in (
        ("n_problems", n_problems, 1),
        ("n_alternatives", n_alternatives, 0),
    ):
        if not isinstance(value, Integral) or value < low:
            raise ValueError(
                f"{name} is {value!r}, but must be a whole number of at least {low}"
            )
    rng = check_random_state(random_state)
    drawn = [_draw_problem(i, n_alternatives, rng) for i in range(n_problems)]
    graphs, labels = zip(*drawn, strict=True)
    batch = GraphBatch.pack(graphs)
    if return_X_y:
        return batch, list(labels)
    return Bunch(
        graphs=batch,
        labels=list(labels),
        groups=np.arange(n_problems),
        feature_names=None,
        DESCR=describe("word_problems"),
    )


def _draw_problem(i, n_alternatives, rng):
    """A question with one answer as a graph, the labels of its claims."""
    plots = _plots()
    plot = plots[rng.randint(len(plots))]
    words = {"name": rng.choice(_NAMES), "goods": rng.choice(_GOODS)}
    numbers = {k: rng.randint(low, high + 1) for k, (low, high) in plot.numbers.items()}
    # Where a question tempts, several answers go wrong alike, and agree.
    tempting = rng.randint(len(plot.steps)) if rng.rand() < 0.4 else None
    trap = _Trap(tempting, rng.randint(1, 3), rng.randint(100), rng.rand())
    answers = [
        _draw_answer(plot, numbers, words, trap, rng) for _ in range(1 + n_alternatives)
    ]
    (claims, labels), *others = answers
    graph = ReasoningGraph(
        None,
        _edges(plot),
        claims=claims,
        problem=plot.question.format(**words, **numbers),
        alternatives=[" ".join(texts) for texts, _ in others],
        id=f"word-{i}",
    )
    return graph, labels


def _edges(plot):
    used = [
        (parent, v)
        for v, step in enumerate(plot.steps)
        for parent in (step.left, step.right)
        if isinstance(parent, int)
    ]
    return [*used, (len(plot.steps) - 1, len(plot.steps))]


def _draw_answer(plot, numbers, words, trap, rng):
    """Sentences of one answer, and which of them are true."""
    right, found, claims, labels = [], [], [], []
    for v, step in enumerate(plot.steps):
        right.append(_calculate(step, numbers, right)[-1])
        left, sign, other, result = _calculate(step, numbers, found)
        if v == trap.step and rng.rand() < trap.pull:
            wrong = _mistake(trap.kind, trap.choice, step, left, other, numbers)
            left, sign, other, result = wrong
        elif rng.rand() < _CARELESS:
            kind, choice = rng.randint(3), rng.randint(100)
            wrong = _mistake(kind, choice, step, left, other, numbers)
            left, sign, other, result = wrong
        found.append(result)
        equation = f"{left} {sign} {other} = {result}"
        claims.append(step.text.format(equation=equation, **words))
        labels.append(result == right[-1] and result == _SIGNS[sign](left, other))
    claims.append(f"The answer is {found[-1]}.")
    labels.append(found[-1] == right[-1])
    return claims, np.array(labels, dtype=int)


def _calculate(step, numbers, results):
    left, right = (
        results[x] if isinstance(x, int) else numbers[x]
        for x in (step.left, step.right)
    )
    return left, step.sign, right, _SIGNS[step.sign](left, right)


def _mistake(kind, choice, step, left, right, numbers):
    """The same step gone wrong in one of three ways."""
    sign = step.sign
    if kind == 0:  # the result is miscalculated
        slip = (-10, -2, -1, 1, 2, 10)[choice % 6]
        return left, sign, right, _SIGNS[sign](left, right) + slip
    if kind == 1 and isinstance(step.right, str):  # another number is read
        others = [n for n in numbers.values() if n != right] or [right + 1]
        right = others[choice % len(others)]
    else:  # the operation is mistaken
        sign = {"+": "-", "-": "+", "*": "+"}[sign]
    return left, sign, right, _SIGNS[sign](left, right)
