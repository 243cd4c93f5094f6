"""Ready-made sets of features, and the columns they hold besides those of texts.

Some columns are brought by the data and taken by name. Others are what the dependency
graph alone says about a claim.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np

from .._checks import check_choice
from ..graphs import GraphBatch
from ..ops.graph_metrics import METRICS, PAPER_METRICS, check_size, compute_metrics
from ._agreement import AgreementFeatures
from ._answers import OptionFeatures
from ._base import GraphTransformer, GraphUnion, list_columns, number_claims
from ._context import ContextFeatures
from ._domains import DomainIndicators, MetadataIndicators
from ._text import TextFeatures

_STRUCTURE = (
    "nx_in_degree",
    "nx_out_degree",
    "n_ancestors",
    "nx_depth_from_sources",
    "nx_is_source",
    "nx_is_sink",
)
_FELM_7 = (
    ("coherent_to_ancestors", "inference_gap_size", "has_missing_dependencies"),
    (),
    ("nx_pagerank", "nx_reachability", "nx_out_degree"),
)
_FELM_20 = (
    (
        "claim_index",
        "has_unnecessary_dependencies",
        "problem_relevance",
        "uses_problem_data",
    ),
    ("domain_science", "domain_reasoning"),
    (
        "nx_in_degree",
        "nx_betweenness",
        "nx_closeness",
        "nx_clustering",
        "nx_is_source",
        "nx_is_sink",
        "nx_depth_from_sources",
    ),
)
_PAPER = {
    "math": (None, None, None),
    "felm-7": _FELM_7,
    "felm-20": tuple(a + b for a, b in zip(_FELM_7, _FELM_20, strict=True)),
}


def reasoning_features(
    *,
    metadata: Sequence[str] | Mapping[str, Sequence[str]] = (),
    n_jobs: int | None = None,
) -> GraphUnion:
    """The recommended features: all that question, claims and edges say by themselves.

    Twenty-nine columns: six of the graph (degrees, ancestors, depth, source, sink)
    and the 23 of `TextFeatures`. No model is called and no column of the data
    is needed; columns that are there (such as ``frequency-score``) stay. Where the
    problems seen in ``fit`` have alternatives, the columns of `AgreementFeatures` join
    them, and from then on every problem must say what alternatives it has; likewise those
    of `ContextFeatures` where they have a context. Those of `OptionFeatures` join them
    where a question has options.

    Parameters
    ----------
    metadata : sequence of str, or mapping
        Keys of the metadata that `MetadataIndicators` makes columns from, such as
        ``["model"]``: which model wrote the answer.
    n_jobs : int, optional
        Processes, see `GraphUnion`.

    Returns
    -------
    GraphUnion
        With the members ``graph``, ``text``, ``agreement``, ``context``, ``options``, and
        ``metadata`` where keys are given.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import reasoning_features
    >>> graph = ReasoningGraph.from_parents(
    ...     [[], [0]], claims=["2 + 3 = 5", "5 * 4 = 20"], problem="(2 + 3) * 4 = ?"
    ... )
    >>> reasoning_features().fit_transform([graph])
    GraphBatch(n_graphs=1, n_claims=2, n_edges=1, n_features=29)
    """
    members = [
        ("graph", GraphFeatures(_STRUCTURE)),
        ("text", TextFeatures()),
        ("agreement", AgreementFeatures(optional=True)),
        ("context", ContextFeatures(optional=True)),
        ("options", OptionFeatures(optional=True)),
    ]
    if metadata:
        members.append(("metadata", MetadataIndicators(metadata)))
    return GraphUnion(members, n_jobs=n_jobs)


def paper_features(
    name: Literal["math", "felm-7", "felm-20"] = "math",
    *,
    metadata: Mapping[Hashable, str | Sequence[str]] | None = None,
) -> GraphUnion:
    """The feature sets of the paper, and no other column.

    Parameters
    ----------
    name : {"math", "felm-7", "felm-20"}
        "math": frequency, eight semantic columns, twelve topics, ten graph metrics.
        "felm-7" is the paper's choice for alpha up to 0.08, "felm-20" above.
    metadata : mapping, optional
        Domain of each problem by its id, see `DomainIndicators`; by default the
        lexicon decides.

    Returns
    -------
    GraphUnion
        Its input must bring ``frequency-score`` and the semantic columns.

    Raises
    ------
    ValueError
        If the name is unknown, or ``metadata`` given for "felm-7", which has no domains.

    Notes
    -----
    Hittesdorf, Salzetta, Cheng, *Differentiable Conformal Training for LLM Reasoning
    Factuality* (arXiv:2604.20098), appendix "Feature Descriptions".

    Examples
    --------
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.features import paper_features
    >>> graphs = make_reasoning_graphs(3, "felm", random_state=0).graphs
    >>> paper_features("felm-7").fit_transform(graphs).feature_names[:3]
    ('frequency-score', 'coherent_to_ancestors', 'inference_gap_size')
    """
    check_choice("name", name, _PAPER)
    semantic, domains, metrics = _PAPER[name]
    members = [
        ("frequency", FrequencyFeature()),
        ("semantic", SemanticFeatures(semantic)),
        ("graph", GraphFeatures(metrics)),
    ]
    if domains != ():
        members.insert(2, ("domains", DomainIndicators(domains, metadata=metadata)))
    elif metadata is not None:
        raise ValueError(f"{name!r} has no domains, so that it has no use for metadata")
    return GraphUnion(members, keep_input=False)


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
