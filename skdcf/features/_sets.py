"""Predefined feature sets, and the features that are not computed from texts.

Some features are columns of the data, selected by name. Other features describe the position of a
claim in the dependency graph, the metadata of the problem, or the topic of the problem. Topics
are recognised with a lexicon.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from .._checks import check_choice
from .._parameters import settings
from ..graphs import GraphBatch, as_batch
from ..ops.graph_metrics import METRICS, PAPER_METRICS, check_size, compute_metrics
from ._answers import AgreementFeatures, OptionFeatures
from ._cleaning import clean, list_names
from ._context import ContextFeatures
from ._text import TextFeatures
from ._transformers import Graphs, GraphTransformer, check_known

# Column names of the data, the domains and the graph metrics. None selects all columns of the
# respective kind.
_PAPER = {
    "math": (
        "claim_index coherent_to_ancestors inference_gap_size has_missing_dependencies "
        "has_unnecessary_dependencies problem_relevance uses_problem_data is_well_formed",
        None,
        None,
    ),
    "felm-7": (
        "coherent_to_ancestors inference_gap_size has_missing_dependencies",
        "",
        "nx_pagerank nx_reachability nx_out_degree",
    ),
    "felm-20": (
        "coherent_to_ancestors inference_gap_size has_missing_dependencies claim_index "
        "has_unnecessary_dependencies problem_relevance uses_problem_data",
        "domain_science domain_reasoning",
        "nx_pagerank nx_reachability nx_out_degree nx_in_degree nx_betweenness nx_closeness "
        "nx_clustering nx_is_source nx_is_sink nx_depth_from_sources",
    ),
}


def reasoning_features() -> GraphTransformer:
    """Return the recommended features, which require only the question, the claims and the edges.

    The transformer adds 29 columns: six graph columns (degrees, ancestors, depth, source, sink) and
    the 23 columns of `TextFeatures`. The 29 columns require neither a model nor existing feature
    columns. Existing columns, such as ``frequency-score``, are kept. If a problem seen during
    ``fit`` has alternatives, the columns of `AgreementFeatures` are added, and every later
    problem must have known alternatives. If a problem seen during ``fit`` has a context, the
    columns of `ContextFeatures` are added, and every later problem must have a known context. If
    a question has options (lines that begin with a letter from A to H), five columns compare each
    claim with the options.

    Returns
    -------
    features : GraphTransformer
        The transformer.

    Notes
    -----
    The answer's last "Choice_A", "the answer is (A)" or similar phrase names the *chosen*
    option. A claim refers to an option if it contains at least half of the option's words. A claim
    rules out the option that it refers to most if it also contains a word such as "not" or
    "incorrect". All five columns are 0 if the question has fewer than two options, or if the answer
    chooses none of them.

    ======================  ==========================================================
    column                  value for claim v
    ======================  ==========================================================
    ``option_is_chosen``    1 if v names the chosen option by its letter
    ``option_words``        proportion of the chosen option's words that are in v
    ``option_rival``        largest proportion of another option's words that are in v
    ``options_ruled_out``   proportion of the options ruled out by v or an earlier claim
    ``option_agrees``       agreement of the last two claims with the chosen option
    ======================  ==========================================================

    ``option_agrees`` is the proportion of the chosen option's words that are in the last two
    claims, minus the largest proportion of another option's words that are in these claims.

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
    return GraphUnion(
        [
            GraphFeatures(
                list_names("""
                    nx_in_degree nx_out_degree n_ancestors nx_depth_from_sources nx_is_source
                    nx_is_sink
                """)
            ),
            TextFeatures(),
            AgreementFeatures(optional=True),
            ContextFeatures(optional=True),
            OptionFeatures(optional=True),
        ]
    )


def paper_features(
    name: Literal["math", "felm-7", "felm-20"] = "math",
) -> GraphTransformer:
    """Return the features of the paper, without any other columns.

    Parameters
    ----------
    name : {"math", "felm-7", "felm-20"}
        With "math", the features are the frequency score, eight semantic columns, twelve topics
        and ten graph metrics. With "felm-7", the features are those that the paper uses for alpha
        up to 0.08. With "felm-20", the features are those that the paper uses for larger alpha.

    Returns
    -------
    features : GraphTransformer
        A transformer for problems that have the column ``frequency-score``, which
        `skdcf.apps.llm.Frequency` computes, and the semantic columns, which
        `skdcf.apps.llm.SemanticJudge` computes. The semantic columns are ``claim_index``,
        ``coherent_to_ancestors``, ``inference_gap_size``, ``has_missing_dependencies``,
        ``has_unnecessary_dependencies``, ``problem_relevance``, ``uses_problem_data`` and
        ``is_well_formed``. A missing ``claim_index`` is computed.

    Raises
    ------
    ValueError
        If the name is unknown.

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
    semantic, domains, metrics = (names and names.split() for names in _PAPER[name])
    given = GivenColumns(("frequency-score", *semantic))  # type: ignore[misc]
    members = [given, DomainIndicators(domains), GraphFeatures(metrics)]
    used = [member for member in members if member.own_names()]
    return GraphUnion(used, keep_input=False)


@settings
class GraphUnion(GraphTransformer):
    """Add the columns of several transformers, each of which reads the original input.

    Parameters
    ----------
    transformers : list of GraphTransformer
        The transformers.
    keep_input : bool, default=True
        Whether the input columns are kept.

    Raises
    ------
    ValueError
        If an entry is not a transformer of this package, or if two transformers add a column with
        the same name.

    Examples
    --------
    >>> from skdcf.datasets import make_word_problems
    >>> from skdcf.features import GraphFeatures, GraphUnion, TextFeatures
    >>> graphs = make_word_problems(3, random_state=0).graphs
    >>> GraphUnion([GraphFeatures(), TextFeatures()]).fit_transform(graphs).n_features
    33
    """

    _parameter_constraints = {"transformers": [list], "keep_input": ["boolean"]}

    transformers: list[GraphTransformer]
    keep_input: bool = True

    @property
    def requires_fit(self) -> bool:  # type: ignore[override]
        """Return whether a transformer needs fitting."""
        ours = (t for t in self.transformers if isinstance(t, GraphTransformer))
        return any(get_tags(each).requires_fit for each in ours)

    def fit(self, X: Graphs, y: Any = None) -> Self:
        batch = as_batch(X)
        self.validate()
        for each in self.transformers:
            if not isinstance(each, GraphTransformer):
                raise ValueError(
                    "transformers must contain transformers from skdcf.features, got "
                    f"{each!r}. Add other transformers after the union, for example "
                    "make_pipeline(GraphUnion(...), PCA(3))"
                )
        self.fitted_ = [clone(each).fit(batch, y) for each in self.transformers]
        return super().fit(batch)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        if not self.keep_input:
            input_features = ()
        return super().get_feature_names_out(input_features)

    def own_names(self) -> list[str]:
        return [name for each in self.fitted_ for name in each.own_names()]

    def _check(self, batch):
        for each in self.fitted_:
            each._check(batch)

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        # In a small block, a text that one transformer has read is still cached when the next one
        # needs it.
        n = 500
        if len(batch) > n:
            blocks = [batch[i : i + n] for i in range(0, len(batch), n)]
            return np.concatenate([self.own_columns(block) for block in blocks])
        used = [each for each in self.fitted_ if each.own_names()]
        return np.hstack([each.own_columns(batch) for each in used])


@settings
class GivenColumns(GraphTransformer):
    """Existing columns, selected by name. ``claim_index`` is computed if it is missing."""

    reads_edges = False
    _parameter_constraints = {"columns": ["array-like"]}

    columns: Sequence[str]

    def own_names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def _check(self, batch):
        columns_there = batch.column_names
        missing = {*self.columns} - {*columns_there, "claim_index"}
        if missing:
            raise ValueError(
                f"the problems must have the columns {', '.join(map(repr, sorted(missing)))}, "
                f"got {columns_there or 'no feature columns'}"
            )

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        columns_given = () if batch.features is None else batch.features.T
        column_of: dict[str, Any] = {"claim_index": batch.position}
        column_of |= zip(batch.column_names, columns_given, strict=True)
        return np.column_stack([column_of[name] for name in self.columns])


@settings
class GraphFeatures(GraphTransformer):
    """Metrics of each claim in the dependency graph, as defined by networkx.

    ==========================  ======================================================
    column                      value
    ==========================  ======================================================
    ``nx_in_degree``            number of direct parents
    ``nx_out_degree``           number of direct children
    ``nx_pagerank``             ``networkx.pagerank``, damping 0.85
    ``nx_betweenness``          ``networkx.betweenness_centrality``, normalised
    ``nx_closeness``            ``networkx.closeness_centrality``, of incoming distances
    ``nx_clustering``           ``networkx.clustering``, directed
    ``nx_is_source``            1 if there is no parent
    ``nx_is_sink``              1 if there is no child
    ``nx_reachability``         ``len(networkx.descendants)``: claims that depend on it
    ``nx_depth_from_sources``   number of edges of the longest path from a source
    ``n_ancestors``             ``len(networkx.ancestors)``; not included by default
    ==========================  ======================================================

    Parameters
    ----------
    metrics : sequence of str, optional
        Columns to add, in the given order. The default is the first ten columns of the table.

    Raises
    ------
    ValueError
        If a metric is unknown (in `fit`), or if a problem requires more than 50,000,000 steps (in
        `transform`). Betweenness and closeness require one step for each pair of an edge and an
        ancestor of its parent claim. Clustering requires one step for each pair of an edge and a
        parent of its parent claim. A problem with 600 claims that each depend on all earlier
        claims is below the limit. The limit does not apply to betweenness and closeness if no
        claim has two direct parents, as in a chain or a tree.

    Notes
    -----
    The first ten metrics follow Hittesdorf, Salzetta and Cheng, *Differentiable Conformal
    Training for LLM Reasoning Factuality* (arXiv:2604.20098), appendix "Feature Descriptions".
    The appendix does not define reachability or depth. The definition of reachability is inferred
    from the case study, which lists 8 ancestors, 3 descendants and the value 3.00 for claim 8
    of 12.

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

    _parameter_constraints = {"metrics": ["array-like", None]}

    metrics: Sequence[str] | None = None

    def own_names(self) -> tuple[str, ...]:
        return PAPER_METRICS if self.metrics is None else tuple(self.metrics)

    def _check(self, batch):
        if unknown := [name for name in self.own_names() if name not in METRICS]:
            raise ValueError(
                f"metrics must only contain names from {list(METRICS)}, got {unknown}"
            )
        check_size(batch, self.own_names())

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        return compute_metrics(batch, self.own_names())


# One regular expression per domain, applied to the cleaned question. The patterns avoid false
# matches and therefore miss some questions. Only the pattern for word_problems matches everyday
# nouns and may find too many questions.
_LEXICON = {
    "linear_equations": r"linear|system of equations|solve for [a-z]\b|\b\d?[a-z] [-+] "
    r"\d+ = |\bslope",
    "quadratic_equations": r"quadratic|discriminant|vieta|\b[a-z]\^\{?2\b|parabola",
    "polynomial_algebra": r"polynomial|\bfactor|\bexpand|coefficient|degree of|"
    r"\b[a-z]\^\{?[3-9]\b|remainder when",
    "rational_expressions": r"rational|\\[dt]?frac\{[^{}]*[a-z]|partial fraction|"
    r"denominator|asymptote",
    "exponents_logarithms": r"\blog|\bln\b|exponent|\bpower of|\^\{?[a-z]\b|\d\^\{?\d",
    "inequalities": r"inequalit|at least|at most|[<>≤≥]|\\[lg]eq?\b|\\[lg]t\b|"
    r"maximum|minimum|greatest|smallest|largest|least",
    "sequences_series": r"sequence|series|\bterms?\b|progression|consecutive|\\sum|"
    r"arithmetic mean|fibonacci|recursi",
    "functions": r"function|\b[fgh]\(|domain of|range of|inverse|composition",
    "word_problems": r"how many|how much|how long|how far|how old|\bcosts?\b|\bprice|"
    r"\bspend|\bsells?\b|\bsold\b|\bbuys?\b|\bbought\b|hours?\b|miles?\b|dollars?\b|"
    r"\beach\b|percent",
    "coordinate_geometry": r"coordinate|\bslope|\bmidpoint|\bpoints? \(|\\?overline|"
    r"x-axis|y-axis|intercept|distance between|plane\b",
    "abstract_algebra": r"\bgroup of order|\bring\b|\bfield\b|modul|\bmod\b|congruen|"
    r"operation|\\star|\boplus|divisib|multiplicative inverse",
    "complex_numbers": r"complex|imaginary|\b\d*i\b(?! (?:have|am|want|wish|will))|"
    r"real part|conjugate|\\omega",
    "domain_math": r"calculat|equation|solve|\bsum\b|how many|how much|\\frac|integer",
    "domain_reasoning": r"^(?>.*?\bif\b).*\bthen\b|premise|conclu|logic|deduce|true or false|"
    r"reason|step by step|what can be inferred",
    "domain_science": r"physic|chemi|biolog|\bcells?\b|energy|molecul|atom|species|"
    r"scien|gravity|temperature|electr|planet|disease|protein",
    "domain_wk": r"\bwho\b|\bwhere\b|\bwhen\b|\bwhich (?:country|city|year|person)|"
    r"histor|president|author|born|capital of|famous|world",
}


@settings
class DomainIndicators(GraphTransformer):
    """Indicators of a problem's topic, which are equal for all claims of the problem.

    Parameters
    ----------
    domains : sequence of str, optional
        Columns to add. The default is the twelve mathematical topics, ``linear_equations``,
        ``quadratic_equations``, ``polynomial_algebra``, ``rational_expressions``,
        ``exponents_logarithms``, ``inequalities``, ``sequences_series``, ``functions``,
        ``word_problems``, ``coordinate_geometry``, ``abstract_algebra`` and ``complex_numbers``.
        The lexicon also contains FELM's ``domain_math``, ``domain_reasoning``, ``domain_science``
        and ``domain_wk``.

    Attributes
    ----------
    topics : tuple of str
        The twelve mathematical domains.

    Raises
    ------
    ValueError
        If a domain is unknown, or if a problem has no question.

    Notes
    -----
    If the data have columns with all these names, those columns are used and any domain name is
    valid. Otherwise, the regular expressions of the lexicon are matched against the clean
    question.

    The topics follow Hittesdorf, Salzetta and Cheng (arXiv:2604.20098), appendix "Feature
    Descriptions". The appendix does not define how a topic is recognised.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import DomainIndicators
    >>> question = "Solve x^2 = 4."
    >>> graph = ReasoningGraph(None, [], claims=["x = 2"], problem=question, id=7)
    >>> topics = ["quadratic_equations", "complex_numbers"]
    >>> DomainIndicators(topics).fit_transform([graph]).features
    array([[1., 0.]])
    """

    reads_edges = False
    topics = tuple(_LEXICON)[:12]

    _parameter_constraints = {"domains": ["array-like", None]}

    domains: Sequence[str] | None = None

    def own_names(self) -> tuple[str, ...]:
        return self.topics if self.domains is None else tuple(self.domains)

    def _check(self, batch):
        if set(self.own_names()) <= set(batch.column_names):
            return
        if unknown := [name for name in self.own_names() if name not in _LEXICON]:
            raise ValueError(
                f"each domain must be one of {list(_LEXICON)}, got "
                f"{', '.join(map(repr, unknown))}"
            )
        check_known(batch, "problems")

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        names = self.own_names()
        if set(names) <= set(batch.column_names):
            return GivenColumns(names).own_columns(batch)
        # maximum number of characters to search in a question
        texts = [clean(graph.problem)[:20_000] for graph in batch]
        flags = [[bool(re.search(_LEXICON[n], text)) for n in names] for text in texts]
        return np.array(flags, dtype=float).reshape(-1, len(names))[batch.problem_of]
