"""One scorer per fold, each calibrated on its own fold: cross-conformal prediction."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..features.columns import apply_columns
from ..graphs import GraphBatch
from ..ops.hard import path_risk
from ._protocol import Scorer


class CrossScorer(Scorer):
    """How many calibration problems have a score that a claim does not stay below.

    Made by filters with ``calibration_size="cross"``. The scorer of fold k has not seen
    the problems of fold k; with R of that scorer, the risk of a claim is the number of
    those whose score is at most R, summed over the folds.

    Parameters
    ----------
    scorers : list of fitted Scorer
        One per fold.
    scores : list of ndarray
        Sorted nonconformity scores of the problems of each fold.
    features : list of fitted transformers, optional
        One per fold, where columns learn; each scorer then sees those of its own fold.
    edges : {"given", "none"}, default="given"
        Whether edges are dropped once such columns are computed.

    References
    ----------
    R. Foygel Barber, E. Candès, A. Ramdas, R. Tibshirani. Predictive inference with the
    jackknife+. Annals of Statistics 2021.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import ClassifierScorer
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> cf = HardCF(ClassifierScorer(), calibration_size="cross", random_state=0)
    >>> cf = cf.fit(graphs, y)
    >>> cf.n_calibration_, len(cf.scorer_.scorers)
    (100, 10)
    """

    learns = False
    resolution = 0.0  # counts are whole numbers

    def __init__(
        self,
        scorers: list,
        scores: list,
        features: list | None = None,
        edges: Literal["given", "none"] = "given",
    ) -> None:
        self.scorers = scorers
        self.scores = scores
        self.features = features
        self.edges = edges

    def fit(self, batch, labels, task):
        """Refused: the filter fits one scorer per fold.

        Parameters
        ----------
        batch, labels, task
            As in `Scorer.fit`.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            'a CrossScorer is made by a filter: pass calibration_size="cross" with the '
            "scorer that is to be fitted in each fold"
        )

    def columns_read(self) -> tuple[str, ...] | None:
        """Names of the columns that any of the scorers reads; None where that is all.

        Returns
        -------
        tuple of str or None
        """
        read = [scorer.columns_read() for scorer in self.scorers]
        if any(names is None for names in read):
            return None
        return tuple(dict.fromkeys(name for names in read for name in names))

    def saw(self, batch: GraphBatch) -> NDArray[np.bool_]:
        """Which problems some of the scorers knew before, as in `Scorer.saw`.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return np.any([scorer.saw(batch) for scorer in self.scorers], axis=0)

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Minus the number of calibration problems; whole numbers.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        total = np.zeros(batch.n_claims)
        features = self.features or [None] * len(self.scorers)
        for scorer, scores, columns in zip(
            self.scorers, self.scores, features, strict=True
        ):
            seen = apply_columns(columns, batch)
            seen = seen.without_edges() if self.edges == "none" else seen
            risk = path_risk(-np.asarray(scorer.confidence(seen), float), seen)
            total += np.searchsorted(scores, risk, side="right")
        return -total
