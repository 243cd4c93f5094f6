"""Several transformers of graphs side by side."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import _BaseComposition

from .._parameters import HasMethods
from ..graphs import GraphBatch, as_batch
from ._base import Graphs, GraphTransformer

_TRANSFORMER = HasMethods(["fit", "transform"])


class GraphUnion(GraphTransformer, _BaseComposition):
    """Columns of several transformers side by side.

    scikit-learn's ``FeatureUnion`` joins tables and would drop texts and edges.

    Parameters
    ----------
    transformer_list : list of (str, transformer)
        Each sees the input as it is. Of the transformers of this package the columns
        that they make are taken; of any other, such as a Pipeline, the whole output.
    keep_input : bool, default=True
        Whether the input columns stay, in front. A transformer's column replaces an
        input column of the same name.

    Raises
    ------
    ValueError
        If two transformers make a column of the same name.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import GraphFeatures, GraphUnion
    >>> batch = GraphBatch.from_arrays([[5.0], [0.0]], [0, 2], [(0, 1)])
    >>> sides = [("in", GraphFeatures(["nx_in_degree"])),
    ...          ("out", GraphFeatures(["nx_out_degree"]))]
    >>> union = GraphUnion(sides, keep_input=False).fit(batch)
    >>> union.get_feature_names_out().tolist()
    ['nx_in_degree', 'nx_out_degree']
    >>> union.transform(batch).features
    array([[0., 1.],
           [1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "transformer_list": [list, tuple],
        "keep_input": ["boolean"],
    }

    def __init__(
        self,
        transformer_list: Sequence[tuple[str, BaseEstimator]],
        *,
        keep_input: bool = True,
    ):
        self.transformer_list = transformer_list
        self.keep_input = keep_input

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, those of the members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        dict
        """
        return self._get_params("transformer_list", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name=transformer`` replaces a member.

        Parameters
        ----------
        **params

        Returns
        -------
        self
        """
        self._set_params("transformer_list", **params)
        return self

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """Fit a copy of every member.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
        y : passed on to the members

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are no members, or two of them make a column of the same name.
        """
        batch = as_batch(X)
        names, members = self._check_members()
        self.transformers_ = [clone(member).fit(batch, y) for member in members]
        owner = {}
        for name, member in zip(names, self.transformers_, strict=True):
            for column in list_made_columns(member):
                if column in owner:
                    raise ValueError(
                        f"{owner[column]!r} and {name!r} both make the column {column!r}"
                    )
                owner[column] = name
        return super().fit(batch)

    def _check_members(self):
        """Names and members, or a ValueError."""
        self.validate()
        for pair in self.transformer_list:
            named = isinstance(pair, (tuple, list)) and len(pair) == 2
            if not (named and _TRANSFORMER.is_satisfied_by(pair[1])):
                raise ValueError(
                    f"transformer_list has the entry {pair!r}, but needs pairs of a name and "
                    "a transformer"
                )
        if not self.transformer_list:
            raise ValueError(
                "transformer_list is empty: give (name, transformer) pairs"
            )
        names, members = zip(*self.transformer_list, strict=True)
        self._validate_names(names)
        return names, members

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> np.ndarray:
        if not self.keep_input:
            input_features = ()
        return super().get_feature_names_out(input_features)

    def _own_names(self) -> list[str]:
        return [
            name for member in self.transformers_ for name in list_made_columns(member)
        ]

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        return np.hstack([make_columns(m, batch) for m in self.transformers_])

    def _add(self, batch: GraphBatch) -> GraphBatch:
        if self.keep_input:
            return super()._add(batch)
        return batch.replace_features(self._own_columns(batch), self._own_names())


def make_graph_union(
    *transformers: BaseEstimator, keep_input: bool = True
) -> GraphUnion:
    """A `GraphUnion` whose members are named after their classes.

    Parameters
    ----------
    *transformers
        Transformers of graphs.
    keep_input : bool, default=True
        Whether the input columns stay.

    Returns
    -------
    GraphUnion

    Examples
    --------
    >>> from skdcf.features import GraphFeatures, TextFeatures, make_graph_union
    >>> union = make_graph_union(GraphFeatures(), TextFeatures())
    >>> [name for name, _ in union.transformer_list]
    ['graphfeatures', 'textfeatures']
    """
    names = [type(t).__name__.lower() for t in transformers]
    total, seen, members = Counter(names), Counter(), []
    for name, transformer in zip(names, transformers, strict=True):
        seen[name] += 1
        suffix = f"-{seen[name]}" if total[name] > 1 else ""
        members.append((name + suffix, transformer))
    return GraphUnion(members, keep_input=keep_input)


def list_made_columns(member: BaseEstimator) -> list[str]:
    """Names of the columns that a member of a union contributes."""
    if isinstance(member, GraphTransformer):
        return list(member._own_names())
    return list(member.get_feature_names_out())


def make_columns(member: BaseEstimator, batch: GraphBatch) -> np.ndarray:
    """The columns that a member of a union contributes."""
    if isinstance(member, GraphTransformer):
        member._check(batch)
        return member._own_columns(batch)
    return member.transform(batch).features
