"""Coherent factuality with a scorer trained through the whole procedure."""

from copy import copy

from sklearn.base import clone

from ..scorers import NeymanPearsonScorer
from ._trained import TrainedFilter, needs_features

AUTO, NEYMAN_PEARSON = "auto", "neyman-pearson"


class CoherentConformalFilter(TrainedFilter):
    """Coherent factuality with a scorer that learns to keep true claims.

    The scorer is trained for what happens to its scores afterwards: coherence over the
    graph, calibration at ``alpha``, filtering. Calibration and prediction then are those
    of `HardCF`, on problems that training has not seen, and with the same guarantee.

    Parameters
    ----------
    scorer : {"auto", "linear", "neyman-pearson"} or differentiable scorer, default="auto"
        "linear" is `LinearScorer`, trained through a soft version of the procedure to
        keep as many true claims as possible. "neyman-pearson" is
        `NeymanPearsonScorer`, which prices claims by their hazards and the graph.
        "auto" mixes the two, weighed by what they keep in cross-validation on the
        training problems. What follows from ``optimizer`` down to ``warm_start`` is
        for "linear" and scorers of one's own.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim; also the level that
        is trained for.
    relaxation : PathRelaxation, GridRelaxation or None, default=None
        How the procedure is softened; None is `PathRelaxation`.
    coherent : bool, default=True
        Whether a claim needs all its ancestors, in training and afterwards.
    calibration_size : float or int, default=0.3
        Share or number of the problems held out of training for calibration.
    optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" takes all training problems at once. "adam" is the published loop:
        other halves calibrate and predict in each epoch.
    loss : {"log-retention", "retention"}, default="log-retention"
        What is minimised: minus the logarithm of the soft retention, or minus it.
    start : {"coherent", "random"}, default="coherent"
        "coherent" starts from logistic regression of "this claim and all its ancestors
        are true"; "random" from small random numbers.
    shrinkage : float, default=100.0
        Pull towards the start, divided by the squared number of problems that may fail,
        ``(alpha n)^2``.
    unit_variance : bool, default=True
        Whether scores are scaled to unit deviation before they are relaxed.
    max_iter : int, optional
        Steps at most: None is 30 for "lbfgs" and 100 for "adam".
    learning_rate : float, default=0.015
        Of "adam".
    validation_size : float, int or None, default=0.2
        Share or number of the training problems on which "adam" chooses its best epoch;
        None is none. "lbfgs" needs none.
    patience : int, default=10
        Epochs without a better validation retention before "adam" stops.
    warm_start : bool, default=False
        Whether to go on from the last fit. Only on the same problems with an integer
        ``random_state``; otherwise training starts afresh, with a warning.
    ties : {"exclude", "jitter"}, default="exclude"
        As in `HardCF`.
    verbose : int, default=0
        Whether to print loss and retention of every step.
    random_state : int, RandomState or None, default=None
        Seeds splits and initial parameters; training is reproducible to the bit.

    Attributes
    ----------
    selection_ : Selection
        With "auto": members, weights, and the out-of-fold retention of each.
    coef_ : ndarray of shape (n_features,)
        Weights of a linear scorer, per unit of the features as passed. Features more
        than 3 deviations from their mean count as if they were 3. Not for "auto".
    loss_curve_ : list of float
        Training objective per step; of the linear member with "auto".
    n_iter_ : int
        Number of steps.
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted; +inf for a problem without a false claim.
    threshold_ : float
        Conformal threshold at ``alpha``.
    n_calibration_ : int
        Number of calibration problems.
    scorer_ : object
        The trained scorer.
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
    >>> dcf.n_calibration_, dcf.selection_.members
    (120, ('linear', 'neyman-pearson'))
    """

    def __init__(
        self,
        scorer=AUTO,
        *,
        alpha=0.1,
        relaxation=None,
        coherent=True,
        calibration_size=0.3,
        optimizer="lbfgs",
        loss="log-retention",
        start="coherent",
        shrinkage=100.0,
        unit_variance=True,
        max_iter=None,
        learning_rate=0.015,
        validation_size=0.2,
        patience=10,
        warm_start=False,
        ties="exclude",
        verbose=0,
        random_state=None,
    ):
        self.scorer = scorer
        self.alpha = alpha
        self.relaxation = relaxation
        self.coherent = coherent
        self.calibration_size = calibration_size
        self.optimizer = optimizer
        self.loss = loss
        self.start = start
        self.shrinkage = shrinkage
        self.unit_variance = unit_variance
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.validation_size = validation_size
        self.patience = patience
        self.warm_start = warm_start
        self.ties = ties
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def from_paper(cls, dataset, alpha, **changes):
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
        from ..training import PAPER

        relaxation = GridRelaxation.from_paper(dataset, alpha)
        settings = {"scorer": "linear", "alpha": alpha, "relaxation": relaxation}
        return cls(**settings | PAPER | changes)

    _scorer_names = '"auto", "linear", "neyman-pearson"'

    @property
    def trains_for_alpha(self):
        """Whether another alpha would give another scorer."""
        return not self._is(NEYMAN_PEARSON)

    @property
    def selection_(self):
        """Members, weights and out-of-fold retentions of "auto"."""
        return self.scorer_.selection_

    def _is(self, name):
        return isinstance(self.scorer, str) and self.scorer == name

    def _make_scorer(self, batch):
        needs_features(batch)
        if self._is(AUTO):
            return AUTO
        if self._is(NEYMAN_PEARSON):
            return NeymanPearsonScorer(coherent=self.coherent)
        return super()._make_scorer(batch)

    def _fit_scorer(self, scorer, batch, labels, groups, rng):
        if scorer == AUTO:
            fitted = self._fit_auto([self.alpha], batch, labels, groups, rng)[0]
            if self.verbose:
                print(fitted.selection_)
            return fitted
        if self._is(NEYMAN_PEARSON):
            return scorer.set_params(random_state=rng).fit(batch, labels)
        return super()._fit_scorer(scorer, batch, labels, groups, rng)

    def _fit_auto(self, alphas, batch, labels, groups, rng):
        from ..training.auto import fit_auto

        options = {"relaxation": self.relaxation, "coherent": self.coherent}
        return fit_auto(batch, labels, alphas, groups, rng, **options)

    def _fit_levels(self, X, y, alphas, groups=None):
        """One fitted filter per alpha; "auto" shares what knows no alpha."""
        if not self._is(AUTO):
            return [clone(self).set_params(alpha=a).fit(X, y, groups) for a in alphas]
        parts = self._prepare(X, y, groups)
        data = parts.batch, parts.labels, parts.groups, parts.rng
        return [
            copy(self).set_params(alpha=alpha)._finish(scorer, parts)
            for alpha, scorer in zip(alphas, self._fit_auto(alphas, *data), strict=True)
        ]
