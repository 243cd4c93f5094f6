"""Save and load fitted filters with skops, or only their thresholds as JSON.

The functions `skdcf.save` and `skdcf.load` are the functions of this module.
"""

import json
import math
import os
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._checks import check_alpha, check_choice, versions, warn_of_versions
from ._files import replaced, write_text
from ._version import __version__

__all__ = ["CalibratedThreshold", "load", "load_threshold", "save", "save_threshold"]

# Raise this number whenever a class that files contain is moved, renamed or given other attributes.
FORMAT = 4
THRESHOLD_FORMAT = "skdcf threshold 1"

#: Modules and packages whose classes a file may contain. The functions of edges are included.
HOMES = tuple(
    f"skdcf.{name}"
    for name in (
        "choosing",
        "edges",
        "evaluation",
        "features",
        "filters",
        "full",
        "graphs",
        "guarantees",
        "guards",
        "identity",
        "monitoring",
        "presets",
        "relaxation",
        "scorers",
        "training",
    )
)
#: Types of other packages that a file may contain, besides those that skops trusts.
TRUSTED = {
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.GroupShuffleSplit",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRFClassifier",
}


def save(filter: BaseEstimator, path: str | os.PathLike[str]) -> Path:
    """Save a fitted filter to a file.

    The file contains names of classes, numbers and texts, but no code. With
    ``calibration_size="all"``, it contains the columns and labels of all labelled answers, but not
    their texts. The file is written
    atomically, so an interruption cannot damage an existing file.

    Parameters
    ----------
    filter : fitted filter
        A filter, a Pipeline that ends in a filter, or a monitor of `skdcf.monitoring`.
    path : path-like
        Path of the file, usually with the suffix ``.skops``.

    Returns
    -------
    path : pathlib.Path
        The file that was written.

    Raises
    ------
    ValueError
        If the filter contains an object that cannot be saved, such as a lambda.

    Examples
    --------
    >>> import tempfile
    >>> import skdcf
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = skdcf.HardCF("frequency-score").fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = skdcf.load(skdcf.save(cf, f"{folder}/filter.skops"))
    >>> back.threshold_ == cf.threshold_
    True
    """
    from skops import io  # Importing skops loads all modules of scikit-learn.

    if not isinstance(filter, BaseEstimator):
        raise ValueError(f"filter must be a fitted skdcf filter, got {filter!r}")
    if hasattr(filter, "fit"):
        check_is_fitted(filter)
    buffer = BytesIO()
    try:
        io.dump(filter, buffer)
        content = buffer.getvalue()
        # Load the file immediately to detect objects that cannot be restored.
        io.loads(content, trusted=io.get_untrusted_types(data=content))
    except Exception as error:
        raise ValueError(
            f"{type(filter).__name__} cannot be saved ({error}). All classes and functions "
            "must be importable by name, so define them in a module instead of using a "
            "lambda. Torch objects are not supported. Of a search, save its best_estimator_"
        ) from error
    about = {"format": FORMAT, "skdcf": __version__, "versions": versions()}
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("skdcf.json", json.dumps(about))
    with replaced(path, "wb") as file:
        file.write(buffer.getvalue())
    return Path(path)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Load a filter from a file written by `save`.

    No code in the file is executed. The file may refer to classes of scikit-learn and NumPy, and
    to estimators of this package outside `skdcf.apps`. A reference to any other class or function
    raises an error. Checksums reveal damage, but they are not a signature. Anyone with write
    access can replace the file with a filter that keeps all claims, so store the file in a place
    to which only you have write access.

    Parameters
    ----------
    path : path-like
        File path.
    trusted : iterable of str, default=()
        Dotted names of other classes and functions that the file may refer to, such as your own
        scorer. Trusted classes are imported, and their methods are executed with the settings in
        the file. A language model client sends its requests to the address in the file.

    Returns
    -------
    filter : fitted filter
        A filter whose predictions are bitwise identical to those of the saved filter.

    Raises
    ------
    ValueError
        If the file is damaged, has another format, or contains an untrusted name.
    OSError
        If the file cannot be read.
    """
    from skops import io  # Importing skops loads all modules of scikit-learn.

    content = Path(path).read_bytes()
    trusted = {trusted} if isinstance(trusted, str) else set(trusted)
    try:
        about, names = _inspect(content)
        untrusted = sorted(name for name in names - trusted if not _is_known(name))
        if untrusted:
            raise ValueError(
                f"the file names {', '.join(untrusted)}, which skdcf does not trust. If you "
                f"trust these names, load the file in Python with trusted={untrusted}"
            )
        loaded = io.loads(content, trusted=sorted(names))
    except ImportError as error:
        raise ImportError(
            f"{path} requires a package that is not installed: {error}"
        ) from error
    except Exception as error:
        damage = "" if type(error) is ValueError else "it is damaged: "
        raise ValueError(f"{path} cannot be loaded: {damage}{error}") from error
    warn_of_versions(type(loaded).__name__, about["versions"])
    return loaded


def _inspect(content):
    """Return the header of a file and the dotted names in it that skops does not trust.

    The size and the format of the file are checked first.
    """
    from skops import io

    with zipfile.ZipFile(BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.infolist()) > len(content):
            raise ValueError("its members overlap or are compressed")
        if "skdcf.json" not in archive.namelist():
            raise ValueError("the file was not written by skdcf.save")
        about = json.loads(archive.read("skdcf.json"))
        schema = json.dumps(json.loads(archive.read("schema.json")))
    if about["format"] != FORMAT:
        raise ValueError(
            f"the format must be {FORMAT}, got {about['format']}. The file was written by "
            f"skdcf {about['skdcf']}. Load it with that version, or fit the filter again"
        )
    names = set(io.get_untrusted_types(data=content))
    # A partial function may name itself as anything that is trusted.
    return about, names | (
        {"functools.partial"} if '"PartialNode"' in schema else set()
    )


def _is_known(name):
    """Return whether a dotted name is a harmless type that a file may contain.

    Comparing prefixes would be unsafe, because a module also contains its imports.
    """
    module, _, last = name.rpartition(".")
    if name in TRUSTED or not module.startswith(HOMES):
        return name in TRUSTED
    try:
        found = getattr(import_module(module), last, None)
    except ModuleNotFoundError:
        return False
    is_class = isinstance(found, type) or (module == "skdcf.edges" and callable(found))
    return is_class and found.__module__ == module


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
        if math.isnan(self.threshold):
            raise ValueError(f"threshold must be a number, got {self.threshold!r}")

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
    text = json.dumps({"format": THRESHOLD_FORMAT} | record, indent=1)
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
        If the file is damaged or has another format. The error message states the reason.
    OSError
        If the file cannot be read.
    """
    content = Path(path).read_bytes()
    try:
        record = json.loads(content)
        if record.pop("format") != THRESHOLD_FORMAT:
            raise ValueError(f"the format must be {THRESHOLD_FORMAT!r}")
        record["threshold"] = float(record["threshold"])
        return CalibratedThreshold(**record)
    except Exception as error:
        raise ValueError(f"{path} cannot be loaded: {error!r}") from error
