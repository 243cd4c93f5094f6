"""One problem: claims, what they build on, and what is known about each."""

import numpy as np

from ._checks import check_edges, check_features, check_names, check_texts
from ._ragged import read_only
from ._structure import closure, depths, levels

_FIELDS = ("features", "edges", "claims", "problem", "feature_names", "id")


class ReasoningGraph:
    """The claims of one answer with their dependency graph.

    Parameters
    ----------
    features : array-like of shape (n_claims, n_features) or None
        One row of finite numbers per claim; None while only text is known.
    edges : iterable of (parent, child)
        ``child`` builds on ``parent``; positions among the claims, counted from 0.
        Claims may come in any order; duplicate edges are merged.
    claims : sequence of str, optional
        Text of each claim.
    problem : str, optional
        The question that the answer belongs to.
    feature_names : sequence of str, optional
        Name of each feature column.
    id : str or int, optional
        A name for messages and files.

    Attributes
    ----------
    n_claims : int
        Number of claims; 0 is allowed (an answer of which nothing was kept).

    Raises
    ------
    ValueError
        On a cycle (naming one), a self-loop, an edge out of range, a NaN or infinite
        feature, or claims, features and names whose numbers differ.

    Notes
    -----
    Instances are immutable. Edges are kept sorted by (child, parent).

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> graph = ReasoningGraph([[0.9], [0.8], [0.1]], [(0, 1), (1, 2)])
    >>> graph
    ReasoningGraph(n_claims=3, n_edges=2, n_features=1)
    >>> graph.ancestors(2)
    array([0, 1])
    """

    __slots__ = (*_FIELDS, "n_claims")

    def __init__(
        self, features, edges, *, claims=None, problem=None, feature_names=None, id=None
    ):
        where = f'problem "{id}": ' if id is not None else ""
        features = check_features(features, where)
        claims = check_texts(claims, problem, where)
        if features is None and claims is None:
            raise ValueError(f"{where}features and claims are both None: give one")
        n_claims = len(claims) if features is None else len(features)
        if claims is not None and len(claims) != n_claims:
            raise ValueError(
                f"{where}{len(claims)} claim texts but {n_claims} rows of features"
            )
        if feature_names is not None:
            feature_names = tuple(map(str, feature_names))
        check_names(features, feature_names, where)
        edges = check_edges(edges, n_claims, where)
        self._set(features, edges, claims, problem, feature_names, id, n_claims)

    def _set(self, features, edges, claims, problem, feature_names, id, n_claims):
        values = (features, edges, claims, problem, feature_names, id, n_claims)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(cls, *values):
        """Build from the slots' values, known to be right."""
        graph = object.__new__(cls)
        graph._set(*values)
        return graph

    def __setattr__(self, name, *value):
        raise AttributeError(
            f"ReasoningGraph is immutable: use .replace({name}=...) for a changed copy"
        )

    __delattr__ = __setattr__

    def __reduce__(self):
        return type(self)._restored, tuple(getattr(self, n) for n in self.__slots__)

    @classmethod
    def _restored(cls, features, edges, *rest):
        features = features if features is None else read_only(features)
        return cls._trusted(features, read_only(edges), *rest)

    def __repr__(self):
        parts = [f"n_claims={self.n_claims}", f"n_edges={len(self.edges)}"]
        if self.features is not None:
            parts.append(f"n_features={self.features.shape[1]}")
        if self.id is not None:
            parts.append(f"id={self.id!r}")
        return f"ReasoningGraph({', '.join(parts)})"

    def __eq__(self, other):
        if not isinstance(other, ReasoningGraph):
            return NotImplemented
        same_features = (
            self.features is other.features
            if self.features is None or other.features is None
            else np.array_equal(self.features, other.features)
        )
        return (
            same_features
            and np.array_equal(self.edges, other.edges)
            and (self.claims or ()) == (other.claims or ())  # no claims, no texts
            and all(getattr(self, n) == getattr(other, n) for n in _FIELDS[3:])
        )

    def __hash__(self):
        texts = self.claims or None
        return hash((self.n_claims, self.edges.tobytes(), texts, self.problem))

    def replace(self, **changes):
        """A copy with some constructor arguments changed.

        Parameters
        ----------
        **changes
            Any of the constructor's arguments.

        Returns
        -------
        ReasoningGraph
        """
        values = {name: getattr(self, name) for name in _FIELDS} | changes
        return ReasoningGraph(values.pop("features"), values.pop("edges"), **values)

    def ancestors(self, v):
        """All claims that claim ``v`` builds on, directly or not.

        Parameters
        ----------
        v : int
            Position of the claim.

        Returns
        -------
        ndarray of int, sorted; v itself is not in it.
        """
        if not 0 <= v < self.n_claims:
            raise ValueError(f"claim {v} but only {self.n_claims} claims")
        plan = levels(self.edges, depths(self.edges, self.n_claims))
        indptr, indices = closure(plan, self.n_claims)
        row = indices[indptr[v] : indptr[v + 1]]
        return row[row != v]

    def subgraph(self, mask):
        """The graph of the claims where ``mask`` is true, in the same order.

        Parameters
        ----------
        mask : array-like of bool, shape (n_claims,)

        Returns
        -------
        ReasoningGraph
        """
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.n_claims,):
            got = f"{mask.dtype} of shape {mask.shape}"
            raise ValueError(f"mask must be {self.n_claims} booleans, got {got}")
        number = np.cumsum(mask) - 1
        kept = self.edges[mask[self.edges].all(axis=1)]
        claims = self.claims and tuple(
            c for c, keep in zip(self.claims, mask, strict=True) if keep
        )
        return self._trusted(
            None if self.features is None else read_only(self.features[mask]),
            read_only(number[kept]),
            claims,
            self.problem,
            self.feature_names,
            self.id,
            int(mask.sum()),
        )

    def to_dict(self):
        """Plain Python values, as JSON wants them; ``from_dict`` reads them back.

        Returns
        -------
        dict
            With ``features``, ``edges`` and those of the other fields that are set.
        """
        out = {
            "features": None if self.features is None else self.features.tolist(),
            "edges": self.edges.tolist(),
        }
        if self.features is not None and not self.n_claims:
            out["n_features"] = self.features.shape[1]
        for name in ("claims", "feature_names"):
            if getattr(self, name) is not None:
                out[name] = list(getattr(self, name))
        for name in ("problem", "id"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        return out

    @classmethod
    def from_dict(cls, data):
        """Inverse of `to_dict`.

        Parameters
        ----------
        data : dict

        Returns
        -------
        ReasoningGraph
        """
        data = dict(data)
        width = data.pop("n_features", 0)
        if unknown := set(data) - set(_FIELDS):
            raise ValueError(
                f"unknown keys {sorted(unknown)}; known are {list(_FIELDS)}"
            )
        features, edges = data.pop("features", None), data.pop("edges", ())
        if features is None and data.get("claims") is None:
            data["claims"] = ()
        if features is not None and not len(features):
            features = np.empty((0, width))
        return cls(features, edges, **data)

    def to_networkx(self):
        """A ``networkx.DiGraph`` with edges parent -> child.

        Returns
        -------
        networkx.DiGraph
            Nodes are the claim numbers; their attributes are ``claim`` and ``features``
            where these are known; the graph's are ``problem``, ``feature_names``, ``id``.
        """
        import networkx as nx

        fields = {name: getattr(self, name) for name in _FIELDS[3:]}
        graph = nx.DiGraph(**{k: v for k, v in fields.items() if v is not None})
        graph.add_nodes_from(range(self.n_claims))
        graph.add_edges_from(self.edges.tolist())
        for v in range(self.n_claims):
            if self.claims is not None:
                graph.nodes[v]["claim"] = self.claims[v]
            if self.features is not None:
                graph.nodes[v]["features"] = self.features[v].tolist()
        return graph

    @classmethod
    def from_networkx(cls, graph, **fields):
        """From a directed networkx graph with edges parent -> child.

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
        """
        if not graph.is_directed():
            raise ValueError("the graph is undirected: which claim builds on which?")
        position = {node: i for i, node in enumerate(graph.nodes)}
        values = {k: graph.graph.get(k) for k in ("problem", "feature_names", "id")}
        for field, name in (("claims", "claim"), ("features", "features")):
            found = [data[name] for _, data in graph.nodes(data=True) if name in data]
            if len(found) == len(position) and (found or name == "claim"):
                values[field] = found
        values |= fields
        edges = [(position[u], position[v]) for u, v in graph.edges()]
        return cls(values.pop("features", None), edges, **values)

    @classmethod
    def from_parents(cls, parents, features=None, **fields):
        """From the list of direct parents of each claim.

        Parameters
        ----------
        parents : sequence of sequences of int
            ``parents[v]`` are the claims that v builds on directly.
        features : array-like of shape (n_claims, n_features), optional
        **fields
            Further constructor arguments.

        Returns
        -------
        ReasoningGraph
        """
        given = features if features is not None else fields.get("claims")
        if given is not None and len(given) != len(parents):
            raise ValueError(f"{len(parents)} lists of parents but {len(given)} claims")
        edges = [(u, v) for v, row in enumerate(parents) for u in row]
        return cls(features, edges, **fields)

    @classmethod
    def from_adjacency(
        cls, matrix, features=None, *, orientation="child_row", **fields
    ):
        """From a square 0/1 matrix.

        Parameters
        ----------
        matrix : array-like of shape (n_claims, n_claims)
        features : array-like of shape (n_claims, n_features), optional
        orientation : {"child_row", "parent_row"}
            With "child_row", ``matrix[v][u] == 1`` says that v builds on u; with
            "parent_row" it says that u builds on v.
        **fields
            Further constructor arguments.

        Returns
        -------
        ReasoningGraph
        """
        if orientation not in ("child_row", "parent_row"):
            raise ValueError(
                f'orientation is {orientation!r}: "child_row" or "parent_row" expected'
            )
        matrix = np.asarray(matrix)
        if matrix.size == 0:
            matrix = matrix.reshape(0, 0)
        given = fields.get("claims", ()) if features is None else features
        if matrix.ndim != 2 or matrix.shape != (len(given),) * 2:
            raise ValueError(
                f"the matrix has shape {matrix.shape}, but there are {len(given)} claims"
            )
        if not np.isin(matrix, (0, 1)).all():
            raise ValueError("the matrix holds values other than 0 and 1")
        rows, columns = np.nonzero(matrix)
        pair = (columns, rows) if orientation == "child_row" else (rows, columns)
        return cls(features, np.stack(pair, axis=1), **fields)
