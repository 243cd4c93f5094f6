"""Train a model on packed problems.

=====  ==========================================================================
z      output of the model for n claims
h      log odds of the hazards, ``b - z`` with an intercept b
c      confidences, which are minus the log prices of the hazards h, or z without a gain
u      confidences with mean 0 and standard deviation 1: (c - mean c) / std c
k_i    soft number of kept true claims of problem i at the risk -u, or -c without unit variance
w      the gain, which is the value of a number of claims
mu     weight of the shrinkage towards the initial confidences u0
F      the objective, ``-log(mean w(k_i)) + mu (1 - corr(u, u0))``
=====  ==========================================================================

Training minimises the objective F. The logarithm in F is optional.

Autograd differentiates F through the model, the price, `standardised_risk`, the relaxation steps
and the loss. Each of these steps is a single autograd primitive, which is defined together with
its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import autograd.numpy as anp
import numpy as np
from autograd import make_vjp, value_and_grad
from autograd.misc import flatten
from tqdm.auto import tqdm

from .._checks import check_alpha
from ..graphs import GraphBatch
from ..ops.hard import Array, below_true_claims, coherent_labels
from ..ops.segments import with_vjp
from ..ops.soft import log_loss
from ..ops.soft_price import log_price
from ._settings import LBFGS
from .gain import soft_worth_of
from .splitting import Columns, hold_out, pick, weight_below_errors

if TYPE_CHECKING:
    from ..relaxation import Relaxation
    from ._settings import SoftTraining


class Model(Protocol):
    """Protocol for differentiable models, such as `skdcf.scorers.LinearModel`."""

    def init(self, n_features: int, rng: Any) -> Any: ...
    def __call__(self, params: Any, X: Array) -> Array: ...


@dataclass
class TrainingResult:
    """Result of `train`.

    Attributes
    ----------
    params : object
        Parameters of the model.
    intercept : float
        The intercept b of the hazards, or 0 without a gain.
    q : float
        Weight of true claims below a false one in the price.
    scale : float
        Standard deviation of the scores on the training claims. The scale is 1 with a gain, or if
        ``unit_variance`` is False. Without a gain, the confidence equals ``model(params,
        columns(batch)) / scale``.
    columns : Columns
        The standardised columns of the training problems.
    loss_curve : list of float
        Training loss per iteration.
    validation_curve : list of float
        Soft retention of the validation problems in each iteration, or an empty array if there
        are none.
    converged : bool
        Whether all losses and gradients were finite. If False, ``params`` contains the last
        finite parameters.
    message : str
        Reason why training stopped early or did not start, or an empty string otherwise.
    """

    params: object
    intercept: float
    q: float
    scale: float
    columns: Columns
    loss_curve: list[float] = field(default_factory=list)
    validation_curve: list[float] = field(default_factory=list)
    converged: bool = True
    message: str = ""

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.loss_curve)


def train(
    model: Model,
    relaxation: Relaxation,
    training: SoftTraining,
    batch: GraphBatch,
    labels: Array,
    alpha: float,
    groups: Array | None = None,
    rng: np.random.RandomState | np.random.Generator | None = None,
    verbose: int = 0,
    clip: float = 3.0,
    gain: float | None = None,
) -> TrainingResult:
    """Train a model through soft calibration and prediction.

    Parameters
    ----------
    model : differentiable model
        The differentiable model, such as `skdcf.scorers.LinearModel`.
    relaxation : PathRelaxation or GridRelaxation
        The relaxation of calibration and prediction.
    training : SoftTraining
        Settings of the training.
    batch : GraphBatch
        Training problems. The features are standardised on the training problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown). Claims with unknown labels are not used in the
        loss.
    alpha : float
        The training level.
    groups : ndarray of shape (n_problems,), optional
        Group of each problem. All problems of a group are held out for validation together.
    rng : RandomState or Generator, optional
        Random number generator, used to draw initial parameters, validation problems and random
        halves.
    verbose : int
        Whether to show a progress bar with the loss and retention of each iteration.
    clip : float
        Maximum absolute value of standardised features, to which larger values are clipped.
    gain : float, optional
        Exponent of the price, which is also the gain in the loss. If None, the output of the
        model is the confidence, and the loss counts claims.

    Returns
    -------
    result : TrainingResult
        The training result.

    Raises
    ------
    ValueError
        If a parameter of the relaxation or the training is invalid, or if the parameters are
        incompatible.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.labels import pack_labels
    >>> from skdcf.relaxation import PathRelaxation
    >>> from skdcf.scorers import LinearModel
    >>> from skdcf.training import SoftTraining
    >>> from skdcf.training.loop import train
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> setting = LinearModel(), PathRelaxation(), SoftTraining()
    >>> rng = np.random.RandomState(0)
    >>> out = train(*setting, graphs, pack_labels(y, graphs), 0.1, rng=rng)
    >>> out.params.shape, out.converged, out.loss_curve[-1] < out.loss_curve[0]
    ((31,), True, True)
    """
    alpha = check_alpha(alpha)
    training.validate()
    relaxation.validate()
    rng = rng or np.random.RandomState()
    run = _Run(model, relaxation, training.resolved(gain), rng=rng, gain=gain)
    run.prepare(batch, labels, groups, clip=clip)
    return run.result(alpha, verbose)


class _Run:
    """Model with its training problems and settings."""

    def __init__(self, model, relaxation, training, rng, gain):
        self.model = model
        self.relaxation = relaxation
        self.rng = rng
        self.training = training
        self.optimizer = training.optimizer
        self.gain = gain
        self.worth = soft_worth_of(1.0 if gain is None else gain)
        self.validation = None

    def prepare(self, batch, labels, groups, clip):
        """Hold out validation problems, standardise columns, and compute parameters and plans."""
        n_questions = len(batch) if groups is None else len(np.unique(groups))
        n_validation = self.optimizer.n_validation(n_questions)
        if n_validation:
            rest, rows = hold_out(len(batch), n_validation, groups, self.rng)
            held_out, held_labels = pick(batch, labels, rows)
            batch, labels = pick(batch, labels, rest)
        self.n_questions = n_questions - n_validation
        self.columns = Columns.fit(batch, clip, with_means=self.gain is not None)
        self.X = self.columns(batch)
        self.batch = batch
        self.q = weight_below_errors(labels, batch)
        x, self.unflatten = flattened(self.model.init(self.X.shape[1], self.rng))
        self.x = self._start(batch, labels, x)
        self.scores = self.confidence(self.x, self.X, batch)
        self.message = _why_nothing_to_learn(labels, self.scores)
        if not self.message:
            self.plan = self.relaxation.plan(batch, labels)
        if n_validation and not self.message:
            plan = self.relaxation.plan(held_out, held_labels)
            self.validation = self.columns(held_out), plan, held_out

    def confidence(self, flat, X, batch):
        """Compute the confidences, given flat parameters that end with the intercept."""
        scores = self.model(self.unflatten(flat[:-1]), X)
        if self.gain is None:
            return scores
        return -log_price(flat[-1] - scores, batch, self.q, self.gain)

    def _start(self, batch, labels, x):
        """Return the initial flat parameters, given the parameters ``x`` drawn by the model."""
        init = self.training.init
        is_named = isinstance(init, str) and init in START
        target, judged, C = START[init if is_named else "hazard"](batch, labels)
        X = self.X[judged]
        target = target[judged]
        # The smoothed log odds that a claim is false.
        intercept = np.log((np.sum(~target) + 0.5) / (np.sum(target) + 0.5))
        if not isinstance(init, str):
            return np.append(np.array(init, dtype=np.float64), intercept)
        start = np.append(x, intercept)
        # The penalty can shrink all layers of a network to 0, but training cannot start from
        # weights of 0.
        for weaker in (1, 10, 100, 1000) if is_named else ():
            start = fit_logistic(
                self.model,
                X,
                target,
                x=x,
                unflatten=self.unflatten,
                C=weaker * C,
            )
            if np.std(self.model(self.unflatten(start[:-1]), self.X)) > LEAST_SPREAD:
                break
        return start

    def result(self, alpha, verbose):
        training_result = TrainingResult(
            params=self.unflatten(self.x[:-1]),
            intercept=self.x[-1],
            q=self.q,
            scale=1.0,
            columns=self.columns,
            message=self.message,
        )
        if not self.message:
            self._minimise(alpha, training_result, verbose)
        if self.training.unit_variance and self.gain is None:
            training_result.scale = (
                float(np.std(self.model(training_result.params, self.X))) or 1.0
            )
        return training_result

    def _minimise(self, alpha, result, verbose):
        objective = value_and_grad(self._objective(alpha))
        fun = self._halved(objective) if self.optimizer.halves else objective
        watch = _Watch(self, alpha, result, verbose)
        with watch.bar:
            x, finite = self.optimizer.minimize(fun, self.x, watch)
        best = x if watch.best is None else watch.best
        result.params = self.unflatten(best[:-1])
        result.intercept = best[-1]
        if not finite:
            result.converged = False
            result.message = (
                f"loss or gradient was not finite after {result.n_iter} iterations, so the "
                "last finite parameters are kept"
            )

    def kept(self, flat, X, plan, batch, alpha, **halves):
        """Compute the confidences, the risks, and the soft number of kept true claims."""
        scores = self.confidence(flat, X, batch)
        risk = standardised_risk(scores) if self.training.unit_variance else -scores
        return scores, risk, self.relaxation.true_claims(risk, plan, alpha, **halves)

    def _objective(self, alpha):
        """Return the objective F as a function of flat parameters and two sets of problems."""
        training = self.training
        mu = training.shrinkage / (alpha * self.n_questions) ** 2
        pull = mu / len(self.scores) * -standardised_risk(self.scores)

        def objective(flat, calibration=None, prediction=None):
            scores, risk, kept = self.kept(
                flat,
                self.X,
                self.plan,
                self.batch,
                alpha,
                calibration=calibration,
                prediction=prediction,
            )
            worth = anp.mean(self.worth(kept))
            value = -worth if training.loss == "retention" else -anp.log(worth)
            if not mu:
                return value
            # The pull is mu c / n, and 1 - corr(u, c) is 1 minus the mean of u c.
            unit_risk = risk if training.unit_variance else standardised_risk(scores)
            return value + (mu + anp.dot(unit_risk, pull))

        return objective

    def retention(self, X, plan, batch, alpha):
        """Return the gain after calibration on all problems, as a function of the parameters."""

        def measure(flat):
            *_, kept = self.kept(flat, X, plan, batch, alpha)
            return float(np.mean(self.worth(kept)))

        return measure

    def _halved(self, objective):
        """Return an objective that calibrates on a random half of the problems in each call."""
        n = self.plan.n_problems
        rng = deepcopy(self.rng)

        def fun(flat):
            order = rng.permutation(n)
            halves = (order[: n // 2], order[n // 2 :]) if n > 1 else (order, order)
            return objective(flat, *halves)

        return fun


class _Watch:
    """Callback that records training curves and the best validation epoch, and shows progress."""

    def __init__(self, run, alpha, result, verbose):
        self.run = run
        self.result = result
        self.best = None
        self.verbose = verbose
        self.retention = run.retention(run.X, run.plan, run.batch, alpha)
        self.validation = None
        if run.validation is not None:
            self.validation = run.retention(*run.validation, alpha)
        self.bar = tqdm(
            desc="training",
            unit="iteration",
            total=getattr(run.optimizer, "max_iter", None),
            disable=not verbose,
        )

    def __call__(self, iteration, x, value):
        """Record an iteration, and return whether to stop."""
        curve = self.result.validation_curve
        self.result.loss_curve.append(value)
        if self.verbose:
            retention = self.retention(x)
            self.bar.set_postfix(loss=f"{value:.4f}", retention=f"{retention:.3f}")
            self.bar.update()
        if self.validation is None:
            return False
        curve.append(self.validation(x))
        best = int(np.argmax(np.nan_to_num(curve, nan=-np.inf)))
        if best == len(curve) - 1:
            self.best = x
        return len(curve) - 1 - best >= self.run.optimizer.patience


def _why_nothing_to_learn(labels, scores):
    if not (labels == 0).any():
        return "no training claim is false, so the scorer keeps its initial parameters"
    if not (labels == 1).any():
        return "no training claim is true, so the scorer keeps its initial parameters"
    if np.ptp(scores) == 0:
        return (
            "all training claims have the same initial score (the features may be "
            "constant), so the scorer cannot be trained"
        )
    return ""


def _coherent_target(batch, labels):
    """Return the coherent labels, a mask of the known coherent labels, and the parameter C."""
    target = coherent_labels(labels, batch)
    return target, target | ~coherent_labels(labels != 0, batch), 0.3


def _hazard_target(batch, labels):
    """Return the true claims, the judged claims with only true ancestors, and the parameter C."""
    return labels == 1, (labels >= 0) & below_true_claims(labels, batch), 0.03


# scores whose log odds have a smaller standard deviation are treated as constant
LEAST_SPREAD = 1e-3

# Target, claims and C of the logistic regression for the initial parameters.
START = {"coherent": _coherent_target, "hazard": _hazard_target}


def fit_logistic(
    model: Model,
    X: Array,
    target: Array,
    x: Array,
    unflatten: Callable[[Any], Any],
    C: float,
) -> Array:
    """Return the parameters that minimise ``|params|^2 / 2 + C sum of log losses``.

    If the model is a `LinearModel`, the result is a logistic regression whose intercept is not
    penalised.

    Parameters
    ----------
    model : differentiable model
        The model.
    X : ndarray of shape (n_claims, n_features)
        Standardised features.
    target : ndarray of bool of shape (n_claims,)
        Class of each claim.
    x : ndarray of shape (n_params,)
        Initial flat parameters.
    unflatten : callable
        Function that restores the shapes of flat parameters.
    C : float
        Inverse strength of the penalty.

    Returns
    -------
    params : ndarray of shape (n_params + 1,)
        The parameters, followed by the intercept of the log odds that a claim is false.
        The fitted parameters as a flat array.
    """
    if target.all() or not target.any():
        smoothed = np.log((np.sum(~target) + 0.5) / (np.sum(target) + 0.5))
        return np.append(np.zeros_like(x), smoothed)
    sign = np.where(target, 1.0, -1.0)

    def penalised(flat):
        weights = flat[:-1]
        to_weights, scores = make_vjp(lambda w: model(unflatten(w), X))(weights)
        to_scores, loss = make_vjp(log_loss)(scores + flat[-1], sign)
        slope = to_scores(C)
        # The two halves of the weights are added separately to preserve the last bits of recorded
        # fits.
        of_weights = to_weights(slope) + weights / 2 + weights / 2
        return weights @ weights / 2 + C * loss, np.append(of_weights, slope.sum())

    start = np.append(x, np.log(target.mean() / (1 - target.mean())))
    optimizer = LBFGS(max_iter=200)
    optimizer.tolerance = 1e-5
    best, _ = optimizer.minimize(penalised, start, lambda *_: False)
    return np.append(best[:-1], -best[-1])


def flattened(params: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Return the parameters as one flat array, and a function that restores their shapes."""
    if isinstance(params, np.ndarray) and params.ndim == 1:
        # Autograd does not need to differentiate the identity function.
        return params, lambda flat: flat
    return flatten(params)


def _pull_standardised(g, risk, scores):
    return -(g - g.mean() - risk * (g @ risk / len(risk))) / scores.std()


@with_vjp(_pull_standardised)
def standardised_risk(scores: Array) -> Array:
    """Compute the negated scores, standardised to mean 0 and standard deviation 1."""
    centred = scores - scores.sum() / len(scores)
    # If all scores are equal, the scale is NaN, and training stops.
    with np.errstate(invalid="ignore"):
        return -centred / np.sqrt(centred @ centred / len(scores))
