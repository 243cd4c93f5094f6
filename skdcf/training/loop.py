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

Autograd differentiates F through the model, the price, the relaxation steps and the loss.
`standardised_risk` and the operations on segments are defined together with their gradients.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import value_and_grad
from autograd.misc import flatten
from tqdm.auto import tqdm

from .._checks import check_alpha
from ..ops.hard import targets_of
from ..ops.soft import log_sigmoid, standardised_risk
from ..ops.soft_price import log_price
from ..relaxation import PathRelaxation
from ._settings import LBFGS, SoftTraining
from .splitting import (
    STRENGTH,
    Columns,
    hold_out,
    smoothed_log_odds,
    weight_below_errors,
)


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
        Weight that the price gives to true claims below a false claim.
    scale : float
        Standard deviation of the scores on the training claims. The scale is 1 with a gain, or if
        ``unit_variance`` is False. Without a gain, the confidence equals ``model(params,
        columns(batch)) / scale``.
    columns : Columns
        The standardised columns of the training problems.
    loss_curve : list of float
        Training loss per iteration.
    message : str
        Reason why training stopped early or did not start, or an empty string otherwise.
    """

    params: object
    intercept: float
    q: float
    scale: float
    columns: Columns
    loss_curve: list[float]
    message: str


def train(model, batch, labels, task, gain=None):
    """Train a model through soft calibration and prediction.

    Parameters
    ----------
    model : differentiable model
        The differentiable model, such as `skdcf.scorers.LinearModel`.
    batch : GraphBatch
        Training problems. The features are standardised on the training problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown). Claims with unknown labels are not used in the
        loss.
    task : FitTask
        Level, relaxation and settings of the training. All problems of a group are held out for
        validation together. The random number generator draws the initial parameters, the
        validation problems and the random halves.
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
    >>> from skdcf.scorers import FitTask, LinearModel
    >>> from skdcf.training.loop import train
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> task = FitTask(alpha=0.1, rng=np.random.RandomState(0))
    >>> out = train(LinearModel(), graphs, pack_labels(y, graphs), task)
    >>> out.params.shape, out.loss_curve[-1] < out.loss_curve[0]
    ((31,), True)
    """
    alpha = check_alpha(task.alpha)
    groups = task.groups
    rng = task.rng
    training = task.training or SoftTraining()
    training.validate()
    relaxation = task.relaxation or PathRelaxation()
    relaxation.validate()
    settings = training.resolved(gain)
    n_questions = len(batch) if groups is None else len(np.unique(groups))
    n_validation = settings.optimizer.n_validation(n_questions)
    if n_validation:
        rest, rows = hold_out(len(batch), n_validation, groups, rng)
        is_held = np.isin(batch.problem_of, rows)
        held_out = batch[rows]
        held_labels = labels[is_held]
        batch = batch[rest]
        labels = labels[~is_held]
    columns = Columns.fit(batch, with_means=gain is not None)
    X = columns(batch)
    q = weight_below_errors(labels, batch)
    x, unflatten = _flatten(model.init(X.shape[1], rng))

    def confidence(flat, X, batch):
        """Compute the confidences, given flat parameters that end with the intercept."""
        scores = model(unflatten(flat[:-1]), X)
        return scores if gain is None else -log_price(flat[-1] - scores, batch, q, gain)

    def simulate(flat, X, batch, plan, *halves):
        """Compute the confidences, the risks, and the mean gain of the kept true claims."""
        scores = confidence(flat, X, batch)
        risk = standardised_risk(scores) if settings.unit_variance else -scores
        kept = relaxation.true_claims(risk, plan, alpha, *halves)
        return scores, risk, anp.mean(_worth_of(kept, gain))

    x = _start(settings.init, model, unflatten, x, X=X, batch=batch, labels=labels)
    scores = confidence(x, X, batch)
    loss_curve = []
    message = _why_nothing_to_learn(labels, scores)
    if not message:
        plan = relaxation.plan(batch, labels)
        mu = settings.shrinkage / (alpha * (n_questions - n_validation)) ** 2
        pull = mu / len(scores) * -standardised_risk(scores)

        half = len(batch) // 2
        rng = deepcopy(rng)

        def objective(flat):
            halves: Any = ()
            if settings.optimizer.halves:
                # A single problem is in both halves.
                order = rng.permutation(len(batch))
                halves = order[: max(half, 1)], order[half:]
            scores, risk, worth = simulate(flat, X, batch, plan, *halves)
            value = -worth if settings.loss == "retention" else -anp.log(worth)
            if not mu:
                return value
            # The pull is mu c / n, and 1 - corr(u, c) is 1 minus the mean of u c.
            unit_risk = risk if settings.unit_variance else standardised_risk(scores)
            return value + (mu + pull @ unit_risk)

        retention = None
        if n_validation:
            held = columns(held_out), held_out, relaxation.plan(held_out, held_labels)

            def retention(flat):
                return simulate(flat, *held)[2]

        x, message = _minimise(
            value_and_grad(objective),
            x,
            settings.optimizer,
            loss_curve,
            retention,
            task.verbose,
        )
    params = unflatten(x[:-1])
    is_scaled = settings.unit_variance and gain is None
    scale = float(np.std(model(params, X))) or 1.0 if is_scaled else 1.0
    return TrainingResult(params, x[-1], q, scale, columns, loss_curve, message)


def _flatten(params):
    """Return the parameters as a flat array, and a function that restores their shapes."""
    if isinstance(params, np.ndarray) and params.ndim == 1:
        # Autograd does not need to differentiate the identity function.
        return params, lambda flat: flat
    return flatten(params)


def _worth_of(kept, gain):
    """Return the value of a number of kept claims."""
    if gain == 0:
        return anp.log1p(kept)
    # The offset is added because a power below 1 has an infinite slope at 0.
    return kept if gain in (None, 1) else (kept + 0.001) ** gain


def _start(init, model, unflatten, x, X, batch, labels):
    """Return the initial flat parameters, given the parameters ``x`` drawn by the model."""
    kind = "coherent" if init == "coherent" else "hazard"
    target, judged = targets_of(kind, labels, batch)
    target = target[judged]
    if init == "random":
        return np.append(x, smoothed_log_odds(~target))
    strength = 10 * STRENGTH if init == "coherent" else STRENGTH
    # The penalty can shrink all layers of a network to 0, but training cannot start from
    # weights of 0.
    for weaker in (1, 10, 100, 1000):
        start = fit_logistic(
            model, X[judged], target, x=x, unflatten=unflatten, C=weaker * strength
        )
        # Scores that vary less are treated as constant.
        if np.std(model(unflatten(start[:-1]), X)) > 1e-3:
            break
    return start


def _minimise(fun, x, optimizer, loss_curve, retention, verbose):
    """Return the best parameters, and a message if a loss was not finite.

    Without the function ``retention``, which evaluates validation problems, these are the last.
    """
    best = [x]
    curve = []
    message = ""
    bar = tqdm(
        desc="training",
        unit="iteration",
        total=getattr(optimizer, "max_iter", None),
        disable=not verbose,
    )

    def watch(iteration, x, value):
        """Record an iteration, and return whether to stop."""
        loss_curve.append(value)
        bar.set_postfix(loss=f"{value:.4f}")
        bar.update()
        if retention is None:
            return False
        curve.append(retention(x))
        n_worse = len(curve) - 1 - np.argmax(np.nan_to_num(curve, nan=-np.inf))
        if not n_worse:
            best[0] = x
        return n_worse >= optimizer.patience

    with bar:
        last, is_finite = optimizer.minimize(fun, x, watch)
    if not is_finite:
        message = (
            f"loss or gradient was not finite after {len(loss_curve)} iterations, so the "
            "last finite parameters are kept"
        )
    return (best[0] if curve else last), message


def _why_nothing_to_learn(labels, scores):
    for label, word in ((0, "false"), (1, "true")):
        if not (labels == label).any():
            return f"no training claim is {word}, so the scorer keeps its initial parameters"
    if np.ptp(scores) == 0:
        return (
            "all training claims have the same initial score (the features may be "
            "constant), so the scorer cannot be trained"
        )
    return ""


def fit_logistic(model, X, target, x, unflatten, C):
    """Return the parameters that minimise ``|params|^2 / 2 + C sum of log losses``.

    If the model is a `LinearModel`, the result is a logistic regression whose intercept is not
    penalised. X has shape (n_claims, n_features), the booleans ``target`` have shape (n_claims,),
    the initial parameters ``x`` have shape (n_params,), and ``unflatten`` restores the shapes of
    parameters. The result has shape (n_params + 1,) and ends with the intercept of the log odds
    that a claim is false.
    """
    if target.all() or not target.any():
        return np.append(np.zeros_like(x), smoothed_log_odds(~target))
    sign = np.where(target, 1.0, -1.0)

    def penalised(flat):
        weights = flat[:-1]
        log_odds = model(unflatten(weights), X) - flat[-1]
        log_likelihood = anp.sum(log_sigmoid(sign * log_odds))
        return weights @ weights / 2 - C * log_likelihood

    start = np.append(x, -np.log(target.mean() / (1 - target.mean())))
    optimizer = LBFGS(max_iter=200)
    optimizer.tolerance = 1e-5
    best, _ = optimizer.minimize(value_and_grad(penalised), start, lambda *_: False)
    return best
