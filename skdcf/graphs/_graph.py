"""One problem: claims, what they build on, and what is known about each.

A problem is also made from, and turned into, the forms of other tools: lists of parents,
adjacency matrices and networkx.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from numbers import Integral
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_choice, check_list, printable
from .._drawing import graph_html
from . import _inputs
from ._derived import OneName, find_ancestors, sort_edges
from .ragged import read_only
from .sources import cut_metadata
from .wordings import check_wordings, claim_of_row, edges_between, expand_edges

_LISTS = ("claims", "alternatives", "context", "feature_names", "wordings")
_FIELDS = ("features", "edges", *_LISTS, "problem", "id", "metadata")
_OF_GRAPH = _FIELDS[3:]  # these belong to the graph as a whole


#: Said of the JSON that networkx.node_link_data gives.
_NODE_LINK = (
    ". This is node-link data: ReasoningGraph.from_networkx(networkx.node_link_graph(data)) "
    "reads it"
)


class ReasoningGraph:
    """The claims of one answer with their dependency graph.

    Parameters
    ----------
    features : array-like of shape (n_claims, n_features) or None
        One row of finite numbers per claim; None while only text is known.
    edges : iterable of (parent, child), optional
        ``child`` builds on ``parent``; positions among the claims, counted from 0.
        Claims may come in any order; duplicate edges are merged, and all are kept sorted
        by (child, parent). An empty list says that no claim builds on another; None says
        that nobody knows. A filter treats the two as different.
    claims : sequence of str, optional
        Text of each claim.
    problem : str, optional
        The question that the answer belongs to.
    alternatives : sequence of str, optional
        Texts of other answers to the same question, possibly none.
    context : sequence of str, optional
        Texts that the answer has to be supported by, such as a passage; None where they
        are not known, and an empty list where there are none.
    feature_names : sequence of str, optional
        Name of each feature column; those of a pandas, polars or pyarrow table by default.
    id : str or int, optional
        A name for messages and files.
    metadata : dict, optional
        Where the problem is from: its model, its subject. Equality does not look at it.
        The key ``group`` names the question (see `skdcf.graphs.question_groups`), and
        ``no_verdict`` and ``flagged_claims`` list claims by position that no filter keeps:
        those whose verdict is missing, and those that may not say what the answer says.
    wordings : sequence of sequences of str, optional
        For each claim all its wordings, the most specific one first; None for a claim that
        has only one. Each wording is then a claim of this graph that builds on the next,
        vaguer one: ``claims``, ``n_claims``, labels and masks have a place for each, in the
        order in which they are written. ``claims`` may be left out, or holds the most specific
        wordings. ``edges`` are those between claims, and ``features`` have a row for each claim
        or for each wording. A text shows the most specific wording that is kept.

    Attributes
    ----------
    edges : ndarray of int, shape (n_edges, 2)
        Empty where the edges are not known.
    edges_known : bool
        Whether the edges are known.
    n_claims : int
        Number of claims; 0 is allowed (an answer of which nothing was kept).

    Raises
    ------
    ValueError
        On a cycle (naming one), a self-loop, an edge out of range, a missing, masked,
        infinite or complex feature, a claim, alternative or context that is no text, a set
        (which has no order), or claims, features and names whose numbers differ.

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
    wordings: tuple[tuple[str, ...], ...] | None
    context: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    problem: str | None
    id: Any
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
        metadata: Mapping[str, Any] | None = None,
        wordings: Iterable[Iterable[str] | None] | None = None,
    ) -> None:
        names = OneName(id)
        where = names.at()
        if features is None and claims is None and wordings is None:
            raise ValueError(f"{where}features and claims are both None: give one")
        table = _inputs.check_features(features, None, names, copy=True)
        texts = _inputs.check_texts(claims, "claims", where)
        if wordings is not None:
            wordings = check_wordings(wordings, texts, where)
            counts = [len(row) for row in wordings]
            texts = tuple(chain.from_iterable(wordings))
            if table is not None and len(table) == len(counts):
                table = read_only(np.repeat(table, counts, axis=0))
            pairs, _ = _inputs.check_edges(edges, np.array([0, len(counts)]), names)
            edges_known = edges is not None
            edges = expand_edges(pairs, counts)
        else:
            edges_known = edges is not None
        n_claims = len(texts if table is None else table)
        if texts is not None and len(texts) != n_claims:
            raise ValueError(
                f"{where}{len(texts)} claim texts but {n_claims} rows of features"
            )
        rows = {"problem": problem, "alternatives": alternatives, "context": context}
        rows["metadata"] = metadata
        self._set(
            features=table,
            edges=_inputs.check_edges(edges, np.array([0, n_claims]), names)[0],
            claims=texts,
            feature_names=_inputs.check_names(feature_names, features, table, where),
            id=id,
            wordings=wordings,
            edges_known=edges_known,
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
        """Build from values that are known to be right."""
        graph = object.__new__(cls)
        graph._set(**values)
        return graph

    def __setattr__(self, name: str, *value: object) -> NoReturn:
        raise AttributeError(
            f"ReasoningGraph is immutable: use .replace({name}=...) for a changed copy"
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name)

    def __setstate__(self, state: Any) -> None:
        for name in ("features", "edges"):  # pickling forgets that arrays are read-only
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
        # A graph without claims has no texts.
        aside = {"metadata": None, "claims": None}
        ours = self.to_dict() | aside
        theirs = other.to_dict() | aside
        return ours == theirs and (self.claims or ()) == (other.claims or ())

    def __hash__(self) -> int:
        texts = self.claims or None
        return hash((self.n_claims, self.edges.tobytes(), texts, self.problem))

    def replace(self, **changes: Any) -> ReasoningGraph:
        """A copy with some constructor arguments changed.

        Parameters
        ----------
        **changes
            Any of the constructor's arguments.

        Returns
        -------
        ReasoningGraph
            All else is that of this graph.
        """
        values = {name: getattr(self, name) for name in _FIELDS}
        values["edges"] = self._edges_between() if self.edges_known else None
        if self.wordings is not None:
            values["claims"] = None  # they follow from the wordings
            if changes.get("claims") is not None:
                values["wordings"] = None
        if _inputs.column_names(changes.get("features")) is not None:
            del values["feature_names"]  # the new table brings its own
        return ReasoningGraph(**values | changes)

    def ancestors(self, v: int) -> NDArray[np.int64]:
        """All claims that claim ``v`` builds on, directly or not.

        Parameters
        ----------
        v : int
            Position of the claim.

        Returns
        -------
        ndarray of int, sorted; v itself is not in it.
            Their positions.
        """
        if not 0 <= v < self.n_claims:
            raise ValueError(f"claim {v} but only {self.n_claims} claims")
        return find_ancestors(self.edges, self.n_claims, v)

    def subgraph(self, mask: ArrayLike) -> ReasoningGraph:
        """The graph of the claims where ``mask`` is true, in the same order.

        What the metadata say of single claims, as in ``no_verdict`` and ``label_sources``, follows
        the claims that stay.

        Parameters
        ----------
        mask : array-like of bool, shape (n_claims,)
            True for the claims that stay.

        Returns
        -------
        ReasoningGraph
            Edges that lead to or from another claim are left out.
        """
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.n_claims,):
            raise ValueError(
                f"mask must be {self.n_claims} booleans, got {mask.dtype} of shape "
                f"{mask.shape}"
            )
        values = {name: getattr(self, name) for name in self.__slots__}
        if self.features is not None:
            values["features"] = read_only(self.features[mask])
        kept = self.edges[mask[self.edges].all(axis=1)]
        values["edges"] = read_only((np.cumsum(mask) - 1)[kept])
        if self.wordings is not None:
            texts = iter(mask.tolist())
            rows = [[t for t in row if next(texts)] for row in self.wordings]
            values["wordings"] = tuple(tuple(row) for row in rows if row)
        values["claims"] = self.claims and tuple(compress(self.claims, mask))
        values["metadata"] = cut_metadata(self.metadata, mask)
        values["n_claims"] = int(mask.sum())
        return self._trusted(**values)

    def shown(self, mask: ArrayLike | None = None) -> ReasoningGraph:
        """The graph that a reader sees: each claim in the most specific wording that is kept.

        Parameters
        ----------
        mask : array-like of bool, shape (n_claims,), optional
            True for the claims that are kept. None keeps all.

        Returns
        -------
        ReasoningGraph
            Without wordings; the edges are those between the claims that stay. For a graph
            without wordings it is that of `subgraph`.
        """
        mask = np.ones(self.n_claims, bool) if mask is None else np.asarray(mask)
        if self.wordings is None:
            return self.subgraph(mask)
        kept = self.subgraph(mask)
        counts = np.array([len(row) for row in self.wordings], dtype=np.int64)
        claim = claim_of_row(counts)[mask]
        first = np.append(True, claim[1:] > claim[:-1])[: len(claim)]
        # A claim that is kept has the claims that it builds on, in all their wordings.
        place = np.full(len(counts), -1)
        place[claim[first]] = np.arange(first.sum())
        pairs = place[edges_between(self.edges, counts)]
        plain = object.__new__(ReasoningGraph)
        plain._set(**{name: getattr(kept, name) for name in self.__slots__})
        plain._set(wordings=None, edges=np.empty((0, 2), dtype=np.int64))
        plain = plain.subgraph(first)
        pairs = pairs[(pairs >= 0).all(axis=1)]
        plain._set(edges=read_only(sort_edges(pairs, plain.n_claims)))
        return plain

    def _edges_between(self):
        """The edges between claims, whatever their wordings."""
        if self.wordings is None:
            return self.edges
        counts = np.array([len(row) for row in self.wordings], dtype=np.int64)
        return edges_between(self.edges, counts)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as JSON wants them; ``from_dict`` reads them back.

        Returns
        -------
        dict
            With ``features``, ``edges`` (None where they are not known) and those of the
            other fields that are set.
        """
        out = {
            "features": None if self.features is None else self.features.tolist(),
            "edges": self._edges_between().tolist() if self.edges_known else None,
        }
        if self.features is not None and not self.n_claims:
            out["n_features"] = self.features.shape[1]
        for name in _FIELDS[2:]:
            value = getattr(self, name)
            if value is not None:
                out[name] = list(value) if name in _LISTS else value
        if self.wordings is not None:
            out["wordings"] = [list(row) for row in self.wordings]
            out["claims"] = [row[0] for row in self.wordings]
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReasoningGraph:
        """Inverse of `to_dict`.

        Parameters
        ----------
        data : dict
            What `to_dict` gave, or a line of JSON that was read.

        Returns
        -------
        ReasoningGraph
            The graph, checked as by the constructor.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"from_dict needs a dict, got a {type(data).__name__}")
        data = dict(data)
        width = data.pop("n_features", 0)
        if unknown := set(data) - {*_FIELDS}:
            raise ValueError(
                f"unknown keys {sorted(map(str, unknown))}; known are {list(_FIELDS)}"
                + (_NODE_LINK if "nodes" in unknown else "")
            )
        features = data.pop("features", None)
        if features is None and not {"claims", "wordings"} & {
            key for key, value in data.items() if value is not None
        }:
            data["claims"] = ()
        if features is not None and not len(check_list("features", features)):
            features = np.empty((0, width))
        return cls(features, **data)

    def to_networkx(self) -> Any:
        """A ``networkx.DiGraph`` with edges parent -> child.

        Returns
        -------
        networkx.DiGraph
            Nodes are the claim numbers, one for each wording; their attributes are
            ``claim`` and ``features``
            where these are known; the graph's are the other fields that are set, and
            ``edges_known=False`` where the edges are not known.
        """
        import networkx as nx

        fields = {name: getattr(self, name) for name in _OF_GRAPH}
        del fields["wordings"]  # each is a node
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
        """Make a graph from a directed networkx graph with edges parent -> child.

        Parameters
        ----------
        graph : networkx.DiGraph
            Nodes may have any names; their order is the order of the claims. Node
            attributes ``claim`` and ``features`` are read where every node has them.
        **fields
            Constructor arguments; they replace what the graph holds.

        Returns
        -------
        ReasoningGraph
            The graph, checked as by the constructor.
        """
        if not graph.is_directed():
            raise ValueError("the graph is undirected: which claim builds on which?")
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
        """Make a graph from the list of direct parents of each claim.

        Parameters
        ----------
        parents : sequence of sequences of int
            ``parents[v]`` are the positions, counted from 0, of the claims that v builds on
            directly.
        features : array-like of shape (n_claims, n_features), optional
            One row of numbers per claim.
        **fields
            Further constructor arguments.

        Returns
        -------
        ReasoningGraph
            The graph, checked as by the constructor.
        """
        n_claims = _count_claims(features, fields)
        if n_claims not in (None, len(check_list("parents", parents))):
            raise ValueError(f"{len(parents)} lists of parents but {n_claims} claims")
        edges = []
        for v, row in enumerate(parents):
            row = list(check_list(f"parents[{v}]", row, sized=False))
            if wrong := [u for u in row if not isinstance(u, Integral)]:
                raise ValueError(
                    f"parents[{v}] holds {wrong[0]!r}, but parents are the positions of "
                    "claims, whole numbers counted from 0"
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
        """Make a graph from a square 0/1 matrix.

        Parameters
        ----------
        matrix : array-like of shape (n_claims, n_claims)
            A 1 stands for an edge; ``orientation`` says from where to where.
        features : array-like of shape (n_claims, n_features), optional
            One row of numbers per claim.
        orientation : {"child_row", "parent_row"}
            With "child_row", ``matrix[v][u] == 1`` says that v builds on u; with
            "parent_row" it says that u builds on v.
        **fields
            Further constructor arguments.

        Returns
        -------
        ReasoningGraph
            The graph, checked as by the constructor.
        """
        check_choice("orientation", orientation, ("child_row", "parent_row"))
        n_claims = _count_claims(features, fields) or 0
        matrix = np.asarray(matrix)
        if matrix.size == 0:
            matrix = matrix.reshape(0, 0)
        if matrix.shape != (n_claims, n_claims):
            raise ValueError(
                f"the matrix has shape {matrix.shape}, but there are {n_claims} claims"
            )
        if not np.isin(matrix, (0, 1)).all():
            raise ValueError("the matrix holds values other than 0 and 1")
        pairs = np.argwhere(matrix)
        edges = pairs[:, ::-1] if orientation == "child_row" else pairs
        return cls(features, edges, **fields)


def _count_claims(features, fields):
    """The number of claims by the features, or without them by the texts, or None."""
    claims = fields.get("claims")
    if fields.get("wordings") is not None:
        return len(check_list("wordings", fields["wordings"]))
    rows, name = (claims, "claims") if features is None else (features, "features")
    return None if rows is None else len(check_list(name, rows))
