"""Interface of a fitted filter for other modules."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..graphs import Labels, Problems
from ..graphs.problems import Groups
from ..guarantees import Calibration


class Filter(Protocol):
    """Methods and attributes of a fitted filter that other modules may use.

    To use the scorer, call `transform_features`, `confidence` and `error_probability`. Access
    ``scorer_`` only for attributes that some scorers do not have.
    """

    scorer_: Any
    provenance_: dict[str, Any]
    calibration_: Calibration
    n_calibration_: int
    nonconformity_scores_: NDArray[np.float64]
    whole_answer_scores_: NDArray[np.float64]
    unused_indices_: Any

    @property
    def alpha(self) -> float: ...
    @property
    def guarantee(self) -> Any: ...
    @property
    def ties(self) -> str: ...
    def transform_features(self, X: Problems) -> Any: ...
    def confidence(self, X: Problems) -> NDArray[Any]: ...
    def path_risk(self, X: Problems) -> NDArray[Any]: ...
    def predict(self, X: Problems, alpha: Any = None) -> NDArray[Any]: ...
    def predict_alpha(self, X: Problems) -> NDArray[Any]: ...
    def filter(
        self,
        X: Problems,
        alpha: float | None = None,
        *,
        output: Literal["graphs", "text"] = "graphs",
    ) -> list[Any]: ...
    def error_probability(
        self, X: Problems, masks: Any = None, *, alpha: float | None = None
    ) -> NDArray[np.float64]: ...
    def threshold(self, alpha: float | None = None) -> float: ...
    def describe(self, alpha: float | None = None) -> str: ...
    def calibration_part(
        self, X: Problems, y: Labels, groups: Groups = None
    ) -> Any: ...
