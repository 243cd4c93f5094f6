"""A calibrated threshold alone, as JSON that any program can read."""

import json
import math
import os
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_alpha, check_choice
from .._files import write_text
from .._version import __version__

FORMAT = "skdcf threshold 1"


@dataclass(frozen=True)
class CalibratedThreshold:
    """A threshold, which is all that filtering needs if the path risks are known.

    Parameters
    ----------
    threshold : float
        Claims with a smaller path risk are kept; -inf keeps nothing, +inf everything.
    alpha : float
        Share of problems, in (0, 1), that may keep a false claim.
    n_calibration : int
        Number of problems that it was calibrated on.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        With "include", a claim whose path risk equals the threshold is kept, too.
        "jitter" is already in the path risks of the filter.
    edges : str, default="given"
        What path risks follow: the edges of the problems, "none" (they are risks), or the
        rule of that name.

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
        """Raise ValueError unless all fields make sense."""
        check_alpha(self.alpha)
        check_choice("ties", self.ties, ("exclude", "include", "jitter"))
        if not isinstance(self.edges, str):
            raise ValueError(f"edges is {self.edges!r}, but must be a text")
        value = self.threshold
        n = self.n_calibration
        if not isinstance(value, Real) or isinstance(value, bool) or math.isnan(value):
            raise ValueError(f"threshold is {value!r}, but must be a number")
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise ValueError(f"n_calibration is {n!r}, but must be a whole number")

    def keep(self, path_risk: ArrayLike) -> NDArray[np.bool_]:
        """Decide which claims are kept.

        Parameters
        ----------
        path_risk : array-like of shape (n_claims,)
            From ``path_risk`` of the filter, or computed as it does.

        Returns
        -------
        ndarray of bool, shape (n_claims,)
            Whether each claim is kept.

        Raises
        ------
        ValueError
            If a path risk is NaN.
        """
        risk = np.asarray(path_risk, dtype=np.float64)
        if np.isnan(risk).any():
            row = int(np.isnan(risk).argmax())
            raise ValueError(f"the path risk of claim {row} is NaN")
        if self.ties == "include" and math.isfinite(self.threshold):
            return risk <= self.threshold
        return risk < self.threshold


def save_threshold(
    filter: Any, path: str | os.PathLike[str], alpha: float | None = None
) -> Path:
    """Write the threshold of a fitted filter as JSON, and nothing else of it.

    For a program that computes the path risks by itself: it keeps the claims with a
    smaller one. The file appears when it is complete.

    Parameters
    ----------
    filter : fitted filter
        The filter.
    path : path-like
        Where the file is.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    pathlib.Path
        Of the file.

    Raises
    ------
    ValueError
        If the filter has more than one threshold, one per group, say.

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
    value = _of_filter(filter, alpha)
    record = asdict(value)
    if math.isinf(value.threshold):  # since JSON has no number for infinity
        record["threshold"] = str(value.threshold)
    text = json.dumps({"format": FORMAT, "skdcf": __version__, **record}, indent=1)
    return write_text(path, [text])


def load_threshold(path: str | os.PathLike[str]) -> CalibratedThreshold:
    """Read a threshold that `save_threshold` wrote.

    Parameters
    ----------
    path : path-like
        Where the file is.

    Returns
    -------
    CalibratedThreshold
        The threshold that was saved.

    Raises
    ------
    ValueError
        With the reason, if the file is damaged or of a newer format.
    OSError
        If the file cannot be read.
    """
    try:
        record = json.loads(Path(path).read_bytes())
        return _of_record(record)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{path} cannot be loaded: {error}") from error


def _of_filter(filter, alpha):
    alpha = filter.calibration_.guarantee.level(alpha, filter.alpha)
    threshold = filter.threshold(alpha)
    if np.ndim(threshold):
        raise ValueError(
            f"{type(filter).__name__} has {np.size(threshold)} thresholds; one alone would "
            "not say what it keeps: use skdcf.save"
        )
    n = filter.n_calibration_
    edges = filter.edges
    return CalibratedThreshold(
        threshold=float(threshold),
        alpha=alpha,
        n_calibration=int(n),
        ties=filter.ties,
        edges=getattr(edges, "__qualname__", edges),
    )


def _of_record(record):
    if not isinstance(record, dict) or "format" not in record:
        raise ValueError("it was not written by save_threshold")
    if record.pop("format") != FORMAT:
        raise ValueError(
            f"its format is none that skdcf {__version__} reads, which is {FORMAT!r}; it "
            f"was written by skdcf {record.get('skdcf')}"
        )
    record.pop("skdcf", None)
    value = record.get("threshold")
    if type(value) is int or value in ("inf", "-inf"):
        record["threshold"] = float(value)
    return CalibratedThreshold(**record)
