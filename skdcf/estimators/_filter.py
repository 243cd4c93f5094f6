"""Base class of filters. Presets are subclasses with different default parameters.

Fitting is implemented in ``_fit``, calibration in ``_calibrate``, and the checks that protect the
guarantee in `skdcf.guards`. To understand how a decision is made, read `ConformalFilter._look`,
`ConformalFilter._claims` and `ConformalFilter._margin`, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from .. import guards
from .._checks import check_alpha, check_choice, check_weights, reduced
from .._parameters import SHARE, HasMethods, Settings, StrOptions, at_least, settings
from ..features.columns import apply_columns, carry_columns
from ..graphs import GraphBatch, answer_text
from ..graphs.labels import Labels
from ..graphs.problems import Groups, Problems
from ..guarantees import Guarantee, NoFalseClaim
from ..guards.judges import name_errors
from ..guards.levels import level_of, warn_of_level
from ..guards.rounding import raised
from ..guards.settings import refuse_changed, refuse_without_theory, settings_of
from ..guards.several import warn_of_several_answers
from ..ops.hard import path_risk, segment_sum
from ..training import SoftTraining
from . import _online
from ._calibrate import calibrate_with, labelled_part
from ._fit import fit
from ._jitter import jittered
from ._parts import CalibrationPart, part_settings, probes_of, refuse_part
from ._validation import (
    TIES,
    View,
    admit,
    check,
    confidence_of,
    explains_arguments,
    flat_labels,
    with_names,
)

if TYPE_CHECKING:
    from ..relaxation import Relaxation

Level: TypeAlias = float | None
#: Parameters that define the guarantee. The number of kept true claims can only be compared
#: between filters with the same guarantee.
PROMISED = ("alpha", "guarantee", "edges", "ties")
PLAIN = NoFalseClaim()  # meaning of guarantee=None
OUTPUTS = {"graphs": lambda graph: graph, "text": answer_text}


@contextmanager
def unchanged_on_error(estimator):
    """Restore all attributes of the estimator if an error occurs inside the ``with`` block."""
    state = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(state)
        raise


@settings
class ConformalFilter(Settings):
    """Filter that keeps claims whose path risk is below a calibrated threshold.

    `CoherentConformalFilter`, `HardCF` and the presets are subclasses with different defaults.
    The parameters are documented in these subclasses.
    """

    scorer: Any = None
    _: KW_ONLY
    features: Any = "auto"
    alpha: float = 0.1
    relaxation: Relaxation | None = None
    training: SoftTraining | None = None
    edges: Literal["given", "none"] | Callable[..., Any] = "given"
    calibration_size: float | int | None = None
    ties: Literal["exclude", "include", "jitter"] = "exclude"
    guarantee: Guarantee | None = None
    online: bool = False
    random_state: int | RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _values = {
        "relaxation": ("skdcf.relaxation", "PathRelaxation", "GridRelaxation"),
        "training": ("skdcf.training", "SoftTraining"),
        "guarantee": ("skdcf.guarantees", "NoFalseClaim", "ExpectedFalse"),
        "scorer": (
            "skdcf.scorers",
            "ConfTrScorer",
            "FrequencyScorer",
        ),
    }
    _parameter_constraints = {
        "features": [None, StrOptions({"auto"}), HasMethods(["fit", "transform"])],
        "relaxation": [None, HasMethods(["plan", "true_claims", "validate"])],
        "training": [None, SoftTraining],
        "edges": [StrOptions({"given", "none"}), callable],
        "ties": [StrOptions(set(TIES))],
        "guarantee": [None, Guarantee],
        "calibration_size": [None, SHARE, at_least(0, Integral)],
        "online": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    __reduce__ = reduced

    @property
    def _transformer(self):
        """The parameter ``features``, after `fit` has resolved "auto"."""
        if isinstance(self.features, str):
            return vars(self).get("_chosen_features")
        return self.features

    def _wanted_scorer(self, batch):
        """Return the unfitted scorer. Presets create the scorer from their own parameters."""
        return self.scorer

    def _resolved_guarantee(self):
        """Return the guarantee in use, after resolving None and ``show="auto"``."""
        if self.guarantee is None:
            return PLAIN
        share = getattr(self, "share_", None)
        if self.guarantee.show == "auto" and share is not None:
            return self.guarantee.with_share(share)
        return self.guarantee

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or would have no effect."""
        check_alpha(self.alpha)
        super().validate()
        refuse_without_theory(self)

    # ---------------------------------------------------------------- fit and calibrate

    @explains_arguments
    def fit(self, X: Problems, y: Labels | None = None, groups: Groups = None) -> Self:
        """Fit the columns and the scorer, then calibrate on held-out problems.

        Parameters
        ----------
        X : {problems}
            The problems. Each row of a 2-D array is a problem with a single claim.
        y : {labels}
            Claim labels (1 true, 0 false, -1 unlabelled). Unlabelled claims count as false in
            calibration and are not used for training. If X is a GraphBatch, y may also be a
            single flat array. If X is an array, y is a 1-D array that contains 0 and 1, booleans,
            words such as "yes" and "no", or any two numbers. If the numbers are not 0 and 1, the
            larger number means true. The pair -1 and 1 is rejected, because -1 could mean either
            false or unknown.
        groups : array-like of shape (n_problems,), or False, optional
            Question that each answer belongs to, as in `~skdcf.graphs.question_groups`. The
            answers to one question are never split between training and calibration. At most one
            answer to each question is used for calibration. If False, each answer belongs to a
            different question.

        Returns
        -------
        self : object
            The fitted filter.

        Raises
        ------
        TypeError
            If any other argument is passed.
        ValueError
            If the problems, labels or parameters are invalid. All input is checked before
            anything is computed.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        LabelWarning
            If no claim is labelled false. `calibrate` lists other reasons.
        """
        with unchanged_on_error(self):
            fit(self, X, y, groups)
            return self

    def calibrate(
        self, X: Problems, y: Labels | None = None, groups: Groups = None
    ) -> Self:
        """Recalibrate the filter on other problems, with the same columns and scorer.

        At most one answer per question is used for calibration. Questions that would not increase
        the rank of the threshold at ``alpha`` are left out. The calibration problems are chosen
        by a fixed hash of their content, and the indices of the unused problems are stored in
        ``unused_indices_``.

        Parameters
        ----------
        X : {problems}
            Problems on which the filter was not trained.
        y : {labels}
            Claim labels, as in `fit`.
        groups : array-like of shape (n_problems,), or False, optional
            Question that each answer belongs to, as in `fit`.

        Returns
        -------
        self : object
            The recalibrated filter.

        Raises
        ------
        ValueError
            If a question was used for training.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        LabelWarning
            If a language model assigned more than 5 % of the labels, or if the proportion of
            problems without labels is too large for alpha.
        """
        self.validate()
        with unchanged_on_error(self):
            calibrate_with(self, labelled_part(self, X, y, groups), fewest=True)
            return self

    def calibration_part(
        self, X: Problems, y: Labels, groups: Groups = None
    ) -> CalibrationPart:
        """Return the calibration data of a subset of problems, for use in `calibrate_parts`.

        Parameters
        ----------
        X : {problems}
            Problems on which the filter was not trained.
        y : {labels}
            Claim labels, as in `fit`.
        groups : array-like of shape (n_problems,), or False, optional
            Question that each answer belongs to, as in `fit`.

        Returns
        -------
        part : CalibrationPart
            The calibration data. The data require about 50 bytes per problem, and include a few
            of the problems. `calibrate_parts` uses the included problems to check that the scorer
            has not changed.
        """
        # Use a copy of the filter, because the provenance is stored on it.
        fitted = copy(self)
        batch = check(self, X)
        part = labelled_part(fitted, batch, y, groups)
        probes = probes_of(batch, self._path_risks_alone)
        return replace(
            part, made_as=part_settings(self), origin=fitted._origin, probes=probes
        )

    def calibrate_parts(self, parts: Iterable[CalibrationPart]) -> Self:
        """Recalibrate the filter on parts that were scored separately, for example in parallel.

        Parameters
        ----------
        parts : iterable of CalibrationPart
            Results of calling `calibration_part` on this filter, or on a copy with the same
            scorer.

        Returns
        -------
        self : object
            The recalibrated filter.

        Raises
        ------
        ValueError
            If there are no parts. A ValueError is also raised if the parts were computed for
            another guarantee, with other settings, or with a scorer that returns different
            confidences.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        """
        check_is_fitted(self, "scorer_")
        self.validate()
        part = CalibrationPart.join(parts)
        refuse_part(part, self)
        with unchanged_on_error(self):
            guards.replace_origin(self, part.origin)
            calibrate_with(self, part, fewest=True)
            return self

    def check_calibrated(self) -> None:
        """Raise NotFittedError if the filter is not fitted, or was fitted without calibration."""
        check_is_fitted(self, "scorer_")
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "the filter was fitted with calibration_size=0. Call calibrate(X, y) with "
                "answers that were not used for training"
            )

    @property
    def provenance_(self) -> dict[str, list[Any]]:
        """Values of each provenance key in the calibration problems."""
        return self._origin["provenance"]

    def _classes(self):
        """Return the labels that mean false and true, which are False and True for graphs."""
        return getattr(self, "classes_", np.array([False, True]))

    def _look(self, X, *, y=None):
        """Check the problems to filter, and return them with their columns."""
        check_is_fitted(self, "scorer_")
        batch, is_table = admit(self, X, reset=False)
        labels = None
        if y is not None:
            labels, _ = flat_labels(y, batch, is_table, self._classes())
        guards.at_use(self, batch, labelled=y is not None)
        if y is not None:
            # The columns of labelled problems are stored, because these problems may be scored
            # repeatedly.
            batch = carry_columns(self._transformer, batch)
        with_columns = self._with_columns(batch)
        return View(
            raw=batch, with_columns=with_columns, is_table=is_table, labels=labels
        )

    def _with_columns(self, batch):
        """Return the problems with the columns and edges that the scorer uses."""
        batch = apply_columns(self.features_, batch)
        return batch.without_edges() if self.edges == "none" else batch

    def _with_columns_given(self, X):
        """Return a copy of the filter without ``features``, and the problems with its columns."""
        batch = self.transform_features(X)
        reader: Any = copy(self)
        reader.features = reader.features_ = None
        reader.n_features_in_ = batch.n_features
        reader.feature_names_in_ = np.array(batch.feature_names, dtype=object)
        reader._calibrated_as = settings_of(reader)
        return reader, batch

    def _confidence(self, view):
        if not self.online:
            return confidence_of(self.scorer_, view.with_columns)
        return _online.confidence_so_far(self, view.raw, view.with_columns)

    def _confidence_alone(self, batch):
        """Recompute the columns of a batch, and return the confidence in each claim."""
        return self._confidence(View(batch, self._with_columns(batch)))

    def _path_risks_alone(self, batch):
        """Recompute the columns of a batch, and return the path risks and groups."""
        return self._path_risks(View(batch, self._with_columns(batch)))

    def _path_risks(self, view):
        view.confidence = self._confidence(view)
        risk = path_risk(self._risk(view.confidence, view.raw), view.with_columns)
        guarantee = self._resolved_guarantee()
        return guarantee.path_risks(risk, with_names(view, guarantee))

    def _risk(self, confidence, batch, steady=False):
        risk = -confidence
        if not (steady or batch.features is None or self.ties == "include"):
            risk = raised(risk, batch.features)
        if self.ties == "jitter":
            # In an online filter, later claims must not affect the jitter.
            jitter = _online.jittered_so_far if self.online else jittered
            risk = jitter(risk, batch, self._seed, steady)
        return risk

    def transform_features(self, X: Problems) -> GraphBatch:
        """Return the problems with the columns and edges that the scorer uses.

        Parameters
        ----------
        {X}

        Returns
        -------
        X_new : GraphBatch
            The problems with the columns of ``features``, without edges if ``edges="none"``.
        """
        return self._look(X).with_columns

    def confidence(self, X: Problems) -> NDArray[Any]:
        """Return the scorer's confidence in each claim, where a higher value means a safer claim.

        Parameters
        ----------
        {X}

        Returns
        -------
        confidences : ndarray of shape (n_claims,)
            Claim confidences, concatenated over the problems.
        """
        return self._confidence(self._look(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns that the scorer uses, in the order of ``coef_``.

        Parameters
        ----------
        input_features : ignored
            Not used, present here for API consistency by convention.

        Returns
        -------
        feature_names_out : ndarray of str of shape (n_columns,)
            Column names, in the order of ``coef_``.
        """
        check_is_fitted(self)
        return np.array(self._columns_out, dtype=object)

    # ------------------------------------------------------------------ filter problems

    def predict(
        self, X: Problems, alpha: Level | Sequence[Level] = None
    ) -> NDArray[Any]:
        """Predict which claims are kept.

        Parameters
        ----------
        {X}
        alpha : float in (0, 1), or sequence of float, optional
            Prediction level or levels. If None, the alpha of the filter is used. Every claim that
            is kept at some alpha is also kept at any larger alpha.

        Returns
        -------
        masks : ndarray of shape (n_problems,) or (n_levels, n_problems)
            An object array that contains one boolean mask per problem. Each mask is True for kept
            claims. If several levels are passed, the array has one row per level. If X is an
            array, the result contains class labels: ``classes_[1]`` for each kept claim and
            ``classes_[0]`` for each dropped claim.

        Warns
        -----
        GuaranteeWarning
            If X contains several answers to the same question. The guarantee applies to one
            answer per question.
        """
        risks, view = self._claims(X)
        warn_of_several_answers(self, view.raw)
        is_sequence = isinstance(alpha, (Sequence, np.ndarray))
        levels: list[Any] = [*alpha] if is_sequence else [alpha]  # type: ignore[misc]
        rows = []
        for each in levels:
            level = level_of(self, each)
            warn_of_level(self.calibration_, level)
            kept = self._margin(risks, view, level) > 0
            classes = self._classes()[kept.astype(int)] if view.is_table else kept
            rows.append(view.shaped(classes))
        return np.stack(rows) if is_sequence else rows[0]

    def predict_alpha(self, X: Problems) -> NDArray[Any]:
        """Return the smallest alpha at which each claim is kept.

        Parameters
        ----------
        {X}

        Returns
        -------
        levels : ndarray of shape (n_problems,)
            An object array that contains, for each problem, an array of the claims' levels. If X
            is an array, a float array of levels is returned. ``predict(X, alpha=a)`` is
            equivalent to ``predict_alpha(X) <= a``. A claim whose level is 1 is never kept.
        """
        claims, view = self._claims(X)
        return view.shaped(self.calibration_.levels(claims, self.ties == "include"))

    def path_risk(self, X: Problems) -> NDArray[Any]:
        """Return the path risk of each claim, the largest risk among the claim and its ancestors.

        Parameters
        ----------
        {X}

        Returns
        -------
        path_risks : ndarray of shape (n_problems,)
            Path risks, in the same format as in `predict_alpha`. If ``edges="none"``, the path
            risk of a claim is equal to the risk of the claim.
        """
        view = self._look(X)
        return view.shaped(self._path_risks(view).path_risk)

    def decision_function(self, X: Problems, alpha: Level = None) -> NDArray[Any]:
        """Return the threshold minus the path risk, which is positive for kept claims.

        Parameters
        ----------
        {X}
        {own_alpha}

        Returns
        -------
        margins : ndarray of shape (n_problems,)
            The differences, in the same format as in `predict_alpha`, or -inf for claims that are
            not kept at any threshold.
        """
        margin, view = self._decision(X, alpha)
        return view.shaped(margin)

    def filter(
        self,
        X: Problems,
        alpha: Level = None,
        *,
        output: Literal["graphs", "text"] = "graphs",
    ) -> list[Any]:
        """Return the problems without the dropped claims.

        Parameters
        ----------
        {X}
        {own_alpha}
        output : {"graphs", "text"}, default="graphs"
            Output format. "text" returns the kept claims of each problem as a string, with one
            claim per line. `skdcf.apps.text.kept_text` restores the layout of the answer.

        Returns
        -------
        problems : list of ReasoningGraph, or list of str
            The filtered problems, with one entry per problem. If none of a problem's claims are
            kept, its entry is empty.

        Raises
        ------
        ValueError
            If ``output="text"`` and the claims do not have texts.
        """
        check_choice("output", output, OUTPUTS)
        margin, view = self._decision(X, alpha)
        warn_of_several_answers(self, view.raw)
        masks = view.raw.split(margin > 0)
        kept = (g.subgraph(mask) for g, mask in zip(view.raw, masks, strict=True))
        return [OUTPUTS[output](graph) for graph in kept]

    def score(
        self,
        X: Problems,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        alpha: Level = None,
    ) -> float:
        """Return the retention, which is the mean number of true claims kept per problem.

        Retentions are comparable only between filters with the same guarantee. A larger
        ``alpha``, ``ties="include"`` and ``edges="none"`` all increase the retention, but weaken
        the guarantee. A search over ``alpha``, ``ties`` or ``edges`` would therefore select the
        weakest guarantee. `skdcf.evaluation.CalibratedSearch` rejects searches over settings that
        weaken the guarantee, but the search estimators of scikit-learn do not.

        Parameters
        ----------
        {X}
        y : {labels}
            Claim labels, as in `fit`. Unlabelled claims and claims marked as not stating a fact
            are not counted.
        sample_weight : array-like of shape (n_problems,), optional
            Problem weights, used to average over problems. All weights must be non-negative, and
            at least one must be positive.
        {own_alpha}

        Returns
        -------
        retention : float
            Mean number of true claims kept per problem.
        """
        margin, view = self._decision(X, alpha, y)
        labels = view.labels
        batch = view.raw
        is_true = labels == 1
        kept = segment_sum(is_true & (margin > 0), batch.offsets)
        return float(np.average(kept, weights=check_weights(sample_weight, len(kept))))

    def _decision(self, X, alpha, y=None):
        """Return the margin (threshold minus path risk) of each claim, and the problems."""
        claims, view, level = self._at_level(X, alpha, y)
        return self._margin(claims, view, level), view

    def _at_level(self, X, alpha, y=None):
        """Return the path risks, the problems, and the level in use."""
        claims, view = self._claims(X, y)
        level = level_of(self, alpha)
        warn_of_level(self.calibration_, level)
        return claims, view, level

    def _margin(self, claims, view, level):
        threshold = self.calibration_.thresholds(claims, level)
        if self.ties == "include":
            above = np.nextafter(threshold, np.inf)
            threshold = np.where(np.isfinite(threshold), above, threshold)
        with np.errstate(invalid="ignore"):
            margin = threshold[view.raw.problem_of] - claims.path_risk
        # Claims with an infinite path risk are never kept.
        margin[np.isposinf(claims.path_risk)] = -np.inf
        return margin

    def _claims(self, X, y=None):
        """Return the path risks and the problems."""
        self.check_calibrated()
        view = self._look(X, y=y)
        return self._path_risks(view), view

    def stream(
        self,
        claims: Iterable[dict[Any, Any]],
        alpha: Level = None,
        *,
        stop: bool = False,
        **about: Any,
    ) -> Iterator[bool]:
        """Decide whether to keep each claim of an answer before the next claim is read.

        Parameters
        ----------
        claims : iterable of dict
            The claims. Each claim is a dict with the keys ``text``, ``parents`` (indices of
            earlier claims) and ``features`` (the values that the filter uses).
        {own_alpha}
        stop : bool
            Whether to stop after the first claim that is not kept. Stopping early is useful if an
            agent executes each step as soon as it is written. If True, each claim must depend on
            the previous claim.
        **about
            Data known before the answer is written, passed as the arguments ``problem``,
            ``context``, ``alternatives``, ``feature_names``, ``id``, ``provenance`` and
            ``metadata`` of `~skdcf.ReasoningGraph`.

        Returns
        -------
        decisions : iterator of bool
            Whether each claim is kept. The decisions are identical to those of `predict` for the
            complete answer.

        Raises
        ------
        ValueError
            If the filter was not fitted with ``online=True``, or if a claim comes before one of
            its parents. If ``stop=True``, a ValueError is also raised if a claim does not depend
            on the previous claim.
        """
        self.check_calibrated()
        return _online.decide_online(self, claims, alpha, stop=stop, **about)

    # -------------------------------------------------------------------------- levels

    def describe(self, alpha: float | None = None) -> str:
        """Describe the guarantee, the source of the labels and the error rate among shown texts.

        Parameters
        ----------
        {own_alpha}

        Returns
        -------
        description : str
            The description. In the guarantee, an answer without kept claims counts as a success,
            so the proportion of shown texts with a false claim may exceed alpha. The second
            sentence of the description states the proportion of shown texts with a false claim.

        Examples
        --------
        >>> from skdcf import HardCF
        >>> from skdcf.datasets import make_reasoning_graphs
        >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
        >>> HardCF(0).fit(graphs, y).describe(0.2)
        'with a probability of at least 0.8, no false claim is kept, for new answers...'
        """
        self.check_calibrated()
        refuse_changed(self)
        level = level_of(self, alpha)
        sentence = name_errors(self.calibration_.describe(level), self._origin)
        if self.calibration_.keeps_nothing(level):
            return sentence
        shown = self.calibration_.describe_shown(level)
        return f"{sentence}. {shown}" if shown else sentence

    @property
    def threshold_(self) -> float:
        """Threshold at ``alpha``, or NaN if the threshold differs between problems."""
        self.check_calibrated()
        refuse_changed(self)
        return self.calibration_.threshold(level_of(self, None))

    def threshold(self, alpha: Level = None) -> float:
        """Return the conformal threshold. Claims with a smaller path risk are kept.

        If ``show`` of the guarantee is less than 1, claims are kept only in answers that pass.

        Parameters
        ----------
        {own_alpha}

        Returns
        -------
        threshold : float
            The threshold. For the default ``guarantee``, the threshold is the floor(alpha (n +
            1))-th smallest nonconformity score among the n calibration problems. If the rank
            floor(alpha (n + 1)) is 0, the threshold is -inf and no claims are kept. If the number
            of calibration problems with a false claim is smaller than the rank, the threshold is
            +inf and all claims are kept.

        Raises
        ------
        ValueError
            If ``guarantee`` computes a separate threshold for each problem.

        Warns
        -----
        CalibrationWarning
            If the rank of the threshold is 0.
        ParameterWarning
            If alpha is greater than 0.5.
        """
        self.check_calibrated()
        refuse_changed(self)
        level = level_of(self, alpha)
        warn_of_level(self.calibration_, level)
        threshold = self.calibration_.threshold(level)
        if np.isnan(threshold):
            raise ValueError(
                "the filter must have a single threshold for all problems, but "
                f"guarantee={self.guarantee!r} computes one threshold per problem. Use "
                "decision_function or predict instead"
            )
        return threshold

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Coefficients of a linear scorer for the original columns."""
        return self._of_scorer("coef_")

    @property
    def loss_curve_(self) -> list[float]:
        """Training objective per iteration."""
        return self._of_scorer("loss_curve_")

    @property
    def n_iter_(self) -> int:
        """Number of training iterations."""
        return len(self.loss_curve_)

    def _of_scorer(self, name):
        """Return a scorer attribute, or raise AttributeError with the name of the filter."""
        check_is_fitted(self, "scorer_")
        value = getattr(self.scorer_, name, None)
        if value is not None:
            return value
        inside = (
            ": see scorer_.estimator_" if hasattr(self.scorer_, "estimator_") else ""
        )
        raise AttributeError(
            f"{type(self).__name__} has no attribute {name}, because its scorer_, a "
            f"{type(self.scorer_).__name__}, does not have this attribute{inside}",
            name=name,
            obj=self,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of BaseEstimator
        tags.target_tags.required = True
        # The estimator type is not "classifier", because the classifier checks use the labels
        # {-1, 1}.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
