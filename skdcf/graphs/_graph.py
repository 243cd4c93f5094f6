"""Graph of a single problem, with its claims, their dependencies and their features.

Graphs can be created from lists of parents or adjacency matrices, and converted to and from
networkx graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from numbers import Integral
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_choice, check_list, printable
from .._html import graph_html
from . import _inputs
from ._derived import OneName, find_ancestors
from .ragged import read_only
from .sources import cut_metadata

_LISTS = ("claims", "alternatives", "context", "feature_names")
_FIELDS = ("features", "edges", *_LISTS, "problem", "id", "provenance", "metadata")
# fields that do not affect the checks of other fields
_CHECKED_ALONE = {"problem", "alternatives", "context", "provenance", "metadata"}
_OF_GRAPH = _FIELDS[3:]  # fields that describe the whole graph


#: Advice for data in the JSON format of networkx.node_link_data.
_NODE_LINK = (
    ". This is node-link data. Read it with "
    "ReasoningGraph.from_networkx(networkx.node_link_graph(data))"
)


class ReasoningGraph:
    """Claims of one answer, together with their dependency graph.

    Parameters
    ----------
    features : array-like of shape (n_claims, n_features) or None
        Claim features, with one row of finite numbers per claim. If None, the claims have only
        texts.
    edges : iterable of (parent, child), optional
        The dependencies. The claim with index ``child`` depends on the claim with index
        ``parent``. Claim indices start at 0. The claims can be in any order. Duplicate edges are
        merged, and the edges are sorted by (child, parent). If ``edges`` is empty, all claims are
        independent. If None, the dependencies are unknown. A filter distinguishes between
        independent claims and unknown dependencies.
    claims : sequence of str, optional
        Claim texts.
    problem : str, optional
        Question to which the answer belongs.
    alternatives : sequence of str, optional
        Texts of other answers to the same question. The sequence of alternatives may be empty.
    context : sequence of str, optional
        Texts that must support the answer, such as retrieved passages. If None, the texts are
        unknown. If the list is empty, the answer has no context.
    feature_names : sequence of str, optional
        Feature column names. By default, the column names of a pandas, polars or pyarrow table
        are used.
    id : str or int, optional
        Problem name, which is used in messages and files.
    provenance : dict, optional
        How the answer and its labels were made, as strings, numbers and booleans, such as
        ``{"model": "qwen2.5", "label_source": "person"}``. A filter compares the values with
        those of its calibration problems. Provenance is ignored in comparisons with ``==``.
    metadata : dict, optional
        Additional data, such as the model or the subject. Metadata is ignored in comparisons with
        ``==``. The key ``group`` identifies the question (see `skdcf.graphs.question_groups`).

    Attributes
    ----------
    edges : ndarray of int of shape (n_edges, 2)
        The sorted edges. The array of edges is empty if the edges are unknown.
    edges_known : bool
        Whether the edges are known.
    n_claims : int
        Number of claims. The number of claims is 0 if a filter keeps no claims.

    Raises
    ------
    ValueError
        If the edges contain a cycle, a self-loop or an invalid index. A ValueError is also raised
        if a feature value is missing, masked, infinite or complex, or if a text is not a string.
        Sets are rejected because their order is undefined. The numbers of claims, feature rows
        and names must be consistent.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> graph = ReasoningGraph([[0.9], [0.8], [0.1]], [(0, 1), (1, 2)])
    >>> graph
    ReasoningGraph(n_claims=3, n_edges=2, n_features=1)
    >>> graph.ancestors(2)
    array([0, 1])
    """

    __slots__ = (*_FIELDS, "edges_known", "n_claims")

    features: NDArray[np.float64] | None
    edges: NDArray[np.int64]
    claims: tuple[str, ...] | None
    alternatives: tuple[str, ...] | None
    context: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    problem: str | None
    id: Any
    provenance: dict[str, Any] | None
    metadata: dict[str, Any] | None
    edges_known: bool
    n_claims: int

    def __init__(
        self,
        features: ArrayLike | None = None,
        edges: Iterable[Iterable[int]] | None = None,
        *,
        claims: Iterable[str] | None = None,
        problem: str | None = None,
        alternatives: Iterable[str] | None = None,
        context: Iterable[str] | None = None,
        feature_names: Iterable[str] | None = None,
        id: Any = None,
        provenance: Mapping[str, str | float | bool] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        names = OneName(id)
        where = names.at()
        if features is None and claims is None:
            raise ValueError(
                f"{where}features and claims cannot both be None. Pass at least one of them"
            )
        table = _inputs.check_features(features, None, names, copy=True)
        texts = _inputs.check_texts(claims, "claims", where)
        n_claims = len(texts if table is None else table)
        if texts is not None and len(texts) != n_claims:
            raise ValueError(
                f"{where}the number of claim texts must equal the number of feature rows, got "
                f"{len(texts)} texts and {n_claims} rows"
            )
        rows = {"problem": problem, "alternatives": alternatives, "context": context}
        rows |= {"provenance": provenance, "metadata": metadata}
        self._set(
            features=table,
            edges=_inputs.check_edges(edges, np.array([0, n_claims]), names)[0],
            claims=texts,
            feature_names=_inputs.check_names(feature_names, features, table, where),
            id=id,
            edges_known=edges is not None,
            n_claims=n_claims,
            **{
                k: _inputs.check_field(k, value, n_claims, where)
                for k, value in rows.items()
            },
        )

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(cls, **values):
        """Create a graph from values that have already been checked."""
        graph = object.__new__(cls)
        graph._set(**values)
        return graph

    def __setattr__(self, name: str, *value: object) -> NoReturn:
        raise AttributeError(
            f"a ReasoningGraph is immutable. Use .replace({name}=...) to create a changed "
            "copy"
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name)

    def __setstate__(self, state: Any) -> None:
        for name in ("features", "edges"):  # Unpickled arrays are writeable.
            if state[1][name] is not None:
                state[1][name] = read_only(state[1][name])
        self._set(**state[1])

    def __repr__(self) -> str:
        counts = [f"n_claims={self.n_claims}", f"n_edges={_inputs.show_count(self)}"]
        if self.features is not None:
            counts.append(f"n_features={self.features.shape[1]}")
        if self.id is not None:
            counts.append(f"id={printable(repr(self.id))}")
        return f"ReasoningGraph({', '.join(counts)})"

    _repr_html_ = graph_html

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReasoningGraph):
            return NotImplemented
        # If a graph has no claims, an empty list of texts is equal to None.
        aside = {"provenance": None, "metadata": None, "claims": None}
        ours = self.to_dict() | aside
        theirs = other.to_dict() | aside
        return ours == theirs and (self.claims or ()) == (other.claims or ())

    def __hash__(self) -> int:
        texts = self.claims or None
        return hash((self.n_claims, self.edges.tobytes(), texts, self.problem))

    def replace(self, **changes: Any) -> ReasoningGraph:
        """Return a copy of the graph with some constructor arguments changed.

        Parameters
        ----------
        **changes
            New values of the constructor arguments to change.

        Returns
        -------
        copy : ReasoningGraph
            The copy. All other arguments are copied from this graph.
        """
        if changes.keys() <= _CHECKED_ALONE:
            where = OneName(self.id).at()
            values = {name: getattr(self, name) for name in self.__slots__}
            for name, value in changes.items():
                values[name] = _inputs.check_field(name, value, self.n_claims, where)
            return self._trusted(**values)
        values = {name: getattr(self, name) for name in _FIELDS}
        if not self.edges_known:
            values["edges"] = None
        if _inputs.column_names(changes.get("features")) is not None:
            del values["feature_names"]  # The new table defines the feature names.
        return ReasoningGraph(**values | changes)

    def ancestors(self, v: int) -> NDArray[np.int64]:
        """Return all claims that claim ``v`` depends on, directly or indirectly.

        Parameters
        ----------
        v : int
            Position of the claim.

        Returns
        -------
        ancestors : ndarray of int
            Sorted indices of the ancestors, excluding ``v``.
        """
        if not 0 <= v < self.n_claims:
            raise ValueError(
                f"v must be a claim position from 0 to {self.n_claims - 1}, got {v} for "
                f"{self.n_claims} claims"
            )
        return find_ancestors(self.edges, self.n_claims, v)

    def subgraph(self, mask: ArrayLike) -> ReasoningGraph:
        """Return the subgraph of the claims selected by ``mask``, in the same order.

        Parameters
        ----------
        mask : array-like of bool, shape (n_claims,)
            Mask that is True for the claims to keep.

        Returns
        -------
        subgraph : ReasoningGraph
            The subgraph. Edges from or to claims that are not selected are removed.
        """
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.n_claims,):
            raise ValueError(
                f"mask must be an array of {self.n_claims} booleans, got {mask.dtype} of "
                f"shape {mask.shape}"
            )
        values = {name: getattr(self, name) for name in self.__slots__}
        if self.features is not None:
            values["features"] = read_only(self.features[mask])
        kept = self.edges[mask[self.edges].all(axis=1)]
        values["edges"] = read_only((np.cumsum(mask) - 1)[kept])
        values["claims"] = self.claims and tuple(compress(self.claims, mask))
        values["metadata"] = cut_metadata(self.metadata, mask)
        values["n_claims"] = int(mask.sum())
        return self._trusted(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as a dict of JSON-compatible values, which `from_dict` converts back.

        Returns
        -------
        fields : dict
            The values of ``features``, ``edges`` (None if the edges are unknown), and all other
            fields that are set.
        """
        out = {
            "features": None if self.features is None else self.features.tolist(),
            "edges": self.edges.tolist() if self.edges_known else None,
        }
        if self.features is not None and not self.n_claims:
            out["n_features"] = self.features.shape[1]
        for name in _FIELDS[2:]:
            value = getattr(self, name)
            if value is not None:
                out[name] = list(value) if name in _LISTS else value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReasoningGraph:
        """Create a graph from a dict, such as one returned by `to_dict`.

        Parameters
        ----------
        data : dict
            Dict returned by `to_dict`, or a parsed line of JSON.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"data must be a dict, got {type(data).__name__}")
        data = dict(data)
        width = data.pop("n_features", 0)
        if unknown := set(data) - {*_FIELDS}:
            raise ValueError(
                f"the keys {sorted(map(str, unknown))} are unknown. Use only "
                f"{list(_FIELDS)}" + (_NODE_LINK if "nodes" in unknown else "")
            )
        features = data.pop("features", None)
        if features is None and data.get("claims") is None:
            data["claims"] = ()
        if features is not None and not len(check_list("features", features)):
            features = np.empty((0, width))
        return cls(features, **data)

    def to_networkx(self) -> Any:
        """Return the graph as a ``networkx.DiGraph`` with edges from parents to children.

        Returns
        -------
        digraph : networkx.DiGraph
            The converted graph. The nodes are claim indices and have the attributes ``claim`` and
            ``features`` if the graph has texts and features. All other fields that are set become
            attributes of the graph. If the edges are unknown, the graph attribute ``edges_known``
            is False.
        """
        import networkx as nx

        fields = {name: getattr(self, name) for name in _OF_GRAPH}
        out = nx.DiGraph(**{k: v for k, v in fields.items() if v is not None})
        if not self.edges_known:
            out.graph["edges_known"] = False
        out.add_nodes_from(range(self.n_claims))
        out.add_edges_from(self.edges.tolist())
        for v, node in out.nodes.items():
            if self.claims is not None:
                node["claim"] = self.claims[v]
            if self.features is not None:
                node["features"] = self.features[v].tolist()
        return out

    @classmethod
    def from_networkx(cls, graph: Any, **fields: Any) -> ReasoningGraph:
        """Create a graph from a directed networkx graph with edges from parents to children.

        Parameters
        ----------
        graph : networkx.DiGraph
            The graph to convert. The nodes can have any names, and the order of the nodes is the
            order of the claims. The node attributes ``claim`` and ``features`` are used if all
            nodes have them.
        **fields
            Constructor arguments, which override the attributes of the graph.

        Returns
        -------
        reasoning_graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        if not graph.is_directed():
            raise ValueError(
                "graph must be directed, because edges point from parent to child. Pass a "
                "networkx.DiGraph"
            )
        position = {node: i for i, node in enumerate(graph.nodes)}
        values = {name: graph.graph.get(name) for name in _OF_GRAPH}
        for field, name in (("claims", "claim"), ("features", "features")):
            node_values = [
                attributes[name]
                for _, attributes in graph.nodes(data=True)
                if name in attributes
            ]
            if len(node_values) == len(position) and (node_values or name == "claim"):
                values[field] = node_values
        pairs = [(position[u], position[v]) for u, v in graph.edges()]
        edges_known = pairs or graph.graph.get("edges_known", True)
        values |= {"edges": pairs if edges_known else None} | fields
        return cls(**{"features": None} | values)

    @classmethod
    def from_parents(
        cls,
        parents: Sequence[Iterable[int]],
        features: ArrayLike | None = None,
        **fields: Any,
    ) -> ReasoningGraph:
        """Create a graph from a list of the direct parents of each claim.

        Parameters
        ----------
        parents : sequence of sequences of int
            Parents of each claim. ``parents[v]`` contains the indices of the claims on which
            claim v directly depends. Claim indices start at 0.
        features : array-like of shape (n_claims, n_features), optional
            Features of the claims.
        **fields
            Further constructor arguments.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        n_claims = _count_claims(features, fields)
        if n_claims not in (None, len(check_list("parents", parents))):
            raise ValueError(
                f"parents must contain one list for each of the {n_claims} claims, got "
                f"{len(parents)}"
            )
        edges = []
        for v, row in enumerate(parents):
            row = list(check_list(f"parents[{v}]", row, sized=False))
            if wrong := [u for u in row if not isinstance(u, Integral)]:
                raise ValueError(
                    f"parents[{v}] must contain claim positions, which are integers starting at "
                    f"0, got {wrong[0]!r}"
                )
            edges += [(u, v) for u in row]
        return cls(features, edges, **fields)

    @classmethod
    def from_adjacency(
        cls,
        matrix: ArrayLike,
        features: ArrayLike | None = None,
        *,
        orientation: Literal["child_row", "parent_row"] = "child_row",
        **fields: Any,
    ) -> ReasoningGraph:
        """Create a graph from an adjacency matrix of zeros and ones.

        Parameters
        ----------
        matrix : array-like of shape (n_claims, n_claims)
            The matrix. Each 1 represents an edge, whose direction is determined by
            ``orientation``.
        features : array-like of shape (n_claims, n_features), optional
            Features of the claims.
        orientation : {"child_row", "parent_row"}
            Meaning of ``matrix[v][u] == 1``. If "child_row", row v of the matrix marks the
            parents of claim v. If "parent_row", row v of the matrix marks the children of claim
            v.
        **fields
            Further constructor arguments.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        check_choice("orientation", orientation, ("child_row", "parent_row"))
        n_claims = _count_claims(features, fields) or 0
        matrix = np.asarray(matrix)
        if matrix.size == 0:
            matrix = matrix.reshape(0, 0)
        if matrix.shape != (n_claims, n_claims):
            raise ValueError(
                f"matrix must be square with one row for each of the {n_claims} "
                f"claims, got shape {matrix.shape}"
            )
        if not np.isin(matrix, (0, 1)).all():
            raise ValueError(
                "matrix must contain only 0 and 1, but it contains other values"
            )
        pairs = np.argwhere(matrix)
        edges = pairs[:, ::-1] if orientation == "child_row" else pairs
        return cls(features, edges, **fields)


def _count_claims(features, fields):
    """Return the number of claims in the features or texts, or None if it is unknown."""
    claims = fields.get("claims")
    rows, name = (claims, "claims") if features is None else (features, "features")
    return None if rows is None else len(check_list(name, rows))
