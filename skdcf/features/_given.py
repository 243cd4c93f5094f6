"""Columns that the data bring, taken by name."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..graphs import GraphBatch
from ._base import GraphTransformer, list_columns

SEMANTIC = (
    "claim_index",
    "coherent_to_ancestors",
    "inference_gap_size",
    "has_missing_dependencies",
    "has_unnecessary_dependencies",
    "problem_relevance",
    "uses_problem_data",
    "is_well_formed",
)


class _GivenColumns(GraphTransformer):
    """Columns of the input, under names of their own."""

    reads_edges = False

    def _sources(self) -> Sequence[str]:
        """Names of the input columns that are needed."""
        raise NotImplementedError

    def _check(self, batch: GraphBatch) -> None:
        there = list_columns(batch)
        missing = [name for name in self._sources() if name not in there]
        if missing:
            raise ValueError(
                f"the problems have no column {', '.join(map(repr, missing))}; "
                f"they have {there or 'no feature columns'}"
            )

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        there = list_columns(batch)
        return batch.features[:, [there.index(name) for name in self._sources()]]


class FrequencyFeature(_GivenColumns):
    """The self-consistency score: in how many regenerated answers a claim comes back.

    Parameters
    ----------
    column : str, default="frequency-score"
        Where the score stands in the data; higher must mean more often supported.

    Raises
    ------
    ValueError
        If the column is missing; the message lists those that exist.

    Notes
    -----
    The column appears as ``frequency-score``, which is what the scorers look for.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import FrequencyFeature
    >>> batch = GraphBatch.from_arrays([[0.4]], [0, 1], feature_names=["consistency"])
    >>> FrequencyFeature("consistency").fit_transform(batch).feature_names
    ('consistency', 'frequency-score')
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {"column": [str]}

    def __init__(self, column: str = "frequency-score"):
        self.column = column

    def _own_names(self) -> tuple[str, ...]:
        return ("frequency-score",)

    def _sources(self) -> tuple[str, ...]:
        return (self.column,)


class SemanticFeatures(_GivenColumns):
    """What a judge, human or model, says about each claim; taken from the data.

    Parameters
    ----------
    columns : sequence of str, optional
        Names of the columns. By default the eight of the paper: ``claim_index``,
        ``coherent_to_ancestors``, ``inference_gap_size``, ``has_missing_dependencies``,
        ``has_unnecessary_dependencies``, ``problem_relevance``, ``uses_problem_data``
        and ``is_well_formed``. ``claim_index`` is counted where the data lack it.

    Raises
    ------
    ValueError
        If a column is missing; the message lists those that exist.

    Notes
    -----
    The appendix "Feature Descriptions" of arXiv:2604.20098 names seven of the eight and
    "additional validation flags"; ``is_well_formed`` stands for these.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import SemanticFeatures
    >>> batch = GraphBatch.from_arrays(
    ...     [[1.0, 0.0]], [0, 1], feature_names=["problem_relevance", "other"]
    ... )
    >>> names = ["claim_index", "problem_relevance"]
    >>> SemanticFeatures(names).fit_transform(batch).feature_names
    ('other', 'claim_index', 'problem_relevance')
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "columns": ["array-like", None]
    }

    def __init__(self, columns: Sequence[str] | None = None):
        self.columns = columns

    def _own_names(self) -> tuple[str, ...]:
        return SEMANTIC if self.columns is None else tuple(self.columns)

    def _sources(self) -> tuple[str, ...]:
        return tuple(name for name in self._own_names() if name != "claim_index")

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        there, names = list_columns(batch), self._own_names()
        table = np.empty((batch.n_claims, len(names)))
        for column, name in enumerate(names):
            if name in there:
                table[:, column] = batch.features[:, there.index(name)]
            else:
                table[:, column] = number_claims(batch)
        return table


def number_claims(batch: GraphBatch) -> np.ndarray:
    """Position of each claim in its answer, counted from 0, shape (n_claims,)."""
    return np.arange(batch.n_claims) - batch.offsets[:-1][batch.problem_of]
