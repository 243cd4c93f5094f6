"""Several transformers of graphs side by side."""

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _BaseComposition

from ..graphs import as_batch
from ._base import GraphTransformer


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

    def __init__(self, transformer_list, *, keep_input=True):
        self.transformer_list = transformer_list
        self.keep_input = keep_input

    def get_params(self, deep=True):
        """Parameters, those of the members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        dict
        """
        return self._get_params("transformer_list", deep=deep)

    def set_params(self, **params):
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

    def fit(self, X, y=None):
        """Fit a copy of every member.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
        y : passed on to the members

        Returns
        -------
        self
        """
        batch = as_batch(X)
        if not self.transformer_list:
            raise ValueError(
                "transformer_list is empty: give (name, transformer) pairs"
            )
        names, members = zip(*self.transformer_list, strict=True)
        self._validate_names(names)
        fitted = [clone(member).fit(batch, y) for member in members]
        owners = {}
        for name, member in zip(names, fitted, strict=True):
            for column in member_names(member):
                if column in owners:
                    raise ValueError(
                        f"{owners[column]!r} and {name!r} both make the column "
                        f"{column!r}"
                    )
                owners[column] = name
        self.transformers_ = fitted
        return super().fit(batch)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of the transformed problems.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the input columns; those seen in `fit` by default.

        Returns
        -------
        ndarray of str
        """
        if not self.keep_input:
            input_features = ()
        return super().get_feature_names_out(input_features)

    def _own_names(self):
        return [name for member in self.transformers_ for name in member_names(member)]

    def _own_columns(self, batch):
        return np.hstack([member_columns(m, batch) for m in self.transformers_])

    def _add(self, batch):
        if self.keep_input:
            return super()._add(batch)
        return batch.replace_features(self._own_columns(batch), self._own_names())


def make_graph_union(*transformers, keep_input=True):
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
    for name in {n for n in names if names.count(n) > 1}:
        places = [i for i, n in enumerate(names) if n == name]
        for k, i in enumerate(places, start=1):
            names[i] = f"{name}-{k}"
    members = list(zip(names, transformers, strict=True))
    return GraphUnion(members, keep_input=keep_input)


def member_names(member):
    """Names of the columns that a member of a union contributes."""
    if isinstance(member, GraphTransformer):
        return list(member._own_names())
    return list(member.get_feature_names_out())


def member_columns(member, batch):
    """The columns that a member of a union contributes."""
    if isinstance(member, GraphTransformer):
        member._check(batch)
        return member._own_columns(batch)
    return member.transform(batch).features
