"""What `skdcf.training.auto.fit_auto` makes: scorers in one, by weight."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Selection:
    """How a mixture came about.

    Attributes
    ----------
    alpha : float
        The level that it was made for.
    members : tuple of str
    weights : ndarray of shape (n_members,)
        Positive, of sum 1.
    retention : ndarray of shape (n_members,)
        True claims kept per problem around ``alpha`` by each member alone, on training
        problems that it had not seen; NaN where there were too few problems to tell.
    n_folds : int
        Of that cross-validation; 0 where there was none.
    """

    alpha: float
    members: tuple
    weights: np.ndarray
    retention: np.ndarray
    n_folds: int


class MixtureScorer:
    """Weighted sum of scorers, each in units of its own deviation.

    Parameters
    ----------
    members : dict of str to fitted scorer
    centre, scale : ndarray of shape (n_members,)
        What each member's confidences are standardised by.
    selection : Selection

    Attributes
    ----------
    members : dict of str to fitted scorer
    selection_ : Selection
    """

    needs_training = True

    def __init__(self, members, centre, scale, selection):
        self.members = members
        self.centre, self.scale = centre, scale
        self.selection_ = selection

    def confidence(self, batch):
        """Confidence of each claim.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        each = np.array([s.confidence(batch) for s in self.members.values()])
        each -= self.centre[:, None]
        return (self.selection_.weights / self.scale) @ each
