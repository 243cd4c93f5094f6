"""Coherent factuality with a scorer trained through the whole procedure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._parameters import HasMethods, StrOptions
from ..scorers import Task
from ..training import SoftTraining
from ._base import BaseFilter

if TYPE_CHECKING:
    from ..guarantees import Guarantee
    from ..relaxation import Relaxation


class CoherentConformalFilter(BaseFilter):
    """Coherent factuality with a scorer that learns to keep true claims.

    The scorer is trained for what happens to its scores afterwards: coherence over the
    graph, calibration at ``alpha``, filtering. Calibration and prediction then are those
    of `HardCF`, on problems that training has not seen, and with the same guarantee.

    Parameters
    ----------
    scorer : "auto", "linear", "neyman-pearson", model or any scorer, default="auto"
        "linear" is the method of the paper: a linear model, trained through a soft version
        of the procedure to keep as many true claims as possible. Other differentiable
        models, such as `~skdcf.scorers.MLPScorer`, are trained in the same way.
        "neyman-pearson" estimates how likely an error begins at each claim, and orders
        claims by what keeping them costs in risk (`~skdcf.scorers.NeymanPearsonScorer`).
        "auto" trains both and mixes their scores, each with a weight for what it keeps in
        cross-validation on the training problems. All that `HardCF` takes may be passed
        here as well.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim; also the level that
        is trained for.
    relaxation : PathRelaxation, GridRelaxation or None, default=None
        How the procedure is softened; None is ``PathRelaxation()``. Refused where the
        scorer is not trained through it.
    training : SoftTraining or None, default=None
        How the model is trained; None is ``SoftTraining()``. Refused where
        ``relaxation`` is.
    coherent : bool, default=True
        Whether a claim needs all its ancestors. False drops the edges before anything
        else, in training and afterwards.
    calibration_size : float, int, "cross" or None, default=None
        Share or number of the problems held out of training for calibration. None
        holds out about two fifths, such that ``alpha (n + 1)`` is a whole number and no
        problem is wasted; with a scorer that does not learn, all problems calibrate.
        "cross" trains one scorer per fold on the others, ten in all, and calibrates
        with all problems: it keeps more where there are few, promises 1 - 2 alpha, and
        was seen to cover about 1 - alpha.
    ties : {"exclude", "jitter"}, default="exclude"
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds splits and initial parameters; training is reproducible to the bit.
    verbose : int, default=0
        Whether to print loss and retention of every training step, or the weights that
        "auto" chose.
    guarantee : Guarantee, optional
        As in `HardCF`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of a linear model, per unit of the features as passed. Features more
        than 3 deviations from their mean count as if they were 3. Not for "auto".
    loss_curve_ : list of float
        Training objective per step; of the linear member with "auto".
    n_iter_ : int
        Number of steps.
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted; +inf for a problem without a false claim.
    answer_scores_ : ndarray of shape (n_calibration,)
        Largest path risk of each problem with a false claim, sorted; +inf for the others.
    threshold_ : float
        Conformal threshold at ``alpha``; NaN where ``guarantee`` gives problems
        thresholds of their own.
    calibration_ : Calibration
        What the guarantee made of the calibration problems.
    n_calibration_ : int
        Number of calibration problems.
    scorer_ : Scorer
        The trained scorer; that of "auto" has the weights in ``selection_``.
    n_features_in_ : int
        Number of features per claim.
    feature_names_in_ : ndarray of str
        Where the features are named.

    References
    ----------
    N. Hittesdorf, M. Salzetta, L. Cheng. Differentiable Conformal Training for LLM
    Reasoning Factuality. arXiv:2604.20098.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter, HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(600, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter(alpha=0.1, random_state=0)
    >>> dcf = dcf.fit(graphs[:400], y[:400])
    >>> frequency = HardCF("frequency-score", alpha=0.1).fit(graphs[:400], y[:400])
    >>> dcf.score(graphs[400:], y[400:]) > frequency.score(graphs[400:], y[400:])
    True
    >>> dcf.n_calibration_, dcf.scorer_.selection_.members
    (159, ('linear', 'neyman-pearson'))
    """

    _parameter_constraints = BaseFilter._parameter_constraints | {
        "relaxation": [None, HasMethods(["plan", "loss", "validate"])],
        "training": [None, SoftTraining],
        "ties": [StrOptions({"exclude", "jitter"})],
    }

    def __init__(
        self,
        scorer: Any = "auto",
        *,
        alpha: float = 0.1,
        relaxation: Relaxation | None = None,
        training: SoftTraining | None = None,
        coherent: bool = True,
        calibration_size: float | int | Literal["cross"] | None = None,
        ties: Literal["exclude", "jitter"] = "exclude",
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        guarantee: Guarantee | None = None,
    ) -> None:
        self.scorer = scorer
        self.alpha = alpha
        self.relaxation = relaxation
        self.training = training
        self.coherent = coherent
        self.calibration_size = calibration_size
        self.ties = ties
        self.random_state = random_state
        self.verbose = verbose
        self.guarantee = guarantee

    @classmethod
    def from_paper(
        cls, dataset: Literal["math", "felm"], alpha: float, **changes: Any
    ) -> CoherentConformalFilter:
        """The published procedure with its tabled settings.

        Grid relaxation, Adam, random start, no shrinkage.

        Parameters
        ----------
        dataset : {"math", "felm"}
        alpha : float
            Of the table's row.
        **changes
            Further constructor arguments.

        Returns
        -------
        CoherentConformalFilter

        Examples
        --------
        >>> from skdcf import CoherentConformalFilter
        >>> CoherentConformalFilter.from_paper("math", 0.05).relaxation.ancestor_weight
        6.0
        """
        from ..relaxation import GridRelaxation

        settings: dict[str, Any] = {
            "scorer": "linear",
            "alpha": alpha,
            "relaxation": GridRelaxation.from_paper(dataset, alpha),
            "training": SoftTraining.from_paper(),
        }
        return cls(**settings | changes)

    def _task(self, groups, rng):
        settings = self.relaxation, self.training, self.verbose
        return Task(self.alpha, groups, rng, *settings)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of a linear model, per unit of the features as passed."""
        return self.scorer_.coef_

    @property
    def loss_curve_(self) -> list[float]:
        """Training objective per step."""
        return self.scorer_.loss_curve_

    @property
    def n_iter_(self) -> int:
        """Number of training steps."""
        return len(self.loss_curve_)
