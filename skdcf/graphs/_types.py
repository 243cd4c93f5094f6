"""What users may pass, as types."""

from collections.abc import Sequence
from typing import TypeAlias

from numpy.typing import ArrayLike

from ._batch import GraphBatch
from ._graph import ReasoningGraph

#: Problems: graphs, packed graphs, or a table in which each row is a problem of one claim.
Problems: TypeAlias = GraphBatch | Sequence[ReasoningGraph] | ArrayLike
#: Labels: one array per problem, or one flat array.
Labels: TypeAlias = Sequence[ArrayLike] | ArrayLike
