"""The base class of relaxations: scores, threshold, retention and loss, in this order."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

from .._parameters import Settings
from ..ops.segments import take

if TYPE_CHECKING:
    from ..graphs import GraphBatch


class Relaxation(Settings, metaclass=ABCMeta):
    """Soft calibration and prediction; all methods are differentiable by autograd.

    A plan, made once by `plan`, holds what follows from structure and labels alone. It
    has at least ``n_problems``, ``problem_of`` and ``labels``.
    """

    @abstractmethod
    def plan(self, batch: GraphBatch, labels: NDArray) -> Any:
        """Compute once what follows from structure and labels alone.

        Parameters
        ----------
        batch : GraphBatch
        labels : ndarray of shape (n_claims,)
            1 true, 0 false; -1 unknown, which is neither.
        """

    @abstractmethod
    def soft_threshold(self, scores: NDArray, alpha: float) -> float:
        """Compute the soft conformal threshold.

        Parameters
        ----------
        scores : ndarray of shape (n_problems,)
            From `soft_scores`.
        alpha : float

        Returns
        -------
        float
        """

    @abstractmethod
    def state(self, risk: NDArray, plan: Any) -> Any:
        """Compute what `scores` and `kept` both need.

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
        plan : object
            From `plan`.

        Returns
        -------
        object
        """

    @abstractmethod
    def scores(self, state: Any, plan: Any) -> NDArray:
        """Compute the soft nonconformity scores.

        Parameters
        ----------
        state : object
            From `state`.
        plan : object

        Returns
        -------
        ndarray of shape (n_problems,)
        """

    @abstractmethod
    def kept(self, state: Any, threshold: float, plan: Any) -> NDArray:
        """Compute how much of each claim is kept, in [0, 1].

        Parameters
        ----------
        state : object
            From `state`.
        threshold : float
        plan : object

        Returns
        -------
        ndarray of shape (n_claims,)
        """

    def value_and_grad(self, plan: Any, alpha: float) -> Callable | None:
        """Offer `loss` with a gradient that is written by hand; optional, to save time.

        Training asks for it once per level, and follows `loss` by autograd where there
        is none: here, and in a class that inherits it but overrides a part of what it
        stands for.

        Parameters
        ----------
        plan : object
            From `plan`.
        alpha : float

        Returns
        -------
        callable or None
            ``step(risk, calibration=None, prediction=None)`` returns the loss and its
            gradient, shape (n_claims,). It may use its memory again and again, so that
            one is for one run and thread.
        """
        return None

    def soft_scores(self, risk: NDArray, plan: Any) -> NDArray:
        """Compute the soft nonconformity scores.

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
        plan : object
            From `plan`.

        Returns
        -------
        ndarray of shape (n_problems,)
        """
        return self.scores(self.state(risk, plan), plan)

    def soft_retention(self, risk: NDArray, threshold: float, plan: Any) -> NDArray:
        """Compute how much of each claim is kept, in [0, 1].

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
        threshold : float
        plan : object
            From `plan`.

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return self.kept(self.state(risk, plan), threshold, plan)

    def retention(
        self,
        risk: NDArray,
        plan: Any,
        alpha: float,
        calibration: NDArray | None = None,
        prediction: NDArray | None = None,
    ) -> float:
        """Compute the soft number of true claims kept per problem.

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
        plan : object
            From `plan`.
        alpha : float
        calibration, prediction : ndarray of int, optional
            The problems that set the threshold, and those that the claims are kept of.
            None is all of them.

        Returns
        -------
        float
        """
        state = self.state(risk, plan)
        scores = self.scores(state, plan)
        if calibration is not None:
            scores = take(scores, calibration)
        kept = self.kept(state, self.soft_threshold(scores, alpha), plan)
        weight, count = plan.labels, plan.n_problems
        if prediction is not None:
            chosen = np.bincount(prediction, minlength=count)
            weight, count = weight * chosen[plan.problem_of], len(prediction)
        return anp.dot(kept, weight) / count

    def loss(
        self,
        risk: NDArray,
        plan: Any,
        alpha: float,
        calibration: NDArray | None = None,
        prediction: NDArray | None = None,
    ) -> float:
        """Compute minus the `retention`: the paper's training objective (its section 3.5).

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
        plan : object
            From `plan`.
        alpha : float
        calibration, prediction : ndarray of int, optional
            As in `retention`.

        Returns
        -------
        float
        """
        return -self.retention(risk, plan, alpha, calibration, prediction)
