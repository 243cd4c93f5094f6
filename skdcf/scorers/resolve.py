"""Convert the parameter ``scorer`` of a filter to a scorer, and score problems out of fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._checks import Floats, is_integer, warn
from .._jobs import run_jobs
from .._parameters import settings
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch
from ..graphs.ragged import optional_rows
from ._classifier import ClassifierScorer
from ._models import ConfTrScorer
from ._scorer import FeatureScorer, FrequencyScorer, Scorer


@settings
class FunctionScorer(Scorer):
    """Scorer that applies a function to each `GraphBatch`.

    Parameters
    ----------
    function : callable
        The function, which must return an array of shape (n_claims,) in which larger values mean
        safer claims. The values for a problem must not depend on other problems. Ranking or
        scaling the values over the batch invalidates the guarantee, and raises an error if it is
        detected.

    Attributes
    ----------
    function_ : callable
        The function, or a copy if the function is an object with state.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(lambda batch: batch.depth).fit(graphs, y).scorer_
    FunctionScorer(function=<function <lambda> at ...>)
    """

    requires_fit = False

    function: Callable[[GraphBatch], ArrayLike]

    def fit(self, batch: GraphBatch, labels: Any = None, task: Any = None) -> Self:
        """Store a copy of the function without fitting anything.

        Parameters
        ----------
        batch, labels, task : object, optional
            Ignored.

        Returns
        -------
        self : object
            The fitted scorer.

        Warns
        -----
        GuaranteeWarning
            If the function is a method of a scorer that is already fitted.
        """
        owner = getattr(self.function, "__self__", None)
        if isinstance(owner, Scorer) and scorer_requires_fit(owner):
            warn(
                f"the scorer is a method of a fitted {type(owner).__name__}. The guarantee "
                "holds only for problems that were not used to train this scorer. Pass the "
                f"{type(owner).__name__} itself, so the filter trains it on other problems",
                GuaranteeWarning,
            )
        self.function_ = deepcopy(self.function)
        return self

    def confidence(self, batch: GraphBatch) -> Floats:
        return np.asarray(self.function_(batch))


def scorer_requires_fit(scorer):
    """Return whether a scorer needs fitting."""
    if scorer.requires_fit is not None:
        return scorer.requires_fit
    return type(scorer).fit is not Scorer.fit


def as_scorer(scorer: Any, batch: GraphBatch) -> Scorer:
    """Return an unfitted scorer for the problems of ``batch``.

    Parameters
    ----------
    scorer : None, str, int, Scorer, differentiable model, classifier or callable
        The value to convert. The default is the feature "frequency-score" if it exists, and a
        logistic regression otherwise. The name "linear" refers to `ConfTrScorer`. Any other string
        or integer specifies a feature. A differentiable model is trained through soft calibration,
        while a classifier is trained on claims. A callable must accept a GraphBatch. Scorers and
        classifiers that are already fitted are fitted again, because their training data are
        unknown.
    batch : GraphBatch
        The problems.

    Returns
    -------
    unfitted_scorer : Scorer
        The unfitted scorer.

    Raises
    ------
    ValueError
        If the value cannot be converted, or if a parameter is invalid.
    """
    new_scorer = _make(scorer, batch.feature_names or ())
    new_scorer.validate()
    return new_scorer


def _make(scorer, names):
    if scorer is None:
        return FrequencyScorer() if "frequency-score" in names else ClassifierScorer()
    if isinstance(scorer, str) and scorer == "linear":
        if scorer in names:
            raise ValueError(
                "a scorer and a feature cannot both be named 'linear'. Pass "
                "FeatureScorer('linear') to use the feature, or rename the feature"
            )
        return ConfTrScorer()
    if isinstance(scorer, str) or is_integer(scorer):
        return FeatureScorer(scorer)
    if isinstance(scorer, Scorer):
        return clone(scorer)
    # A filter is not a scorer. scikit-learn's get_scorer and make_scorer return objects that
    # evaluate predictions and cannot score claims. A torch module is callable, but cannot score
    # problems.
    unsuitable = ("predict_alpha", "_score_func", "forward")
    if not isinstance(scorer, type) and not any(hasattr(scorer, n) for n in unsuitable):
        if callable(scorer) and hasattr(scorer, "init"):
            return ConfTrScorer(scorer)
        if hasattr(scorer, "fit"):
            return ClassifierScorer(scorer)
        if callable(scorer):
            return FunctionScorer(scorer)
    raise ValueError(
        "scorer must be None, 'linear', a feature's name or column number, a Scorer, a "
        "differentiable model (with init(n_features, rng) and model(params, X)), a classifier "
        "with decision_function or predict_proba, or a function of a GraphBatch, got "
        f"{scorer!r}. The page 'Training and your own scorer' shows how to write a Scorer"
    )


def out_of_fold_confidence(scorer, batch, labels, task):
    """Compute out-of-fold confidences, using a scorer that is fitted on all other folds.

    Parameters
    ----------
    scorer : Scorer
        The scorer. One clone of the scorer is fitted for each of up to three folds.
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    task : FitTask
        Settings for fitting.

    Returns
    -------
    confidences : ndarray of shape (n_claims,), or None
        Out-of-fold confidences, which do not depend on the labels in the same fold, or None if
        all problems belong to the same group.
    """
    groups = np.arange(len(batch)) if task.groups is None else task.groups
    names, code = np.unique(groups, return_inverse=True)
    if len(names) == 1:
        return None
    n_folds = min(3, len(names))
    fold_of = deepcopy(task.rng).permutation(len(names))[code] % n_folds
    jobs = [
        partial(_score_fold, clone(scorer), batch, labels, fold_of == fold, task)
        for fold in range(n_folds)
    ]
    unseen = np.empty(batch.n_claims)
    for fold, confidence in enumerate(run_jobs(jobs, task.n_jobs, task.verbose)):
        unseen[fold_of[batch.problem_of] == fold] = confidence
    return unseen


def _score_fold(scorer, batch, labels, in_fold, task):
    """Fit a scorer on all folds but one, and compute the confidences in the claims of that fold."""
    others = ~in_fold
    task = replace(
        task,
        groups=optional_rows(task.groups, others),
        rng=deepcopy(task.rng),
        n_jobs=None,
        verbose=0,
    )
    # Warnings about folds without usable training data are ignored, because the effect of such
    # folds is visible in the retention.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scorer.fit(batch[others], labels[others[batch.problem_of]], task)
    return scorer.confidence(batch[in_fold])
