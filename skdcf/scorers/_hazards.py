"""Scorer that computes the prices of claims from hazards."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._parameters import UNIT, settings
from ..graphs import GraphBatch
from ..ops.hard import below_true_claims
from ..ops.neyman_pearson import log_price
from ..training.gain import Gain, check_gain, worth_of
from ..training.splitting import Standardizer
from ._scorer import FitTask, Folded, Scorer, need_features, run_of
from ._tree_tables import as_table, design, join

# Each tree is trained on half of the claims. If one of three folds is left out, a share of 0.75
# corresponds to about the same number of claims. The forest contains the trees of all folds.
OF_A_FOLD: dict[str, Any] = {"trees": 15, "share": 0.75}
# Number of false claims that are added to the judged claims below errors.
DOUBTED = 5
# Smallest hazard. The forest returns a probability of 0 if no similar training claim is an error.
# This probability is overconfident.
DOUBT = 0.05
# Maximum number of claims per tree. More claims per tree increase the fit time without improving
# the scores.
MOST_CLAIMS = 15_000


def classifiers(n_claims, n_features, random_state, trees=40, share=0.5):
    """Return four unfitted classifiers, each with the columns that it uses.

    Two of the classifiers use the features of the claim. The other two classifiers also use the
    feature means over the problem and the number of claims.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression

    boosted = HistGradientBoostingClassifier(
        max_iter=50,
        learning_rate=0.15,
        max_depth=2,
        l2_regularization=5.0,
        max_features=0.5,
        max_bins=63,
        early_stopping=False,
        random_state=random_state,
    )
    # A regression forest fitted to targets of 0 and 1 chooses the same splits as a classification
    # forest. The regression forest saves 5 % of the fit time of the default scorer, because it
    # does not search for the classes in each tree.
    forest = RandomForestRegressor(
        trees,
        min_samples_leaf=8,
        max_features=0.3,
        max_samples=min(int(share * n_claims) + 1, MOST_CLAIMS),
        random_state=random_state,
    )
    linear, wide = (
        LogisticRegression(C=c, solver="newton-cholesky") for c in (0.1, 0.03)
    )
    own_columns = slice(n_features)
    all_columns = slice(None)
    return (
        (linear, own_columns),
        (wide, all_columns),
        (boosted, own_columns),
        (forest, all_columns),
    )


def learn(model, columns, rows, evidence):
    """Fit a classifier to the selected claims, and convert it to a table."""
    X = evidence.X[rows][:, columns]
    # The settings are fixed, so scikit-learn's parameter validation is skipped in each fold.
    with config_context(skip_parameter_validation=True):
        return as_table(model.fit(X, evidence.labels[rows] == 0), DOUBT)


@settings
class NeymanPearsonScorer(Scorer):
    """Scorer whose confidence in a claim is minus the log price of keeping it.

    The price of a claim is the risk added by keeping the claim. The price is computed from the
    graph and from the mean log odds of several hazard estimates. A hazard is the probability that
    a claim is false given that all its ancestors are true. The price of a claim does not depend
    on alpha.

    Parameters
    ----------
    weight_after_error : float, default=0.5
        Weight, between 0 and 1, of a true claim that depends on a false claim, relative to other
        true claims. The estimated number of true claims that depend on a false claim is least
        accurate if the hazards of the ancestors have a large sum. With a weight of 1, fewer
        claims are kept at small values of alpha.
    gain : float in [0, 1], {"claims", "answers"} or callable, default=0.5
        Value assigned to the kept claims of an answer. If ``gain`` is a number, the value is the
        number of kept claims raised to this power. The values 1 and "claims" maximise the number
        of kept claims, but leave many answers empty, because the risk is spent on the safest
        answers. Smaller powers leave fewer answers empty. For 0 and "answers", the value is log(1
        + n_kept). A callable must accept an array with the numbers of kept claims, and must be
        increasing and concave.
    random_state : int, RandomState or None, default=0
        Seed of the trees. If None, the filter's random state is used.

    Attributes
    ----------
    table_ : HazardTable or None
        Fitted classifiers that estimate the hazards. A logistic regression and boosted trees use
        the features of the claim. A second logistic regression and a random forest also use the
        features of the problem. The table is None if there are no features, or if all training
        claims have the same label. In a stack, the table contains the classifiers of all folds.
    true_after_error_ : float
        Proportion of true claims among the training claims that depend on a false claim.

    Notes
    -----
    The confidence never increases along the edges, so the path risk of a claim equals its risk.

    References
    ----------
    J. Neyman, E. S. Pearson. On the problem of the most efficient tests of statistical
    hypotheses. Philosophical Transactions of the Royal Society A 231, 1933.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import NeymanPearsonScorer
    >>> X, y = make_reasoning_graphs(600, random_state=0, return_X_y=True)
    >>> cf = HardCF(NeymanPearsonScorer(), random_state=0).fit(X[:300], y[:300])
    >>> frequency = HardCF("frequency-score").fit(X[:300], y[:300])
    >>> cf.score(X[300:], y[300:]) > frequency.score(X[300:], y[300:])
    True
    """

    _parameter_constraints = {
        "weight_after_error": [UNIT],
        "random_state": ["random_state"],
    }
    requires_fit = True

    _: KW_ONLY
    weight_after_error: float = 0.5
    gain: Gain = 0.5
    random_state: int | np.random.RandomState | None = 0

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        super().validate()
        check_gain(self.gain)

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        """Fit the classifiers that estimate the hazards.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Claims with an unknown label are ignored,
            together with their descendants.
        task : FitTask, optional
            Settings for fitting, passed by the filter.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        ValueError
            If the problems have no features.
        """
        task = task or FitTask()
        evidence = self._read(batch, labels)
        jobs = self._jobs(evidence, batch.n_features, self._seed(task))
        # The folds are fitted sequentially, because they may use the same RandomState.
        self._adopt([job() for job in jobs], evidence)
        return self

    def fit_folds(
        self, folded: Folded, labels: NDArray, tasks: list[FitTask]
    ) -> tuple[list[Self], NDArray[np.float64]]:
        """Fit the hazards with each fold left out in turn, and combine the hazards of all folds.

        Parameters
        ----------
        folded : Folded
            The problems and the fold of each problem.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown).
        tasks : list of FitTask
            One task per level.

        Returns
        -------
        scorers : list of NeymanPearsonScorer
            A list that contains the fitted scorer once per level.
        unseen : ndarray of shape (n_tasks, n_claims)
            Out-of-fold confidences.
        """
        batch = folded.batch
        fold_of = folded.fold_of
        evidence = self._read(batch, labels)
        self._count(evidence)
        log_odds = np.empty(batch.n_claims)
        unseen = np.empty(batch.n_claims)
        members = [clone(self) for _ in folded.parts]
        rng = check_random_state(self._seed(tasks[0]))
        of_fold = [fold_of[batch.problem_of] == fold for fold in range(len(members))]
        jobs = [
            member._jobs(
                evidence, batch.n_features, rng.randint(2**31 - 1), ~rows, **OF_A_FOLD
            )
            for member, rows in zip(members, of_fold, strict=True)
        ]
        all_jobs = [job for of_member in jobs for job in of_member]
        tables = iter(run_of(tasks[0], all_jobs, self, unit="classifier"))
        for member, of_member, rows in zip(members, jobs, of_fold, strict=True):
            member._adopt([*islice(tables, len(of_member))], evidence)
            log_odds[rows] = member._log_odds(evidence.X[rows])
        for member, rows, (_, in_fold) in zip(
            members, of_fold, folded.parts, strict=True
        ):
            unseen[rows] = member._price(log_odds[rows], in_fold)
        of_folds = [member.table_ for member in members if member.table_ is not None]
        self._adopt(of_folds, evidence)
        return [self] * len(tasks), np.tile(unseen, (len(tasks), 1))

    def _read(self, batch, labels):
        self.validate()
        need_features(batch)
        table = design(batch)
        judged = labels >= 0
        self._standardizer = Standardizer.fit(table)
        at_risk = judged & below_true_claims(labels, batch)
        after_error = judged & ~below_true_claims(labels != 0, batch)
        return _Evidence(self._standardizer(table), labels, at_risk, after_error)

    def _count(self, evidence, rows=True):
        """Estimate the overall proportion of false claims."""
        labels = evidence.labels
        self._chance = _share(labels[evidence.at_risk & rows] == 0)
        # If few claims below an error were judged, most of the unjudged claims are assumed to be
        # false. If unjudged claims were assumed to be true, fewer claims would be kept at low
        # alpha.
        below = labels[evidence.after_error & rows]
        self.true_after_error_ = np.sum(below == 1) / (len(below) + DOUBTED)

    def _jobs(self, evidence, n_features, seed, rows=True, **forest):
        """Count the claims and return one job per classifier, or none if all labels are equal."""
        self._count(evidence, rows)
        at_risk = evidence.at_risk & rows
        false = evidence.labels[at_risk] == 0
        if not n_features or not false.any() or false.all():
            return []
        each = classifiers(len(false), n_features, seed, **forest)
        return [
            partial(learn, model, columns, at_risk, evidence) for model, columns in each
        ]

    def _adopt(self, tables, evidence):
        self.table_ = join(tables, evidence.X.shape[1]) if tables else None

    def _seed(self, task):
        return task.rng if self.random_state is None else self.random_state

    def hazard(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Compute the log odds that each claim is false given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        log_odds : ndarray of shape (n_claims,)
            The log odds of each claim.
        """
        return self._log_odds(self._standardizer(design(batch)))

    def _log_odds(self, X):
        if self.table_ is None:
            return np.full(len(X), logit(self._chance))
        return self.table_.log_odds(X, self._chance) / self.table_.n_hazards

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return self._price(self.hazard(batch), batch)

    def _price(self, log_odds, batch):
        q = self.weight_after_error * self.true_after_error_
        return -log_price(log_odds, batch, q, worth_of(self.gain))


class _Evidence(NamedTuple):
    """Standardised features and labels of the training claims, used to fit the hazards."""

    X: NDArray
    labels: NDArray
    at_risk: NDArray  # whether all ancestors of the claim are known to be true
    after_error: NDArray  # whether any ancestor of the claim is known to be false


def _share(flags):
    """Return the smoothed proportion of True flags, which is never exactly 0 or 1."""
    return (flags.sum() + 0.5) / (len(flags) + 1)
