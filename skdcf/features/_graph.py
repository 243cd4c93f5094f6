"""What the dependency graph alone says about a claim."""

from itertools import chain, pairwise

import numpy as np

from ._base import GraphTransformer

PAPER_METRICS = (
    "nx_in_degree",
    "nx_out_degree",
    "nx_pagerank",
    "nx_betweenness",
    "nx_closeness",
    "nx_clustering",
    "nx_is_source",
    "nx_is_sink",
    "nx_reachability",
    "nx_depth_from_sources",
)
_BY_NETWORKX = {
    "nx_pagerank": "pagerank",
    "nx_betweenness": "betweenness_centrality",
    "nx_closeness": "closeness_centrality",
    "nx_clustering": "clustering",
}
_BY_COUNTING = {
    "nx_in_degree": lambda batch: _degree(batch, 1),
    "nx_out_degree": lambda batch: _degree(batch, 0),
    "nx_is_source": lambda batch: _degree(batch, 1) == 0,
    "nx_is_sink": lambda batch: _degree(batch, 0) == 0,
    "nx_reachability": lambda batch: _n_descendants(batch),
    "nx_depth_from_sources": lambda batch: batch.depth,
    "n_ancestors": lambda batch: np.diff(batch.closure[0]) - 1,
}


class GraphFeatures(GraphTransformer):
    """Position of each claim in the dependency graph, as networkx defines it.

    ==========================  ======================================================
    column                      value
    ==========================  ======================================================
    ``nx_in_degree``            direct parents
    ``nx_out_degree``           direct children
    ``nx_pagerank``             ``networkx.pagerank``, damping 0.85
    ``nx_betweenness``          ``networkx.betweenness_centrality``, normalised
    ``nx_closeness``            ``networkx.closeness_centrality``, of distances to it
    ``nx_clustering``           ``networkx.clustering``, directed
    ``nx_is_source``            1 if there is no parent
    ``nx_is_sink``              1 if there is no child
    ``nx_reachability``         ``len(networkx.descendants)``: claims that build on it
    ``nx_depth_from_sources``   edges of the longest path from a source
    ``n_ancestors``             ``len(networkx.ancestors)``; not among the default ones
    ==========================  ======================================================

    Parameters
    ----------
    metrics : sequence of str, optional
        Columns to add, in this order; the first ten of the table by default.
    n_jobs : int, optional
        Processes for the four metrics that networkx computes graph by graph, once for
        all problems with the same edges; the others are counted for all at once. New
        processes take seconds to start: worth it from some 10,000 claims on.

    Notes
    -----
    The ten are those of Hittesdorf, Salzetta, Cheng, *Differentiable Conformal Training
    for LLM Reasoning Factuality* (arXiv:2604.20098), appendix "Feature Descriptions".
    It does not say what reachability and depth count. For the first, its case study
    does: claim 8 of 12 has 8 ancestors, 3 descendants and the value 3.00.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import GraphFeatures
    >>> chain = ReasoningGraph.from_parents([[], [0], [1]], claims=["a", "b", "c"])
    >>> metrics = ["nx_reachability", "nx_betweenness"]
    >>> GraphFeatures(metrics).fit_transform([chain]).features
    array([[2. , 0. ],
           [1. , 0.5],
           [0. , 0. ]])
    """

    def __init__(self, metrics=None, *, n_jobs=None):
        self.metrics = metrics
        self.n_jobs = n_jobs

    def _own_names(self):
        return PAPER_METRICS if self.metrics is None else tuple(self.metrics)

    def _check(self, batch):
        known = (*PAPER_METRICS, "n_ancestors")
        unknown = [name for name in self._own_names() if name not in known]
        if unknown:
            raise ValueError(
                f"unknown graph metrics {unknown}; known are {list(known)}"
            )

    def _own_columns(self, batch):
        names = self._own_names()
        slow = [name for name in names if name in _BY_NETWORKX]
        computed = dict(zip(slow, self._networkx(batch, slow).T, strict=True))
        table = np.empty((batch.n_claims, len(names)))
        for column, name in enumerate(names):
            counted = _BY_COUNTING.get(name)
            table[:, column] = counted(batch) if counted else computed[name]
        return table

    def _networkx(self, batch, names):
        from joblib import Parallel, cpu_count, delayed

        if not names:
            return np.empty((batch.n_claims, 0))
        different, which = _structures(batch)
        n_jobs = self.n_jobs or 1
        n_chunks = 4 * (n_jobs if n_jobs > 0 else cpu_count())
        size = max(1, -(-len(different) // n_chunks))
        chunks = [different[i : i + size] for i in range(0, len(different), size)]
        done = Parallel(n_jobs=n_jobs)(delayed(_tables)(c, names) for c in chunks)
        tables = list(chain.from_iterable(done))
        empty = np.empty((0, len(names)))
        return np.concatenate([empty, *[tables[k] for k in which]])


def _structures(batch):
    """The different graphs, as (n_claims, edges), and which of them each problem has.

    Answers are short, so many share their structure, and the metrics with it.
    """
    known, which = {}, []
    bounds, edges = batch.offsets.tolist(), batch.edge_offsets.tolist()
    for i, (a, b) in enumerate(pairwise(bounds)):
        local = batch.edges[edges[i] : edges[i + 1]] - a
        _, k = known.setdefault((b - a, local.tobytes()), (local, len(known)))
        which.append(k)
    return [(n, local) for (n, _), (local, _) in known.items()], which


def _tables(graphs, names):
    """Metrics of each graph, shape (n_claims, names)."""
    import networkx as nx

    tables = []
    for n_claims, edges in graphs:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n_claims))
        graph.add_edges_from(edges.tolist())
        table = np.empty((n_claims, len(names)))
        for column, name in enumerate(names):
            values = getattr(nx, _BY_NETWORKX[name])(graph)
            table[:, column] = [values[v] for v in range(n_claims)]
        tables.append(table)
    return tables


def _degree(batch, end):
    return np.bincount(batch.edges[:, end], minlength=batch.n_claims)


def _n_descendants(batch):
    return np.bincount(batch.closure[1], minlength=batch.n_claims) - 1
