"""A soft mixture of two scorers, weighed by what they keep on unseen problems.

The members are the linear scorer, trained through soft calibration for its alpha, and
the Neyman-Pearson scorer, which knows no alpha. Their out-of-fold confidences say how
many true claims each would keep alone; the weights are a softmax of these numbers, and
lean towards the second member, which is the better one unless they say otherwise.
"""

import numpy as np
from scipy.special import softmax

from .._checks import check_alpha
from ..ops.conformal import leave_one_out_alpha
from ..ops.hard import coherent_labels, nonconformity_scores, path_risk
from ..relaxation import PathRelaxation
from ..scorers import LinearScorer, NeymanPearsonScorer
from ..scorers._auto import MixtureScorer, Selection
from ..scorers._standardize import Standardizer
from ..scorers._trained import TrainedScorer
from ._start import logistic_start
from ._train import train

MEMBERS = ("linear", "neyman-pearson")
PRIOR = np.array([0.0, 2.0])  # log weights where both keep the same
TEMPERATURE = 0.05  # of the softmax, as a share of the best retention
FEW = 60  # problems; up to here the weights stay closer together
N_LEVELS = 9


def fit_auto(
    batch,
    labels,
    alphas,
    groups=None,
    rng=None,
    *,
    relaxation=None,
    coherent=True,
    n_folds=3,
):
    """One mixture per alpha; what does not depend on alpha is fitted once.

    Parameters
    ----------
    batch : GraphBatch
        Training problems.
    labels : ndarray of bool, shape (n_claims,)
        True where the claim is true.
    alphas : sequence of float in (0, 1)
    groups : array-like of shape (n_problems,), optional
        Problems of one group share a fold.
    rng : RandomState or Generator, optional
        Draws the folds.
    relaxation : PathRelaxation or GridRelaxation, optional
        For the linear member; None is ``PathRelaxation()``.
    coherent : bool
        False takes each claim for its own only ancestor.
    n_folds : int
        Of the cross-validation; no more than there are groups.

    Returns
    -------
    list of MixtureScorer, one per alpha

    Raises
    ------
    ValueError
        If an alpha is not in (0, 1) or there are no features.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.graphs import pack_labels
    >>> from skdcf.training.auto import fit_auto
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> rng = np.random.RandomState(0)
    >>> low, high = fit_auto(graphs, pack_labels(y, graphs), [0.05, 0.2], rng=rng)
    >>> low.selection_.alpha, low.selection_.members
    (0.05, ('linear', 'neyman-pearson'))
    >>> low.members["neyman-pearson"] is high.members["neyman-pearson"]
    True
    """
    alphas = [check_alpha(a) for a in alphas]
    if batch.features is None:
        raise ValueError(
            "the scorers learn from features, but the problems have none yet: add some "
            "with skdcf.features"
        )
    rng = np.random.RandomState() if rng is None else rng
    relaxation = PathRelaxation() if relaxation is None else relaxation
    whole = _Fits(batch, labels, relaxation, coherent)
    fold_of = _folds(len(batch), groups, n_folds, rng)
    numbers = range(fold_of.max() + 1 if fold_of.any() else 0)
    folds = [_Fold(whole, fold_of == k) for k in numbers]
    return [_mixture(alpha, whole, folds) for alpha in alphas]


class _Fits:
    """The members as fitted to some problems; what knows no alpha, once."""

    def __init__(self, batch, labels, relaxation, coherent):
        self.batch, self.labels = batch, labels
        self.relaxation, self.coherent = relaxation, coherent
        self.neyman_pearson = NeymanPearsonScorer(coherent=coherent).fit(batch, labels)
        self.start = logistic_start(
            LinearScorer(),
            Standardizer.fit(batch.features)(batch.features),
            coherent_labels(labels, batch) if coherent else labels,
            np.zeros(batch.n_features),
            lambda x: x,
        )

    def linear(self, alpha):
        """The linear member, trained for ``alpha``."""
        result = train(
            LinearScorer(),
            self.relaxation,
            self.batch,
            self.labels,
            alpha=alpha,
            start=self.start,
            coherent=self.coherent,
        )
        return TrainedScorer(
            LinearScorer(),
            result.params,
            result.standardizer,
            result.scale,
            tuple(result.loss_curve),
        )


class _Fold:
    """Problems held out, and the members as fitted to all others."""

    def __init__(self, whole, held):
        batch, labels = whole.batch, whole.labels
        self.rows = held[batch.problem_of]
        self.batch = batch[held]
        self.fits = _Fits(
            batch[~held], labels[~self.rows], whole.relaxation, whole.coherent
        )
        self.neyman_pearson = self.fits.neyman_pearson.confidence(self.batch)

    def confidences(self, alpha):
        """Of the problems held out, shape (2, n_claims)."""
        linear = self.fits.linear(alpha).confidence(self.batch)
        return np.array([linear, self.neyman_pearson])


def _mixture(alpha, whole, folds):
    batch = whole.batch
    members = (whole.linear(alpha), whole.neyman_pearson)
    confidences = np.array([member.confidence(batch) for member in members])
    retention = np.full(len(members), np.nan)
    if folds:
        for fold in folds:
            confidences[:, fold.rows] = fold.confidences(alpha)
        setting = batch, whole.labels, alpha, whole.coherent
        retention = np.array([_retention(c, *setting) for c in confidences])
    weights = _weights(retention, alpha, len(batch))
    deviation = confidences.std(axis=1)
    return MixtureScorer(
        dict(zip(MEMBERS, members, strict=True)),
        confidences.mean(axis=1),
        np.where(deviation > 0, deviation, 1.0),
        Selection(alpha, MEMBERS, weights, retention, len(folds)),
    )


def _retention(confidence, batch, labels, alpha, coherent):
    """True claims kept per problem, by leave-one-out, averaged over levels."""
    n = len(batch)
    risk = path_risk(-confidence, batch) if coherent else -confidence
    scores = nonconformity_scores(risk, labels, batch.offsets)
    kept_from = leave_one_out_alpha(scores, risk, batch.problem_of)[labels]
    bounds = max(0.6 * alpha, 1.5 / n), max(1.6 * alpha, 6.5 / n)
    levels = np.minimum(np.geomspace(*bounds, N_LEVELS), 1 - 0.5 / n)
    return np.searchsorted(np.sort(kept_from), levels, side="right").mean() / n


def _weights(retention, alpha, n):
    best = retention.max()
    if not best > 0:  # nothing kept, or no cross-validation
        return softmax(PRIOR)
    temperature = max(TEMPERATURE, 1 / (alpha * n)) if n <= FEW else TEMPERATURE
    return softmax(PRIOR + retention / (temperature * best))


def _folds(n, groups, n_folds, rng):
    """Number of each problem's fold; all 0 where there are too few groups."""
    groups = np.arange(n) if groups is None else np.asarray(groups)
    code = np.unique(groups, return_inverse=True)[1]
    n_groups = code.max() + 1
    return rng.permutation(n_groups)[code] % min(n_folds, n_groups)
