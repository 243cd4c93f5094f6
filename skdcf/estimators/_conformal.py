"""Coherent factuality with a scorer trained through the whole procedure."""

import warnings
from hashlib import blake2b

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..scorers import LinearScorer
from ._base import BaseFilter, take
from ._validation import holdout


class TrainedScorer:
    """A differentiable scorer with its trained parameters; plain numpy.

    Parameters
    ----------
    scorer : differentiable scorer
    params : object
        Its parameters, for standardised features.
    standardizer : Standardizer
        Of the training problems.
    scale : float
        Deviation of the scores over the training claims.
    loss_curve : tuple of float
        Training objective per step.
    trained_on : bytes
        Digest of the training problems.
    """

    def __init__(self, scorer, params, standardizer, scale, loss_curve, trained_on):
        self.scorer = scorer
        self.params = params
        self.standardizer = standardizer
        self.scale = scale
        self.loss_curve = loss_curve
        self.trained_on = trained_on

    def confidence(self, batch):
        """Confidence of each claim.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        X = self.standardizer(batch.features)
        return np.asarray(self.scorer(self.params, X)) / self.scale


class TrainedFilter(BaseFilter):
    """What `CoherentConformalFilter` and its preset without a graph share."""

    trains_for_alpha = True

    def _trains(self, scorer):
        return True

    def _make_scorer(self, batch):
        if batch.features is None:
            raise ValueError(
                "training needs features, but the problems have none yet: add some "
                "with skdcf.features"
            )
        return as_trainable(self.scorer)

    def _fit_scorer(self, scorer, batch, labels, groups, rng):
        from ..relaxation import PathRelaxation
        from ..training import train

        relaxation = PathRelaxation() if self.relaxation is None else self.relaxation
        validation = None
        if self.optimizer == "adam" and self.validation_size is not None:
            rest, rows = holdout(len(batch), self.validation_size, groups, rng)
            validation = take(batch, labels, rows)
            batch, labels = take(batch, labels, rest)
        digest = _digest(batch)
        result = train(
            scorer,
            relaxation,
            batch,
            labels,
            alpha=self.alpha,
            optimizer=self.optimizer,
            loss=self.loss,
            start=self._start(digest),
            shrinkage=self.shrinkage,
            unit_variance=self.unit_variance,
            coherent=self.coherent,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            patience=self.patience,
            validation=validation,
            rng=rng,
            verbose=bool(self.verbose),
        )
        if result.message:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=3)
        return TrainedScorer(
            scorer,
            result.params,
            result.standardizer,
            result.scale,
            tuple(result.loss_curve),
            digest,
        )

    @property
    def coef_(self):
        """Weights of a linear scorer, per unit of the features as passed."""
        if type(self.scorer_.scorer) is not LinearScorer:
            raise AttributeError("coef_: the scorer is not linear")
        weights = self.scorer_.standardizer.raw_weights(self.scorer_.params)
        return weights / self.scorer_.scale

    @property
    def loss_curve_(self):
        """Training objective per step."""
        return list(self.scorer_.loss_curve)

    @property
    def n_iter_(self):
        """Number of training steps."""
        return len(self.scorer_.loss_curve)

    def _start(self, digest):
        """Where training starts; with ``warm_start`` where it ended, if it may."""
        last = getattr(self, "scorer_", None)
        if not self.warm_start or last is None:
            return self.start
        if getattr(last, "trained_on", None) == digest:
            return last.params
        warnings.warn(
            "warm_start: the training problems are not those of the last fit. Going on "
            "from there could calibrate on problems that were trained on, and void the "
            "guarantee, so training starts afresh. Pass the same problems and an "
            "integer random_state to go on.",
            UserWarning,
            stacklevel=4,
        )
        return self.start

    def _check_parameters(self):
        super()._check_parameters()
        if self.relaxation is not None:
            if not hasattr(self.relaxation, "validate"):
                raise ValueError(
                    f"relaxation is {self.relaxation!r}: a PathRelaxation, a "
                    "GridRelaxation or None expected"
                )
            self.relaxation.validate()


class CoherentConformalFilter(TrainedFilter):
    """Coherent factuality with a scorer that learns to keep true claims.

    The scorer is trained through a soft version of everything that happens to its
    scores afterwards: coherence over the graph, calibration at ``alpha``, filtering.
    What is minimised is minus the number of true claims kept. Calibration and
    prediction then are those of `HardCF`, on problems that training has not seen, and
    with the same guarantee.

    Parameters
    ----------
    scorer : {"linear"} or differentiable scorer, default="linear"
        "linear" is `LinearScorer`.
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
    coef_ : ndarray of shape (n_features,)
        Weights of a linear scorer, per unit of the features as passed. Features more
        than 3 deviations from their mean count as if they were 3.
    loss_curve_ : list of float
        Training objective per step.
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
    >>> dcf.coef_.shape, dcf.n_calibration_
    ((31,), 120)
    """

    def __init__(
        self,
        scorer="linear",
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
        return cls(**{"alpha": alpha, "relaxation": relaxation} | PAPER | changes)


def as_trainable(scorer):
    """A differentiable scorer from what a user writes for ``scorer=``."""
    if isinstance(scorer, str) and scorer == "linear":
        return LinearScorer()
    if callable(getattr(scorer, "init", None)) and callable(scorer):
        return scorer
    raise ValueError(
        f'scorer is {scorer!r}: "linear", or a differentiable scorer, an object with '
        "init(n_features, rng) and scorer(params, X), expected. For feature names, "
        "classifiers and functions there is HardCF"
    )


def _digest(batch):
    """Which problems these are, order included."""
    digest = blake2b(digest_size=16)
    for array in (batch.features, batch.offsets, batch.edges):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()
