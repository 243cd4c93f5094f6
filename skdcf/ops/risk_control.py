"""Losses that grow with the threshold, and the levels that control their mean.

A loss of a problem is a staircase: it is 0 at the lowest threshold and takes a step up
where the threshold passes the path risk of certain claims. With the steps of n
calibration problems, a claim with path risk R is kept at the level

    (w own + sum of the heights of all steps at or below R) / (w + sum of weights),

where ``own`` bounds what the new problem could lose if the claim is kept, and w is its
weight. With one step of height 1 per problem, no weights, and own = 1 that is split
conformal prediction; with others conformal risk control (Angelopoulos, Bates, Fisch,
Lei, Schuster, ICLR 2024), and weighted conformal prediction (Tibshirani, Barber, Candès,
Ramdas, NeurIPS 2019).
"""

from dataclasses import dataclass

import numpy as np

from ..graphs.ragged import ranges, segment_ids
from .hard import segment_min


@dataclass(frozen=True)
class Steps:
    """The thresholds at which the losses of n problems grow, and by how much they grow.

    Attributes
    ----------
    position : ndarray of shape (n_steps,)
        The threshold beyond which the step is taken; +inf for a step never taken.
    problem : ndarray of int, shape (n_steps,), not decreasing
    height : ndarray of shape (n_steps,)
    n : int
        Number of problems; some may have no step.
    """

    position: np.ndarray
    problem: np.ndarray
    height: np.ndarray
    n: int

    @classmethod
    def of_scores(cls, scores):
        """Make one step of height 1 at the score of each problem."""
        return cls(scores, np.arange(len(scores)), np.ones(len(scores)), len(scores))

    def __getitem__(self, rows):
        """Take the steps of some problems, which are numbered anew."""
        rows = np.arange(self.n)[rows]
        bounds = self.offsets
        n_steps = np.diff(bounds)[rows]
        chosen = ranges(bounds[:-1][rows], n_steps)
        problem = np.repeat(np.arange(len(rows)), n_steps)
        return type(self)(
            self.position[chosen], problem, self.height[chosen], len(rows)
        )

    @property
    def offsets(self):
        """Steps of problem i are ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.problem, np.arange(self.n + 1))

    @classmethod
    def join(cls, several):
        """Join the steps of several sets of problems, one set after the other."""
        starts = np.cumsum([0, *(steps.n for steps in several)])
        pairs = list(zip(several, starts[:-1], strict=True))
        return cls(
            np.concatenate([steps.position for steps in several]),
            np.concatenate([steps.problem + start for steps, start in pairs]),
            np.concatenate([steps.height for steps in several]),
            int(starts[-1]),
        )

    def first(self):
        """Position of the first step of each problem, shape (n,)."""
        if np.array_equal(self.problem, np.arange(self.n)):
            return self.position
        return segment_min(self.position, self.offsets)


def count_steps(path_risk, labels, offsets):
    """Make the `Steps` of the number of false claims that are kept."""
    rows = np.flatnonzero(labels != 1)
    problem = segment_ids(offsets)[rows]
    return Steps(path_risk[rows], problem, np.ones(len(rows)), len(offsets) - 1)


def share_steps(path_risk, labels, offsets):
    """Make the `Steps` of the largest share of false claims among those kept so far.

    The share itself may fall again where a higher threshold keeps more true claims; its
    running maximum never falls, and is at least the share.
    """
    problem = segment_ids(offsets)
    order = np.lexsort((path_risk, problem))
    risk, of = path_risk[order], problem[order]
    last = np.append((risk[1:] > risk[:-1]) | (of[1:] > of[:-1]), True)[: len(risk)]
    kept = np.arange(1, len(risk) + 1) - offsets[of]
    wrong = np.cumsum(labels[order] != 1)
    before = np.append(0, wrong)[offsets[of]]
    risk, of, share = risk[last], of[last], ((wrong - before) / kept)[last]
    top = _running_maximum(share, of)
    lower = np.append(0.0, top[:-1])[: len(top)]
    lower[np.append(True, of[1:] > of[:-1])[: len(of)]] = 0.0
    rises = top > lower
    return Steps(risk[rises], of[rises], (top - lower)[rises], len(offsets) - 1)


def _running_maximum(values, problem):
    """Compute the largest value so far within each problem, without rounding."""
    distinct, rank = np.unique(values, return_inverse=True)
    raised = np.maximum.accumulate(rank + problem * len(distinct))
    return distinct[raised - problem * len(distinct)] if len(values) else values


def count_up_to(path_risk, offsets):
    """Count the claims of a problem whose path risk is at most that of each claim."""
    problem = segment_ids(offsets)
    order = np.lexsort((path_risk, problem))
    risk, of = path_risk[order], problem[order]
    last = np.append((risk[1:] > risk[:-1]) | (of[1:] > of[:-1]), True)[: len(risk)]
    ends = np.flatnonzero(last)
    place = ends[np.searchsorted(ends, np.arange(len(risk)))] + 1
    out = np.empty(len(path_risk), dtype=np.int64)
    out[order] = place - offsets[of]
    return out


def staircase(steps, weights=None):
    """Join the steps of all calibration problems into one staircase.

    Parameters
    ----------
    steps : Steps
    weights : ndarray of shape (n,), optional
        Weights of the problems; 1 each without them.

    Returns
    -------
    position : ndarray of shape (n_steps,), sorted
    sums : ndarray of shape (n_steps + 1,)
        ``sums[j]`` is the height after j steps, rounded up where it is no whole number:
        a claim less is kept then, and none too many.
    """
    order = np.argsort(steps.position, kind="stable")
    height = steps.height if weights is None else steps.height * weights[steps.problem]
    sums = np.append(0.0, np.cumsum(height[order]))
    if (height % 1).any():
        sums *= 1 + 1e-12
    return steps.position[order], sums
