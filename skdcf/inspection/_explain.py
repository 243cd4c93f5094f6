"""Explain a filter's decisions, and compute feature importances.

Decisions on a single answer are explained in sentences, tables and HTML. For a linear scorer, the
contribution of each feature is also computed. For many answers, features are ranked by their
Shapley values, or by the loss in retention when a feature is permuted. Shapley values are
computed for one filter, or pooled over many trained models as in the paper. Permutation
importance supports any scorer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, isinf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._checks import check_count
from .._docs import documented
from .._html import CLAIMS_LISTED, Table, card, folded, html_table, problem_html
from ..choosing import passing_answers
from ..evaluation import CalibratedSearch, leave_one_out
from ..filters import ConformalFilter
from ..graphs import Problems, ReasoningGraph, answer_text
from ..labels import Labels
from ..ops.ancestors import pass_on
from ..scorers import ClassifierScorer, LinearForm
from ..uses import check, decide

TABLES = 20  # maximum number of contribution tables
FROM_DECISION = ("kept", "confidence", "path_risk", "threshold")
# Numbers of significant digits to try, until the risk and the threshold look different.
DIGITS = (4, 6, 9)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Table):
    """Explanation of the decisions on one answer, printed as sentences or displayed as HTML.

    All arrays contain one entry per claim, in claim order. In the printed sentences, claims are
    numbered from 1.

    Parameters
    ----------
    graph : ReasoningGraph
        The answer, with the features that the scorer uses.
    alpha : float
        The level.
    kept : ndarray of bool of shape (n_claims,)
        Whether each claim is kept.
    confidence : ndarray of shape (n_claims,)
        The scorer's confidence in each individual claim. The risk of a claim is its negated
        confidence.
    path_risk : ndarray of shape (n_claims,)
        For each claim, the largest risk among the claim and its ancestors.
    decided_by : ndarray of int of shape (n_claims,)
        For each claim, the index of the claim with this largest risk, which is either the claim
        itself or one of its ancestors.
    threshold : ndarray of shape (n_claims,)
        Threshold of each claim. A claim is kept if its path risk is below its threshold. All
        claims have the same threshold unless the guarantee defines several thresholds.
    smallest_alpha : ndarray of shape (n_claims,)
        The smallest alpha at which each claim is kept. The value is +inf if the claim is not kept
        at any alpha.
    n_calibration : int
        Number of problems used to calibrate the filter.
    labels : ndarray of int of shape (n_claims,), or None
        Claim labels, if given: 1 true, 0 false, -1 unknown.
    form : LinearForm or None
        The linear form of the confidence, or of the log odds behind a price. None if the scorer is
        not linear.
    columns : tuple of str
        Names of the columns to which the linear form applies.
    values : ndarray of shape (n_claims, n_columns) or None
        Values of these columns.
    passes : bool
        Whether the answer passes. Every answer passes if the guarantee has no ``show``.
    group : object
        The calibration group of the answer, or None if the guarantee has no groups.
    """

    graph: ReasoningGraph
    alpha: float
    kept: np.ndarray
    confidence: np.ndarray
    path_risk: np.ndarray
    decided_by: np.ndarray
    threshold: np.ndarray
    smallest_alpha: np.ndarray
    n_calibration: int
    labels: np.ndarray | None = None
    form: LinearForm | None = None
    columns: tuple[str, ...] = ()
    values: np.ndarray | None = None
    passes: bool = True
    group: Any = None

    @property
    def reasons(self) -> dict[int, str]:
        """Return the reason for each dropped claim as a sentence, keyed by index."""
        return {
            v: f"Claim {v + 1} was dropped{self._why(v)}{self._way_out(v)}."
            for v in np.flatnonzero(~self.kept).tolist()
        }

    @property
    def causes(self) -> dict[int, str]:
        """Return a reason without numbers for each dropped claim, keyed by index."""
        causes = {}
        for v in np.flatnonzero(~self.kept).tolist():
            if not self.passes:
                causes[v] = "every claim of this answer is too uncertain"
            elif np.isneginf(self.threshold[v]):
                causes[v] = "too few answers were judged to keep any claim"
            elif self.decided_by[v] != v:
                causes[v] = "it depends on a claim that is too uncertain"
            else:
                causes[v] = "it is too uncertain"
        return causes

    def _why(self, v):
        cause = int(self.decided_by[v])
        if not self.passes:
            return (
                ": the answer does not pass, because even its safest claim has the "
                f"path risk {self.path_risk.min():.4g}"
            )
        if isinf(self.threshold[v]) and self.threshold[v] < 0:
            return (
                f": {self.n_calibration} calibration problems are too few to keep "
                f"anything at alpha = {self.alpha:g}"
            )
        comparison = compare(self.path_risk[v], self.threshold[v])
        if cause == v:
            return f": its {comparison}"
        return f" because it depends on claim {cause + 1}, whose {comparison}"

    def _way_out(self, v):
        if not self.passes:
            return ""
        if isinf(self.smallest_alpha[v]):
            return ", and it is dropped at every alpha"
        # Round up, so the claim is kept at the value of alpha in the sentence.
        level = ceil(self.smallest_alpha[v] * 1e4) / 1e4
        return f"; it is kept if alpha is at least {level:g}"

    @property
    def text(self) -> str:
        """Return the filtered text, or raise ValueError if the texts are unknown."""
        return answer_text(self.graph.subgraph(self.kept))

    def contributions(self, v: int) -> Contributions:
        """Return the contribution of each column, weight times value, to the claim's score.

        The score is the confidence. If the confidence is minus the log of a price, the score is
        the log odds that the claim is true given that all its ancestors are true, and the price
        follows in the table.

        Parameters
        ----------
        v : int
            Index of the claim, starting at 0.

        Returns
        -------
        contributions : Contributions
            The contributions. The feature values are clipped, as in the linear models of this
            package.

        Raises
        ------
        ValueError
            If the scorer is not linear, or if the claim does not exist.
        """
        if self.form is None:
            raise ValueError(
                "only linear scorers have feature weights, and the scorer of this filter is "
                "not linear. Use a linear scorer, or permutation_importance"
            )
        if not 0 <= v < self.graph.n_claims:
            raise ValueError(
                f"claim {v} does not exist, because the answer only has {self.graph.n_claims} "
                "claims"
            )
        assert self.values is not None
        values = self.form.values(self.values[v])
        row = Contributions(self.columns, values, self.form.weights, self.form.offset)
        confidence = float(self.confidence[v])
        is_price = not np.isclose(row.total, confidence, rtol=1e-6, atol=1e-6)
        return replace(row, log_price=-confidence) if is_price else row

    def _values(self):
        names = ("kept", "confidence", "path_risk", "decided_by", "threshold")
        values = {name: getattr(self, name) for name in (*names, "smallest_alpha")}
        return {"claim": np.arange(self.graph.n_claims)} | values

    _columns = {
        "claim": lambda row: str(row["claim"] + 1),
        "kept": lambda row: "yes" if row["kept"] else "no",
        "confidence": "{confidence:.4g}",
        "path risk": "{path_risk:.4g}",
        "decided by": lambda row: str(row["decided_by"] + 1),
        "threshold": "{threshold:.4g}",
        "kept if alpha >=": lambda row: (
            "never" if isinf(row["smallest_alpha"]) else f"{row['smallest_alpha']:.4g}"
        ),
    }

    @property
    def counted(self) -> str:
        """Return the number of kept claims as a string."""
        return f"{self.kept.sum()} of {len(self.kept)} claims kept"

    def _heading(self):
        return f"{self.counted} at alpha = {self.alpha:g}"

    def __str__(self) -> str:
        return "\n".join([self._heading(), *self.reasons.values()])

    def body_html(self) -> str:
        """Return the answer with dropped claims struck out, and the tables, as HTML.

        Tables of long answers are truncated and state the number of omitted claims.

        Returns
        -------
        html : str
            The HTML fragment.
        """
        html = problem_html(self.graph, self.kept, self.labels, self.reasons)
        left_out = _left_out(self.graph.n_claims - CLAIMS_LISTED)
        numbers = html_table(left_out, self._columns, self.rows()[:CLAIMS_LISTED])
        html += folded("All numbers", numbers)
        causes = sorted({*self.decided_by[~self.kept].tolist()})
        if self.form is None or not causes:
            return html
        tables = ""
        for v in causes[:TABLES]:
            (_, *numbers), *_ = self.contributions(v)._tables()
            tables += html_table(f"Confidence of claim {v + 1}", *numbers)
        if left_out := _left_out(len(causes) - TABLES):
            tables += f"<p>{left_out}</p>"
        return html + folded(
            "Weight times value for each claim that caused a drop", tables
        )

    def _repr_html_(self) -> str:
        return card(self.body_html(), self._heading())


def compare(risk, threshold):
    """Return the end of a sentence that compares a risk with a threshold."""
    if isinf(risk):
        return "risk is infinite, for example because a verdict is missing"
    risk += 0.0  # Adding 0.0 converts -0.0 to 0.0.
    for digits in DIGITS:
        shown_risk = f"{risk:.{digits}g}"
        shown_threshold = f"{threshold:.{digits}g}"
        if shown_risk != shown_threshold:
            return f"risk {shown_risk} is not below the threshold {shown_threshold}"
    return f"risk {risk:.4g} equals the threshold; only claims below it are kept"


def _left_out(n):
    return f"{n} more claims are not shown" if n > 0 else ""


def explain(
    filter: ConformalFilter | CalibratedSearch,
    X: ReasoningGraph | Problems,
    y: Labels | None = None,
    *,
    alpha: float | None = None,
) -> Any:
    """Explain why a filter keeps or drops each claim.

    Each problem is scored only once. The explained decisions are the same as those of `predict`.

    Parameters
    ----------
    filter : fitted filter
        The filter whose decisions are explained, or a fitted
        `skdcf.evaluation.CalibratedSearch`.
    X : ReasoningGraph, or problems as in the filter's `predict`
        One answer, or several answers.
    y : labels of X, optional
        Labels, in the format of the filter's `fit`, or the labels of a single graph. The labels
        are only displayed and do not affect the decisions.
    alpha : float in (0, 1), optional
        Level at which the decisions are made. If None, the filter's alpha is used.

    Returns
    -------
    explanations : Explanation, or list of Explanation
        One explanation for a ReasoningGraph, otherwise one per problem. The attribute
        ``reasons`` contains a sentence for each dropped claim.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import explain
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:200], y[:200])
    >>> explained = explain(cf, graphs[207])
    >>> explained
    1 of 4 claims kept at alpha = 0.1
    Claim 2 was dropped: its risk -2 is not below the threshold -3; it is kept if alpha...
    Claim 3 was dropped: its risk -3 equals the threshold; only claims below it are kept...
    Claim 4 was dropped because it depends on claim 3, whose risk -3 equals the threshold;...
    >>> explained.contributions(3).total
    3.0
    """
    single = isinstance(X, ReasoningGraph)
    problems: Any = [X] if single else X
    y_of_problems: Any = [y] if single and y is not None else y
    decision = decide(filter, problems, alpha)
    batch = decision.batch
    labels = None if y is None else check(filter, problems, y_of_problems)[1]
    guarantee = filter.calibration_.guarantee
    levels = decision.smallest_alpha
    never = levels >= 1 if guarantee.is_probability else np.isinf(levels)
    first = batch.offsets[:-1][batch.problem_of]
    columns: dict[Any, Any] = {name: getattr(decision, name) for name in FROM_DECISION}
    columns["decided_by"] = _deciding_row(decision.path_risk, batch) - first
    columns["smallest_alpha"] = np.where(never, np.inf, levels)
    per_problem: dict[Any, Any] = {
        name: batch.split(values) for name, values in columns.items()
    }
    per_problem["labels"] = (
        [None] * len(batch) if labels is None else batch.split(labels)
    )
    per_problem["group"] = decision.groups or [None] * len(batch)
    per_problem["passes"] = np.ones(len(batch), bool)
    if guarantee.show != 1:
        per_problem["passes"] = passing_answers(filter, problems)
    names: tuple[str, ...] = ()
    if decision.form is not None:
        names, table = filter.scorer_.linear_columns(decision.batch)
        per_problem["values"] = np.split(table, batch.offsets[1:-1])
    level = guarantee.level(alpha, filter.alpha)
    out = [
        Explanation(
            graph,
            **{name: rows[i] for name, rows in per_problem.items()},
            alpha=level,
            form=decision.form,
            columns=names,
            n_calibration=filter.n_calibration_,
        )
        for i, graph in enumerate(batch)
    ]
    return out[0] if single else out


def _deciding_row(path_risk, batch):
    """Return the row index of the claim or ancestor that determines each path risk.

    If several claims have the same risk, the first of these claims is returned. No ancestor of
    the returned claim has an equally large path risk.
    """
    order = np.lexsort((-batch.rank, path_risk))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return order[pass_on(np.maximum, place, batch)]


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Table):
    """Contribution (weight times value) of each feature to the score of a claim.

    Parameters
    ----------
    feature_names : sequence of str
        Feature names.
    values, weights : array-like of shape (n_features,)
        Feature values and weights.
    offset : float, default=0.0
        The intercept of the linear form.
    log_price : float, optional
        The log of the price that follows from the score.

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix on the case studies.

    Examples
    --------
    >>> from skdcf.inspection import Contributions
    >>> Contributions(["frequency", "depth"], [5, 2], [0.02, -0.1], offset=0.3)
    feature    value   weight  contribution
    depth          2  -0.1000       -0.2000
    frequency      5   0.0200       +0.1000
    offset         -        -       +0.3000
    total          -        -       +0.2000
    """

    feature_names: Iterable[str]
    values: ArrayLike
    weights: ArrayLike
    offset: float = 0.0
    log_price: float | None = None

    def __post_init__(self) -> None:
        n = len([*self.feature_names])
        shapes = (self.values, self.weights)
        if any(np.shape(shape) != (n,) for shape in shapes):
            raise ValueError(
                f"names, values and weights must have one entry per feature, got {n} "
                f"feature names, values of shape {np.shape(self.values)} and weights "
                f"of shape {np.shape(self.weights)}"
            )

    @property
    def contribution(self) -> NDArray[np.float64]:
        """Return the product of weight and value for each feature, of shape (n_features,)."""
        return np.asarray(self.values, float) * np.asarray(self.weights, float)

    @property
    def total(self) -> float:
        """Return the score, which is the sum of the feature contributions and the offset."""
        return float(self.contribution.sum() + self.offset)

    def _values(self):
        order = np.argsort(-np.abs(self.contribution), kind="stable")
        columns = {
            "feature": [*self.feature_names],
            "value": np.asarray(self.values, float),
            "weight": np.asarray(self.weights, float),
            "contribution": self.contribution,
        }
        return {name: np.asarray(column)[order] for name, column in columns.items()}

    _columns = {
        "feature": "{feature}",
        "value": "{value:.4g}",
        "weight": "{weight:.4f}",
        "contribution": "{contribution:+.4f}",
    }

    def _tables(self):
        """Return the table of the nonzero contributions, with their sum at the end."""
        ends = [("offset", self.offset)] if self.offset else []
        ends.append(("total", self.total))
        if self.log_price is not None:
            ends.append(("log price", self.log_price))
        rows = [row for row in self.rows() if row["contribution"]] + [
            {"feature": name, "value": np.nan, "weight": np.nan, "contribution": share}
            for name, share in ends
        ]
        return [(self._heading(), self._columns, rows)]


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceReport(Table):
    """Ranking of features by their mean importance over repetitions.

    Parameters
    ----------
    feature_names : tuple of str
        Feature names.
    importances : ndarray of shape (n_repeats, n_features)
        Importances, with one row per repetition. For Shapley values, there is one row of
        absolute values per claim and model.
    what : str
        Description of the importance, which is printed above the ranking.
    values : ndarray of shape (n_repeats, n_features) or None
        The signed Shapley values, or None for other importances.
    """

    feature_names: tuple[Any, ...]
    importances: np.ndarray
    what: str
    values: np.ndarray | None = None

    @property
    def mean(self) -> NDArray[Any]:
        """Return the mean importance of each feature, of shape (n_features,)."""
        return self.importances.mean(axis=0)

    @property
    def deviation(self) -> NDArray[Any]:
        """Return the standard deviation over the repetitions, of shape (n_features,)."""
        return self.importances.std(axis=0)

    @property
    def ranking(self) -> NDArray[Any]:
        """Return the column indices, sorted by decreasing importance."""
        return np.argsort(-self.mean, kind="stable")

    def _values(self):
        order = self.ranking
        return {
            "rank": np.arange(1, len(order) + 1),
            "feature": [self.feature_names[j] for j in order],
            "mean": self.mean[order],
            "deviation": self.deviation[order],
        }

    _columns = {
        "rank": "{rank:d}",
        "feature": "{feature}",
        "mean": "{mean:.3f}",
        "deviation": "{deviation:.3f}",
    }

    def _heading(self):
        return self.what


def shap_values(
    filter: ConformalFilter | Sequence[ConformalFilter],
    X: Problems,
    *,
    background: Problems | None = None,
) -> ImportanceReport:
    """Compute feature importances from the Shapley values of the confidence in each claim.

    The Shapley values are exact and require no sampling. For a linear score, the Shapley value is
    the weight times the difference between the feature value and its mean over the background
    problems. For XGBoost models, XGBoost computes the Shapley values as contributions to the log
    odds. For other scorers, use `permutation_importance`.

    Parameters
    ----------
    filter : fitted filter, or sequence of fitted filters
        One filter, or several filters with the same columns. The values of several filters are
        pooled.
    X : problems, as in the filter's `predict`
        Problems whose claims are explained.
    background : problems, optional
        Problems that define the reference value of each feature. The default is X. For tree
        models, ``background`` is ignored, and the training data are used as the reference.

    Returns
    -------
    report : ImportanceReport
        The importance of a feature is its absolute Shapley value. The attribute ``values``
        contains the signed values.

    Raises
    ------
    ValueError
        If the scorer is neither linear nor a boosted tree model.

    References
    ----------
    S. Lundberg, S.-I. Lee. A Unified Approach to Interpreting Model Predictions. NeurIPS 2017.
    Hittesdorf, Salzetta and Cheng (arXiv:2604.20098), appendix on SHAP, pool the values of 40
    models (eight levels by five splits). They sample coalitions (Kernel SHAP), whereas the
    values of a linear model are exact here.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import shap_values
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> fitted = [
    ...     CoherentConformalFilter(alpha=alpha, random_state=0).fit(graphs[:200], y[:200])
    ...     for alpha in (0.1, 0.2)
    ... ]
    >>> report = shap_values(fitted[0], graphs[200:])
    >>> report.values.shape == (graphs[200:].n_claims, len(fitted[0].coef_))
    True
    >>> pooled = shap_values(fitted, graphs[200:])
    >>> len(pooled.values) == 2 * len(report.values)
    True
    """
    filters = filter if isinstance(filter, Sequence) else [filter]
    values_of_each = []
    for fitted_filter in filters:
        batch = fitted_filter.transform_features(X)
        background_batch = (
            batch
            if background is None
            else fitted_filter.transform_features(background)
        )
        names, values = _shapley(fitted_filter.scorer_, batch, background_batch)
        values_of_each.append(values)
    values = np.concatenate(values_of_each)
    what = f"mean |SHAP| over {len(values)} values per feature"
    return ImportanceReport(names, np.abs(values), what, values)


def _shapley(scorer, batch, background):
    """Return the column names, and their contributions, of shape (n_claims, n_columns)."""
    if isinstance(scorer, ClassifierScorer):
        contributions = scorer.tree_contributions(batch)
        if contributions is not None:
            return _names_of(batch), contributions
    form = scorer.linear_form(batch)
    if form is None:
        raise ValueError(
            f"exact Shapley values require a linear scorer, got {scorer!r}. Use "
            "skdcf.inspection.permutation_importance instead"
        )
    names, values = scorer.linear_columns(batch)
    _, reference = scorer.linear_columns(background)
    mean = form.values(reference).mean(axis=0)
    return names, form.weights * (form.values(values) - mean)


def _names_of(batch):
    """Return the feature names, or x0, x1, ... if the features have no names."""
    return batch.feature_names or tuple(f"x{j}" for j in range(batch.n_features))


@documented
def permutation_importance(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    *,
    alpha: float | None = None,
    n_repeats: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> ImportanceReport:
    """Compute the loss in retention when a feature's values are permuted among the claims.

    For each permutation, the threshold is recomputed from all other problems in X
    (`skdcf.evaluation.leave_one_out`). The guarantee is therefore the same with and without the
    feature, and only retention changes. If the filter has ``features``, the columns that it
    computes are permuted. If a feature of the graph is permuted, a scorer that uses the graph
    itself can still use the same information.

    Parameters
    ----------
    filter : fitted filter
        The filter whose features are permuted.
    X : {problems}
        Problems that were not used to train the scorer.
    {y}
    alpha : float in (0, 1), optional
        Level at which retention is measured. If None, the filter's alpha is used.
    n_repeats : int, default=5
        Number of permutations per feature.
    random_state : int, RandomState or None, default=None
        Seed for the permutations.

    Returns
    -------
    report : ImportanceReport
        The importance of a feature is the decrease in the number of true claims kept per problem.
        An importance is negative if the permutation increased retention.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import permutation_importance
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", ties="jitter", random_state=0)
    >>> cf = cf.fit(graphs[:150], y[:150])
    >>> report = permutation_importance(cf, graphs[150:], y[150:], random_state=0)
    >>> report.feature_names[report.ranking[0]]
    'frequency-score'
    """
    check_count("n_repeats", n_repeats, 1)
    batch, labels = check(filter, X, y)
    level = filter.calibration_.guarantee.level(alpha, filter.alpha)
    if filter.features_ is not None:
        filter, batch = filter._with_columns_given(batch)
    rng = check_random_state(random_state)

    def retention(problems):
        return leave_one_out(filter, problems, labels, [level]).retention[0]

    baseline = retention(batch)
    lost = np.empty((n_repeats, batch.n_features))
    for j in range(batch.n_features):
        for repeat in range(n_repeats):
            features = batch.features.copy()
            features[:, j] = rng.permutation(features[:, j])
            shuffled = batch.replace_features(features, batch.feature_names)
            lost[repeat, j] = baseline - retention(shuffled)
    what = (
        f"true claims per problem lost without the feature, of {baseline:.3f} kept at "
        f"alpha = {level:g}; {n_repeats} shuffles"
    )
    return ImportanceReport(_names_of(batch), lost, what)
