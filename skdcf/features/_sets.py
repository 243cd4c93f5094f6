"""Ready-made sets of features."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

from .._checks import check_choice
from ._agreement import AgreementFeatures
from ._base import GraphUnion
from ._context import ContextFeatures
from ._domains import DomainIndicators, MetadataIndicators
from ._given import FrequencyFeature, SemanticFeatures
from ._graph import GraphFeatures
from ._options import OptionFeatures
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
