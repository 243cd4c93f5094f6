"""Save and load a calibrated threshold as JSON, for programs in any language."""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_alpha, check_choice, check_count, is_real
from .._files import write_text
from .._version import __version__

FORMAT = "skdcf threshold 1"


@dataclass(frozen=True)
class CalibratedThreshold:
    """A calibrated threshold for filtering claims with known path risks.

    Parameters
    ----------
    threshold : float
        Claims with a smaller path risk are kept. With a threshold of -inf, no claim is kept, and
        with +inf, all claims are kept.
    alpha : float
        Upper bound, in (0, 1), on the proportion of problems in which a false claim is kept.
    n_calibration : int
        Number of calibration problems.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        Treatment of ties. With "include", claims whose path risk equals the threshold are also
        kept. With "jitter", the filter's path risks already contain random tie-breakers.
    edges : str, default="given"
        Edges used to compute path risks, which are the edges of the problems ("given"), no edges
        ("none"), or those of the edge rule with the given name.

    Examples
    --------
    >>> from skdcf.persistence import CalibratedThreshold
    >>> CalibratedThreshold(-0.4, 0.1, 99).keep([-0.5, -0.4])
    array([ True, False])
    """

    threshold: float
    alpha: float
    n_calibration: int
    ties: str = "exclude"
    edges: str = "given"

    def __post_init__(self) -> None:
        """Raise ValueError if a field is invalid."""
        check_alpha(self.alpha)
        check_choice("ties", self.ties, ("exclude", "include", "jitter"))
        if not isinstance(self.edges, str):
            raise ValueError(f"edges must be a string, got {self.edges!r}")
        value = self.threshold
        if not is_real(value) or math.isnan(value):
            raise ValueError(f"threshold must be a number, got {value!r}")
        check_count("n_calibration", self.n_calibration, 0)

    def keep(self, path_risk: ArrayLike) -> NDArray[np.bool_]:
        """Return a mask of the claims that are kept.

        Parameters
        ----------
        path_risk : array-like of shape (n_claims,)
            Path risks, as computed by the filter's method ``path_risk``.

        Returns
        -------
        mask : ndarray of bool of shape (n_claims,)
            Whether each claim is kept.

        Raises
        ------
        ValueError
            If a path risk is NaN.
        """
        risk = np.asarray(path_risk, dtype=np.float64)
        if np.isnan(risk).any():
            row = int(np.isnan(risk).argmax())
            raise ValueError(f"the path risk of claim {row} must be a number, got NaN")
        if self.ties == "include" and math.isfinite(self.threshold):
            return risk <= self.threshold
        return risk < self.threshold


def save_threshold(
    filter: Any, path: str | os.PathLike[str], alpha: float | None = None
) -> Path:
    """Save the threshold of a fitted filter as JSON.

    Programs in other languages can compute the path risks and keep the claims whose path risk
    is below the threshold. The file is written atomically.

    Parameters
    ----------
    filter : fitted filter
        The filter whose threshold is saved.
    path : path-like
        File path.
    alpha : float in (0, 1), optional
        The level. If None, the filter's alpha is used.

    Returns
    -------
    path : pathlib.Path
        The file that was written.

    Raises
    ------
    ValueError
        If the filter has several thresholds, for example one per group, or if ``show`` of its
        guarantee is less than 1.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.persistence import load_threshold, save_threshold
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = load_threshold(save_threshold(cf, f"{folder}/threshold.json"))
    >>> back.threshold == cf.threshold_, back.alpha
    (True, 0.1)
    """
    guarantee = filter.calibration_.guarantee
    if guarantee.show != 1:
        raise ValueError(
            f"guarantee.show must be 1 to save only the threshold, got {guarantee.show!r}. "
            "The threshold alone does not determine which answers pass. Use skdcf.save "
            "to save the whole filter"
        )
    alpha = guarantee.level(alpha, filter.alpha)
    value = CalibratedThreshold(
        threshold=float(filter.threshold(alpha)),
        alpha=alpha,
        n_calibration=int(filter.n_calibration_),
        ties=filter.ties,
        edges=getattr(filter.edges, "__qualname__", filter.edges),
    )
    record = asdict(value)
    if math.isinf(value.threshold):  # JSON cannot represent infinity as a number.
        record["threshold"] = str(value.threshold)
    text = json.dumps({"format": FORMAT, "skdcf": __version__, **record}, indent=1)
    return write_text(path, [text])


def load_threshold(path: str | os.PathLike[str]) -> CalibratedThreshold:
    """Load a threshold written by `save_threshold`.

    Parameters
    ----------
    path : path-like
        File path.

    Returns
    -------
    threshold : CalibratedThreshold
        The saved threshold.

    Raises
    ------
    ValueError
        If the file is damaged or has a newer format. The error message states the reason.
    OSError
        If the file cannot be read.
    """
    try:
        record = json.loads(Path(path).read_bytes())
        return _of_record(record)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{path} cannot be loaded: {error}") from error


def _of_record(record):
    if not isinstance(record, dict) or "format" not in record:
        raise ValueError("the file was not written by save_threshold")
    if record.pop("format") != FORMAT:
        raise ValueError(
            f"the format must be {FORMAT!r}, because skdcf {__version__} supports no "
            f"other format. The file was written by skdcf {record.get('skdcf')}"
        )
    record.pop("skdcf", None)
    value = record.get("threshold")
    if type(value) is int or value in ("inf", "-inf"):
        record["threshold"] = float(value)
    return CalibratedThreshold(**record)
