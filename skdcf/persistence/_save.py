"""Fitted filters in files, through skops: no pickle, and no code of strangers."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._checks import warn
from .._files import replaced
from ..exceptions import SettingWarning
from . import _archive
from ._names import check_names, close_openings, with_public_names

_SCHEMA = "schema.json"


def save(filter: BaseEstimator, path: str | os.PathLike) -> Path:
    """Write a fitted filter to a file, from which `load` makes it again.

    The file holds public classes, numbers and texts, and no code. It appears when it is
    complete: an interruption leaves what was there before.

    Parameters
    ----------
    filter : fitted filter
        Or a Pipeline that ends in one, or a monitor of `skdcf.monitoring`.
    path : path-like
        Usually with the ending ``.skops``.

    Returns
    -------
    pathlib.Path
        Of the file.

    Raises
    ------
    ValueError
        If the filter holds something that cannot be made again from a file, such as a
        lambda.

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
    from skops import io

    if not isinstance(filter, BaseEstimator):
        raise ValueError(f"{filter!r} is no filter: pass a fitted filter of skdcf")
    if hasattr(filter, "fit"):
        check_is_fitted(filter)
    try:
        parts = _archive.unzipped(io.dumps(filter))
        schema = with_public_names(json.loads(parts[_SCHEMA]))
        parts[_SCHEMA] = json.dumps(schema).encode()
        content = _archive.build(parts, f"{schema['__module__']}.{schema['__class__']}")
        # What was just made here may be made again here; what cannot be is found now.
        io.loads(content, trusted=io.get_untrusted_types(data=content))
    except Exception as error:
        raise ValueError(
            f"{type(filter).__name__} cannot be saved: {error}. A filter holds classes "
            "and functions by the name under which they are imported, not their code: "
            "define them in a module, and use no lambda"
        ) from error
    with replaced(path, "wb") as file:
        file.write(content)
    return Path(path)


def load(path: str | os.PathLike, *, trusted: Iterable[str] = ()) -> Any:
    """Make a filter again from a file that `save` wrote.

    Nothing in the file is executed. It may name classes of scikit-learn and numpy, and
    public classes of this package that open neither connections nor files; any other is
    refused. Checksums show damage and careless changes. They are no signature: who can
    write the file can make it a filter that keeps everything, so keep it where only you
    can write.

    Parameters
    ----------
    path : path-like
    trusted : iterable of str, default=()
        Dotted names of other classes and functions that the file may name, such as a
        scorer of your own: they are imported, and their methods run. Clients of language
        models are trusted by name, too, and come without addresses, names of keys and
        caches, whatever the file says: set these again.

    Returns
    -------
    fitted filter
        It predicts the same as the saved one, to the bit.

    Raises
    ------
    ValueError
        With the reason, if the file is damaged, was changed, has a newer format, or
        names something that is not trusted. What the file would contact is listed.
    OSError
        If the file cannot be read.
    """
    from skops import io

    content = Path(path).read_bytes()
    trusted = {trusted} if isinstance(trusted, str) else set(trusted)
    try:
        about, parts = _archive.read(content)
        schema = json.loads(parts[_SCHEMA])
        unknown = io.get_untrusted_types(data=_archive.zipped(parts))
        check_names(schema, unknown, trusted)
        closed = close_openings(schema)
        parts[_SCHEMA] = json.dumps(schema).encode()
        loaded = io.loads(_archive.zipped(parts), trusted=unknown)
        _check_loaded(loaded, about)
    except ImportError as error:
        raise ImportError(f"{path} needs what is not installed: {error}") from error
    except Exception as error:
        raise ValueError(f"{path} cannot be loaded: {_reason(error)}") from error
    _archive.warn_of_versions(about)
    if closed:
        said = f"{path} would open {', '.join(closed)}: taken out, so set it again"
        warn(said, SettingWarning)
    return loaded


def _check_loaded(loaded, about):
    module, _, name = about["object"].rpartition(".")
    if not isinstance(loaded, BaseEstimator) or type(loaded).__name__ != name:
        raise ValueError(f"it says that it holds a {module}.{name}, and does not")
    scores = getattr(loaded, "nonconformity_scores_", None)
    if scores is None:
        return
    good = isinstance(scores, np.ndarray) and scores.dtype == np.float64
    if not good or scores.ndim != 1 or np.isnan(scores).any():
        raise ValueError("its nonconformity scores are damaged")
    if (scores[1:] < scores[:-1]).any() or len(scores) != loaded.n_calibration_:
        raise ValueError("its nonconformity scores are not those of a calibration")


def _reason(error):
    if isinstance(error, ValueError) and str(error):
        return error
    return f"it is damaged ({type(error).__name__}: {error})"
