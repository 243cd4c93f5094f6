"""A soft mixture of two scorers, weighed by what they keep on unseen problems.

The members are the linear scorer, trained through soft calibration for its alpha, and
the Neyman-Pearson scorer, which knows no alpha. Out-of-fold confidences say how many
true claims each one keeps alone; the weights are a softmax of that.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..graphs import GraphBatch
from ..ops.conformal import check_alpha, leave_one_out_alpha
from ..ops.hard import coherent_labels, nonconformity_scores, path_risk
from ..relaxation import PathRelaxation
from ..scorers import LinearScorer
from ..scorers._auto import LinearScore, MixtureScorer, Selection
from ..scorers._neyman_pearson import NeymanPearsonScorer
from ._standardize import Standardizer
from ._start import logistic_start
from ._train import train

MEMBERS = ("linear", "neyman-pearson")
TEMPERATURE = 0.05  # of the softmax, as a share of the best retention
FEW = 60  # problems, up to which the weights stay closer together
N_LEVELS = 9


def fit_auto(
    batch,
    labels,
    alphas,
    groups=None,
    rng=None,
    *,
    relaxation=None,
    neyman_pearson=None,
    coherent=True,
    n_folds=5,
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
    neyman_pearson : NeymanPearsonScorer, optional
        Fitted copies of it are members; None is one with its defaults.
    coherent : bool
        False takes claims as independent.
    n_folds : int
        At most; not more than there are groups.

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
    >>> scorers = fit_auto(graphs, pack_labels(y, graphs), [0.05, 0.2], rng=rng)
    >>> [scorer.selection_.alpha for scorer in scorers]
    [0.05, 0.2]
    >>> scorers[0].selection_.members
    ('linear', 'neyman-pearson')
    """
    alphas = [check_alpha(a) for a in alphas]
    if batch.features is None:
        raise ValueError(
            "the scorers learn from features, but the problems have none yet: add some "
            "with skdcf.features"
        )
    relaxation = PathRelaxation() if relaxation is None else relaxation
    if not coherent:
        batch = GraphBatch.from_arrays(batch.features, batch.offsets)
    rng = np.random.RandomState() if rng is None else rng
    prototype = NeymanPearsonScorer() if neyman_pearson is None else neyman_pearson

    whole = _Part(batch, labels, prototype)
    fold_of = _folds(len(batch), groups, n_folds, rng)
    fits = [
        (_Part(*_take(batch, labels, fold_of != k), prototype), fold_of == k)
        for k in range(fold_of.max() + 1)
    ]
"""
"""
