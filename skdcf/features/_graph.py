"""What the dependency graph alone says about a claim."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..graphs import GraphBatch
from ..ops.graph_metrics import METRICS, PAPER_METRICS, check_size, compute_metrics
from ._base import GraphTransformer


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

    Raises
    ------
    ValueError
        In `fit`, if a metric is unknown. In `transform`, if a problem is too large:
        betweenness and closeness take a step for each edge and each ancestor of its
        parent, clustering one for each edge and each parent of its parent, and a
        problem may take 50,000,000. 600 claims of which each builds on all before it
        stay below. Where no claim has two direct parents, as in a chain or a tree,
        betweenness and closeness have no bound.

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

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "metrics": ["array-like", None]
    }

    def __init__(self, metrics: Sequence[str] | None = None):
        self.metrics = metrics

    def _own_names(self) -> tuple[str, ...]:
        return PAPER_METRICS if self.metrics is None else tuple(self.metrics)

    def _check(self, batch: GraphBatch) -> None:
        unknown = [name for name in self._own_names() if name not in METRICS]
        if unknown:
            raise ValueError(
                f"unknown graph metrics {unknown}; known are {list(METRICS)}"
            )
        check_size(batch, self._own_names())

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        return compute_metrics(batch, self._own_names())
