"""One training run, from packed problems to parameters."""

from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
from autograd import value_and_grad
from autograd.misc import flatten

from .._checks import check_alpha
from ..ops.hard import coherent_labels
from ..scorers._standardize import Standardizer
from ._objective import LOSSES, Objective, standardised
from ._optimizers import adam, lbfgs
from ._start import logistic_start

# Arguments of `train` that make it the procedure of arXiv:2604.20098.
PAPER = {
    "optimizer": "adam",
    "loss": "retention",
    "start": "random",
    "shrinkage": 0.0,
    "unit_variance": False,
}


_STEPS = {"lbfgs": 30, "adam": 100}


@dataclass
class TrainingResult:
    """What `train` returns.

    Attributes
    ----------
    params : object
        Parameters of the scorer.
    scale : float
        Deviation of the scores on the training claims; 1 where scores are not brought
        to unit variance. Confidence is ``scorer(params, standardizer(X)) / scale``.
    standardizer : Standardizer
    loss_curve : list of float
        Training loss per step.
    validation_curve : list of float
        Soft retention of the validation problems per step; empty without them.
    converged : bool
        False where a loss or gradient was not finite; params are the last good ones.
    message : str
        Why training ended early, or did not start; empty otherwise.
    """

    params: object
    scale: float
    standardizer: Standardizer
    loss_curve: list = field(default_factory=list)
    validation_curve: list = field(default_factory=list)
    converged: bool = True
    message: str = ""

    @property
    def n_iter(self):
        """Number of steps."""
        return len(self.loss_curve)

    def confidence(self, scorer, features):
        """Confidence of claims with raw ``features``, shape (n_claims, n_features)."""
        return scorer(self.params, self.standardizer(features)) / self.scale


def train(
    scorer,
    relaxation,
    batch,
    labels,
    *,
    alpha,
    optimizer="lbfgs",
    loss="log-retention",
    start="coherent",
    shrinkage=100.0,
    unit_variance=True,
    coherent=True,
    max_iter=None,
    learning_rate=0.015,
    patience=10,
    validation=None,
    rng=None,
    verbose=False,
):
    """Train a scorer through soft calibration and prediction.

    Parameters
    ----------
    scorer : differentiable scorer
        As `skdcf.scorers.LinearScorer`.
    relaxation : PathRelaxation or GridRelaxation
    batch : GraphBatch
        Training problems; features are standardised here, on these problems.
    labels : ndarray of bool, shape (n_claims,)
    alpha : float
        Level to train for.
    optimizer : {"lbfgs", "adam"}
        "lbfgs" takes all problems for calibration and prediction at once. "adam"
        splits them anew into two halves each epoch.
    loss : {"log-retention", "retention"}
        Minus the logarithm of the soft retention, or minus the retention.
    start : {"coherent", "random"} or parameters
        "coherent": penalised logistic regression of "the claim and all its ancestors
        are true" on the features.
    shrinkage : float
        The objective has the term ``shrinkage / (alpha n)^2 (1 - corr)``, corr being
        that of the scores with those at the start; 0 to leave it out. Not used with
        start="random".
    unit_variance : bool
        Divide scores by their deviation over the training claims before relaxing.
    coherent : bool
        False takes each claim for its own only ancestor.
    max_iter : int, optional
        Steps at most: 30 for "lbfgs", 100 for "adam".
    learning_rate : float
        Of "adam".
    patience : int
        Epochs without a better validation retention before "adam" stops.
    validation : (GraphBatch, ndarray of bool), optional
        Problems for "adam" to choose the best epoch on; they calibrate themselves.
    rng : RandomState or Generator, optional
        Initial parameters and halves.
    verbose : bool
        Print loss and retention of every step.

    Returns
    -------
    TrainingResult

    Raises
    ------
    ValueError
        On arguments outside of the above.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.graphs import pack_labels
    >>> from skdcf.relaxation import PathRelaxation
    >>> from skdcf.scorers import LinearScorer
    >>> from skdcf.training import train
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> labels = pack_labels(y, graphs)
    >>> rng = np.random.RandomState(0)
    >>> out = train(LinearScorer(), PathRelaxation(), graphs, labels, alpha=0.1, rng=rng)
    >>> out.params.shape, out.converged, out.loss_curve[-1] < out.loss_curve[0]
    ((31,), True, True)
    """
    check_options(optimizer, loss, start, shrinkage, max_iter, learning_rate, patience)
    if validation is not None and optimizer == "lbfgs":
        raise ValueError('validation problems are of use to optimizer="adam" only')
    max_iter = _STEPS[optimizer] if max_iter is None else max_iter
    check_alpha(alpha)
    relaxation.validate()
    rng = np.random.RandomState() if rng is None else rng
    standardizer = Standardizer.fit(batch.features)
    X = standardizer(batch.features)
    target = coherent_labels(labels, batch) if coherent else labels
    x, unflatten = _start(scorer, start, X, target, rng)
    scores = scorer(unflatten(x), X)
    result = TrainingResult(unflatten(x), 1.0, standardizer)
    result.message = _nothing_to_learn(labels, scores)
    if not result.message:
        random = isinstance(start, str) and start == "random"
        objective = Objective(
            scorer,
            relaxation,
            X,
            relaxation.plan(batch, labels, coherent),
            alpha,
            loss,
            unit_variance,
            mu=0.0 if random else shrinkage / (alpha * len(batch)) ** 2,
            start=standardised(scores),
        )
        watch = _Watch(result, objective, unflatten, patience, verbose)
        if validation is not None:
            watch.on(*validation, coherent)
        run = _run_lbfgs if optimizer == "lbfgs" else _run_adam
        x, finite = run(objective, x, unflatten, watch, max_iter, learning_rate, rng)
        result.params = unflatten(x if watch.best is None else watch.best)
        if not finite:
            result.converged = False
            result.message = (
                f"loss or gradient was not finite after {result.n_iter} steps: the "
                "last parameters before that are kept"
            )
    if unit_variance:
        result.scale = float(np.std(scorer(result.params, X))) or 1.0
    return result


class _Watch:
    """Keeps curves, the best epoch on validation problems, and prints."""

    def __init__(self, result, objective, unflatten, patience, verbose):
        self.result, self.objective, self.unflatten = result, objective, unflatten
        self.patience, self.verbose = patience, verbose
        self.validation = self.best = None

    def on(self, batch, labels, coherent):
        """Choose the best epoch on these problems."""
        X = self.result.standardizer(batch.features)
        plan = self.objective.relaxation.plan(batch, labels, coherent)
        self.validation = replace(self.objective, X=X, plan=plan)

    def __call__(self, step, x, value):
        """Whether to stop."""
        params, curve = self.unflatten(x), self.result.validation_curve
        self.result.loss_curve.append(value)
        if self.verbose:
            retention = self.objective.retention(params)
            print(f"step {step + 1}: loss {value:.4f}, retention {retention:.3f}")
        if self.validation is None:
            return False
        curve.append(self.validation.retention(params))
        best = int(np.argmax(np.nan_to_num(curve, nan=-np.inf)))
        if best == len(curve) - 1:
            self.best = x
        return len(curve) - 1 - best >= self.patience


def _run_lbfgs(objective, x, unflatten, watch, max_iter, learning_rate, rng):
    both = value_and_grad(lambda flat: objective(unflatten(flat)))
    return lbfgs(lambda flat, _: both(flat), x, max_iter, watch)


def _run_adam(objective, x, unflatten, watch, max_iter, learning_rate, rng):
    both = value_and_grad(lambda flat, *halves: objective(unflatten(flat), *halves))
    n = objective.plan.n_problems

    def fun(flat, step):
        order = rng.permutation(n)
        halves = (order[: n // 2], order[n // 2 :]) if n > 1 else (order, order)
        return both(flat, *halves)

    return adam(fun, x, max_iter, watch, learning_rate)


def _start(scorer, start, X, target, rng):
    """Flat parameters and the way back to the scorer's own."""
    if not isinstance(start, str):
        return flatten(start)
    x, unflatten = flatten(scorer.init(X.shape[1], rng))
    if start == "coherent":
        x = logistic_start(scorer, X, target, x, unflatten)
    return x, unflatten


def _nothing_to_learn(labels, scores):
    if labels.all():
        return "no training claim is false: the scorer stays as it started"
    if not labels.any():
        return "no training claim is true: the scorer stays as it started"
    if np.ptp(scores) == 0:
        return (
            "all training claims have the same score at the start (constant features?): "
            "there is no direction to learn in"
        )
    return ""


def check_options(optimizer, loss, start, shrinkage, max_iter, learning_rate, patience):
    """ValueError unless `train` knows these arguments."""
    choices = [("optimizer", optimizer, ("lbfgs", "adam")), ("loss", loss, LOSSES)]
    if isinstance(start, str):
        choices.append(("start", start, ("coherent", "random")))
    for name, value, allowed in choices:
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}: one of {allowed}")
    positive = {"learning_rate": learning_rate, "patience": patience}
    if max_iter is not None:
        positive["max_iter"] = max_iter
    for name, value in positive.items():
        if not (isinstance(value, Real) and 0 < value < np.inf):
            raise ValueError(f"{name} is {value!r}: a number above 0 is needed")
    if not (isinstance(shrinkage, Real) and 0 <= shrinkage < np.inf):
        raise ValueError(
            f"shrinkage is {shrinkage!r}: a number of at least 0 is needed"
        )
