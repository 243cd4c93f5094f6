"""A differentiable model as a scorer, trained through soft calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._checks import warn
from .._parameters import HasMethods
from ._form import LinearForm
from ._linear import LinearScorer
from ._protocol import Scorer, Task, need_features

if TYPE_CHECKING:
    from ..graphs import GraphBatch


class ConformalScorer(Scorer):
    """A differentiable model, trained for what calibration does to its scores.

    Parameters
    ----------
    model : differentiable model or None, default=None
        Such as `LinearScorer` (None) or `MLPScorer`.

    Attributes
    ----------
    model_ : differentiable model
        A copy, so that later changes of ``model`` change nothing.
    params_ : object
        Its trained parameters, for standardised features.
    standardizer_ : Standardizer
        Of the training problems.
    scale_ : float
        Deviation of the scores over the training claims, by which they are divided.
    loss_curve_ : list of float
        Training objective per step.

    References
    ----------
    N. Hittesdorf, M. Salzetta, L. Cheng. Differentiable Conformal Training for LLM
    Reasoning Factuality. arXiv:2604.20098.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import ConformalScorer, MLPScorer
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(ConformalScorer(MLPScorer((4,))), random_state=0).fit(graphs, y)
    >>> cf.scorer_.loss_curve_[-1] < cf.scorer_.loss_curve_[0]
    True
    """

    _parameter_constraints = {"model": [None, HasMethods(["init", "__call__"])]}
    learns = uses_alpha = uses_relaxation = True

    def __init__(self, model: Any = None) -> None:
        self.model = model

    def fit(self, batch: GraphBatch, labels: NDArray, task: Task | None = None) -> Self:
        """Train the model for ``task.alpha``.

        Parameters
        ----------
        batch, labels, task
            As in `Scorer.fit`.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If there was nothing to learn, or training ended early.
        """
        self._adopt(*self._train(batch, labels, [task or Task()]))
        return self

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[Task]
    ) -> list[Self]:
        """One trained scorer per task, from one start.

        Parameters
        ----------
        batch, labels, tasks
            As in `Scorer.fit_levels`.

        Returns
        -------
        list of ConformalScorer
        """
        results = self._train(batch, labels, tasks)
        return [clone(self)._adopt(result) for result in results]

    def _train(self, batch, labels, tasks):
        from ..relaxation import PathRelaxation
        from ..training import SoftTraining
        from ..training.loop import train

        need_features(batch)
        return train(
            self._fresh_model(),
            tasks[0].relaxation or PathRelaxation(),
            tasks[0].training or SoftTraining(),
            batch,
            labels,
            [task.alpha for task in tasks],
            groups=tasks[0].groups,
            rng=tasks[0].rng,
            verbose=tasks[0].verbose,
        )

    def _fresh_model(self):
        if self.model is None:
            return LinearScorer()
        return clone(self.model, safe=False)

    def _adopt(self, result):
        self.model_ = self._fresh_model()
        self.params_, self.scale_ = result.params, result.scale
        self.standardizer_ = result.standardizer
        self.loss_curve_ = list(result.loss_curve)
        if result.message:
            warn(result.message, ConvergenceWarning)
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of a linear model, per unit of the features as passed."""
        if type(self.model_) is not LinearScorer:
            raise AttributeError("coef_: the model is not linear")
        return self.standardizer_.raw_weights(self.params_) / self.scale_

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """The confidence as a weighted sum, where the model is linear.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        LinearForm or None
        """
        if type(self.model_) is not LinearScorer:
            return None
        weights, s = self.coef_, self.standardizer_
        reach = s.clip * s.scale
        return LinearForm(
            weights, -float(weights @ s.mean), s.mean - reach, s.mean + reach
        )

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        X = self.standardizer_(batch.features)
        return np.asarray(self.model_(self.params_, X)) / self.scale_
