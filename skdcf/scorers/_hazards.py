"""Classifiers of "this claim is false, though all its ancestors are true"."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._parameters import HasMethods, Number, Settings
from ._tables import HazardTable, as_table, join

# A tree sees half of the claims. Where it leaves out one fold of three, it sees about as
# many of the others, and the trees of all folds together are the forest.
OF_A_PART: dict[str, Any] = {"trees": 15, "share": 0.75}
MOST_CLAIMS = 15_000  # of one tree; more would only take longer


@dataclass(frozen=True)
class Seen:
    """What hazards see of claims.

    Parameters
    ----------
    X : ndarray of shape (n_claims, 2 n_features + 1)
        Standardised: features of the claim, their means over its problem, and the log of
        the number of claims.
    n_features : int
    words : sparse array of shape (n_claims, n_words), optional
    """

    X: NDArray
    n_features: int
    words: Any = None

    def of(self, rows: NDArray[np.bool_]) -> Seen:
        """The same of some of the claims.

        Parameters
        ----------
        rows : ndarray of bool, shape (n_claims,)

        Returns
        -------
        Seen
        """
        words = None if self.words is None else self.words[rows]
        return Seen(self.X[rows], self.n_features, words)


class Hazard(Settings):
    """A classifier of "this claim is false, though all its ancestors are true".

    Parameters
    ----------
    estimator : classifier
        With ``decision_function``, read as log odds, or ``predict_proba``. It sees
        features in units of their deviation.
    with_problem : bool, default=False
        Whether it also sees the mean features of the problem and its size.
    doubt : float, default=0.0
        Share of the overall chance of an error in that of ``predict_proba``. A forest
        that saw no error nearby says 0, which is too much to say.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdcf.scorers import Hazard, NeymanPearsonScorer
    >>> scorer = NeymanPearsonScorer([Hazard(LogisticRegression(C=0.3))])
    """

    _parameter_constraints = {
        "estimator": [
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_proba"]),
        ],
        "with_problem": ["boolean"],
        "doubt": [Number(Real, 0, 1, closed="left")],
    }

    n_hazards = 1

    def __init__(
        self, estimator: Any, *, with_problem: bool = False, doubt: float = 0.0
    ) -> None:
        self.estimator = estimator
        self.with_problem = with_problem
        self.doubt = doubt

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.doubt and hasattr(self.estimator, "decision_function"):
            raise ValueError(
                f"doubt is {self.doubt!r}, but mends chances, and {self.estimator!r} gives "
                "log odds by its decision_function: leave doubt at 0"
            )

    def learn(self, seen: Seen, false: NDArray[np.bool_]) -> None:
        """Fit the classifier.

        Parameters
        ----------
        seen : Seen
            Claims all of whose ancestors are true.
        false : ndarray of bool, shape (n_claims,)
        """
        self.estimator.fit(self._view(seen), false)

    def log_odds(self, seen: Seen, chance: float) -> NDArray[np.float64]:
        """Log odds of an error, from the fitted classifier.

        Parameters
        ----------
        seen : Seen
        chance : float
            Overall chance of an error.

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        X = self._view(seen)
        if hasattr(self.estimator, "decision_function"):
            return self.estimator.decision_function(X)
        found = self.estimator.predict_proba(X)[:, 1]
        return logit((1 - self.doubt) * found + self.doubt * chance)

    def _view(self, seen):
        return seen.X if self.with_problem else seen.X[:, : seen.n_features]


def compact(hazards: list, n_columns: int) -> list:
    """Learnt hazards, with one table in front for all that are arrays or can become such."""
    tables = [_table_of(hazard) for hazard in hazards]
    rest = [h for h, table in zip(hazards, tables, strict=True) if table is None]
    found = [table for table in tables if table is not None]
    return [join(found, n_columns), *rest] if found else rest


def _table_of(hazard):
    if isinstance(hazard, HazardTable):
        return hazard
    if type(hazard) is Hazard:
        return as_table(hazard.estimator, hazard.doubt)
    return None


def default_hazards(n_claims, random_state, trees=40, share=0.5):
    """The four hazards of `NeymanPearsonScorer`, unfitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
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
    forest = RandomForestClassifier(
        trees,
        min_samples_leaf=8,
        max_features=0.3,
        max_samples=min(int(share * n_claims) + 1, MOST_CLAIMS),
        random_state=random_state,
    )
    return [
        Hazard(LogisticRegression(C=0.1, solver="newton-cholesky")),
        Hazard(LogisticRegression(C=0.03, solver="newton-cholesky"), with_problem=True),
        Hazard(boosted),
        Hazard(forest, with_problem=True, doubt=0.05),
    ]


def design(batch):
    """Table of features, their means over the problem, log of its number of claims."""
    sizes = np.maximum(batch.sizes, 1)
    total = np.add.reduceat(
        np.vstack([batch.features, np.zeros(batch.n_features)]), batch.offsets[:-1]
    )
    problem = np.column_stack([total / sizes[:, None], np.log(sizes)])
    return np.hstack([batch.features, problem[batch.problem_of]])
