"""Save and load fitted filters with skops, or only their thresholds as JSON.

`skdcf.save`, `skdcf.load`, `skdcf.save_threshold` and `skdcf.load_threshold` are the functions of
this module.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from io import BytesIO
from itertools import filterfalse
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._files import write_bytes, write_text
from ._parameters import versions, warn_of_versions
from ._version import __version__

FilePath: TypeAlias = str | os.PathLike[str]

# Increase this number whenever a class that files contain is moved, renamed or given other
# attributes.
FORMAT = 13

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


def save(filter: Any, path: FilePath) -> Path:
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
    TypeError
        If ``filter`` is not an estimator.

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

    check_is_fitted(filter)
    try:
        content = io.dumps(filter)
        # Load the file immediately to detect objects that cannot be restored.
        io.loads(content, trusted=io.get_untrusted_types(data=content))
    except Exception as error:
        raise ValueError(
            f"{type(filter).__name__} cannot be saved ({error}). All classes and functions "
            "must be importable by name, so define them in a module instead of using a "
            "lambda. Torch objects are not supported. For a search, save best_estimator_"
        ) from error
    about = {"format": FORMAT, "skdcf": __version__, "versions": versions()}
    buffer = BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("skdcf.json", json.dumps(about))
    return write_bytes(path, buffer.getvalue())


def load(path: FilePath, *, trusted: Iterable[str] = ()) -> Any:
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
        If the file is damaged, has another format, contains an untrusted name, or requires a
        package that is not installed.
    OSError
        If the file cannot be read.
    """
    from skops import io  # Importing skops loads all modules of scikit-learn.

    content = Path(path).read_bytes()
    try:
        stored_versions, names = _read_description(content)
        untrusted = sorted(filterfalse(_is_known, names.difference(trusted)))
        if untrusted:
            raise ValueError(
                f"the file names {', '.join(untrusted)}, which skdcf does not trust. If you "
                f"trust these names, load the file in Python with trusted={untrusted}"
            )
        loaded = io.loads(content, trusted=sorted(names))
    except Exception as error:
        raise ValueError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    warn_of_versions(type(loaded).__name__, stored_versions)
    return loaded


def _read_description(content):
    """Return the versions that wrote a file, and the names of other classes and functions in it."""
    from skops import io

    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if sum(file.file_size for file in archive.infolist()) > len(content):
                raise ValueError("its members overlap or are compressed")
            about = json.loads(archive.read("skdcf.json"))
            schema = json.dumps(json.loads(archive.read("schema.json")))
        if not isinstance(about, dict):
            raise KeyError("format")
        if about["format"] != FORMAT:
            raise ValueError(
                f"the format must be {FORMAT}, got {about['format']}, written by skdcf "
                f"{about['skdcf']}. Load the file with that version, or fit the filter again"
            )
        names = {*io.get_untrusted_types(data=content)}
        # A functools.partial object can claim the name of any trusted function.
        if '"PartialNode"' in schema:
            names.add("functools.partial")
        return about["versions"], names
    except (KeyError, zipfile.BadZipFile) as error:
        message = "the file is damaged or was not written by skdcf.save"
        raise ValueError(message) from error


def _is_known(name):
    """Return whether a dotted name is a harmless type that a file may contain.

    Comparing prefixes would be unsafe, because a module also contains its imports.
    """
    module, _, last = name.rpartition(".")
    # The functions of edges are included.
    homes = (
        "skdcf.edges",
        "skdcf.evaluation",
        "skdcf.features",
        "skdcf.full",
        "skdcf.graphs",
        "skdcf.guarantees",
        "skdcf.guards",
        "skdcf.monitoring",
        "skdcf.presets",
        "skdcf.relaxation",
        "skdcf.scorers",
        "skdcf.training",
    )
    if not module.startswith(homes):
        return name in TRUSTED
    try:
        found = getattr(import_module(module), last, None)
    except ModuleNotFoundError:
        return False
    is_class = isinstance(found, type) or (module == "skdcf.edges" and callable(found))
    return is_class and found.__module__ == module


def save_threshold(
    filter: Any, path: FilePath, alphas: Sequence[float] | None = None
) -> Path:
    """Save the thresholds of a fitted filter as JSON.

    Any program can then keep the claims whose score is **larger** than the threshold of a level.
    The score is the negative path risk, and for answers with one claim the score of the claim. Each
    threshold t of the filter is raised by 1e-5 (1 + abs(t)), so rounding the scores cannot cause
    more claims to be kept. The file is written atomically.

    Parameters
    ----------
    filter : fitted filter
        The filter whose thresholds are saved.
    path : path-like
        File path.
    alphas : sequence of float in (0, 1), optional
        The levels. If None, the filter's alpha is used.

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
    >>> import json, tempfile
    >>> from skdcf import HardCF, load_threshold, save_threshold
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_threshold(cf, f"{folder}/threshold.json", [0.05, 0.1])
    ...     print(json.loads(path.read_text())["n_calibration"])
    ...     load_threshold(path)[0.1] > -cf.threshold_
    199
    True
    """
    guarantee = filter.calibration_.guarantee
    if guarantee.show != 1:
        raise ValueError(
            f"guarantee.show must be 1 to save only the threshold, got {guarantee.show!r}. "
            "The threshold alone does not determine which answers pass. Use skdcf.save "
            "to save the whole filter"
        )
    thresholds = {}
    for alpha in [filter.alpha] if alphas is None else alphas:
        # JSON has no infinity, so infinite thresholds become very large numbers.
        risk = np.clip(filter.threshold(alpha), -1e308, 1e308)
        smallest = np.nextafter(1e-5 * (1 + abs(risk)) - risk, np.inf)
        thresholds[str(float(alpha))] = smallest
    record = {
        "format": "skdcf thresholds 2",
        "thresholds": thresholds,
        "n_calibration": filter.n_calibration_,
        "edges": getattr(filter.edges, "__qualname__", filter.edges),
    }
    return write_text(path, [json.dumps(record, indent=1)])


def load_threshold(path: FilePath) -> dict[float, float]:
    """Load the thresholds from a file written by `save_threshold`.

    Parameters
    ----------
    path : path-like
        File path.

    Returns
    -------
    thresholds : dict of float to float
        The threshold of each level. A claim is kept if the negative of its path risk is larger
        than the threshold.

    Raises
    ------
    ValueError
        If the file was not written by `save_threshold`.
    """
    record = json.loads(Path(path).read_bytes())
    if not isinstance(record, dict) or record.get("format") != "skdcf thresholds 2":
        raise ValueError(f"{path} must be a file written by save_threshold")
    return {float(alpha): value for alpha, value in record["thresholds"].items()}
