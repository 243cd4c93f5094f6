"""What the equations of an answer have to do with each other: no model, no label."""

from itertools import pairwise

import numpy as np

from ..graphs import GraphBatch
from ._algebra import find_equations
from ._base import GraphTransformer
from ._clean import clean
from ._text import check_claim_texts

COLUMNS = (
    "symbolic_identities",
    "symbolic_broken_chains",
    "symbolic_repeated",
    "symbolic_new",
    "symbolic_solved",
    "symbolic_unsolved",
    "symbolic_values_agree",
    "symbolic_values_disagree",
)
_MOST = 3  # that are counted of one claim
_REMEMBERED = 40  # equations of one answer that later ones are compared with


class SymbolicFeatures(GraphTransformer):
    """How the equations with variables of a claim agree with those before it.

    Not part of `reasoning_features`: the columns help a scorer, but none of them is an
    alarm. A variable may be used again for something else, and an equation that follows
    from two others looks new. Join them to other columns by `make_graph_union`.

    *Before* claim v are the question, the claims that stand before v, and what stands
    before an equation in v. Each column counts, up to 3:

    ============================  ====================================================
    column                        equations of claim v
    ============================  ====================================================
    ``symbolic_identities``       whose sides agree for all values of the variables
    ``symbolic_broken_chains``    b = c in a = b = c, where b and c have the same
                                  variables but are not the same
    ``symbolic_repeated``         that are a constant multiple of one before
    ``symbolic_new``              that are neither of these, nor give a value
    ``symbolic_solved``           x = number, where the number solves an equation before
    ``symbolic_unsolved``         x = number, where the number solves none of those
                                  before that can be checked
    ``symbolic_values_agree``     new ones that hold for the values found before
    ``symbolic_values_disagree``  new ones that do not
    ============================  ====================================================

    "For all values" means at three fixed points, so that the columns are the same in
    every run. Single letters, with or without an index, are variables; what cannot be
    read safely (functions, words inside, 1/2x) is left out.

    Raises
    ------
    ValueError
        If a claim has no text. A missing question counts as an empty one.

    Notes
    -----
    Nothing of a text is run as code, and each problem is read by itself. Of one text,
    12 equations of at most 200 characters a side count, and of one answer 40 are
    compared with later ones, so that time is linear in the length of the texts.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import SymbolicFeatures, make_graph_union, reasoning_features
    >>> graph = ReasoningGraph.from_parents(
    ...     [[], [0], [1]],
    ...     claims=["4x + 6 = 14", "4x = 14 - 6, so x = 2", "(x + 1)^2 = x^2 + 1 = 5"],
    ...     problem="Solve 2x + 3 = 7.",
    ... )
    >>> batch = SymbolicFeatures().fit_transform([graph])
    >>> for name in "repeated", "solved", "values_disagree":
    ...     print(name, batch.features[:, batch.feature_names.index(f"symbolic_{name}")])
    repeated [1. 1. 0.]
    solved [0. 1. 0.]
    values_disagree [0. 0. 1.]
    >>> both = make_graph_union(reasoning_features(), SymbolicFeatures())
    >>> both.fit_transform([graph]).n_features
    38
    """

    def _own_names(self) -> tuple[str, ...]:
        return COLUMNS

    def _check(self, batch: GraphBatch) -> None:
        check_claim_texts(batch)

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        table = np.zeros((batch.n_claims, len(COLUMNS)))
        for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
            if not any("=" in text for text in batch.claims[a:b] if b > a):
                continue
            answer = _Answer(None if batch.problems is None else batch.problems[i])
            for v in range(a, b):
                table[v] = answer.read(batch.claims[v])
        return np.minimum(table, _MOST)


class _Answer:
    """One text after another, against what the ones before have said."""

    def __init__(self, question):
        self.known, self.values = [], {}
        self.read(question or "")

    def read(self, text):
        """The counts of a text."""
        counts = dict.fromkeys(COLUMNS, 0)
        if "=" in text:
            for chain in find_equations(clean(text)):
                for at, equation in enumerate(chain):
                    for name in self._judge(equation, at):
                        counts[f"symbolic_{name}"] += 1
        return list(counts.values())

    def _judge(self, equation, at):
        """Names of the columns that count an equation, which is known from then on."""
        if equation.is_identity:
            return ["identities"]
        found = ["broken_chains"] if at and equation.breaks_a_chain else []
        if equation.solution:
            found += self._judge_solution(equation)
        elif any(equation.says_the_same(other) for other in self.known):
            return [*found, "repeated"]
        else:
            found += ["new", *self._judge_values(equation)]
        if len(self.known) < _REMEMBERED:
            self.known.append(equation)
        return found

    def _judge_solution(self, equation):
        name, value = equation.solution
        outcomes = [
            other.holds_at(self.values | {name: value})
            for other in self.known
            if name in other.variables
            and other.variables <= self.values.keys() | {name}
        ]
        self.values[name] = value
        outcomes = [holds for holds in outcomes if holds is not None]
        if not outcomes:
            return []
        return ["solved" if any(outcomes) else "unsolved"]

    def _judge_values(self, equation):
        if not equation.variables <= self.values.keys():
            return []
        holds = equation.holds_at(self.values)
        if holds is None:
            return []
        return ["values_agree" if holds else "values_disagree"]
