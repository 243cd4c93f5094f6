"""A fitted filter as other rooms see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..graphs import Labels, Problems
from ..graphs.problems import Groups
from ..guarantees import Calibration


class Filter(Protocol):
    """All that other rooms ask of a fitted filter, such as `skdcf.HardCF`.

    Its scorer is asked through `transform_features`, `confidence` and `error_probability`,
    but for what only some scorers know.
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
    def check(self, X: Problems, y: Any = None) -> Any: ...
    def transform_features(self, X: Problems) -> Any: ...
    def confidence(self, X: Problems) -> NDArray[Any]: ...
    def path_risk(self, X: Problems) -> NDArray[Any]: ...
    def predict(self, X: Problems, alpha: float | None = None) -> NDArray[Any]: ...
    def predict_alpha(self, X: Problems) -> NDArray[Any]: ...
    def masks(
        self, X: Problems, alphas: Iterable[float | None]
    ) -> NDArray[np.bool_]: ...
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
    def first_claims(self, X: Problems, share: float = 0.0) -> NDArray[Any]: ...
    def threshold(self, alpha: float | None = None) -> float: ...
    def describe(self, alpha: float | None = None) -> str: ...
    def seen(
        self, X: Problems, groups: Groups = None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]: ...
    def calibration_part(
        self, X: Problems, y: Labels, groups: Groups = None
    ) -> Any: ...
    def calibration_scores(self, X: Problems, y: Labels) -> NDArray[np.float64]: ...
