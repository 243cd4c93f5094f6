"""Save and load fitted filters with skops, without pickle and without executing untrusted code."""

import hashlib
import inspect
import json
import os
import pkgutil
import platform
import zipfile
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._checks import warn, warn_of_versions
from .._files import replaced
from .._sklearn import KEPT_IN_FILES
from .._version import __version__
from ..exceptions import ParameterWarning

FORMAT = 1
_ABOUT = "skdcf.json"
_SCHEMA = "schema.json"


def save(filter: BaseEstimator, path: str | os.PathLike[str]) -> Path:
    """Save a fitted filter to a file.

    The file contains names of public classes, numbers and texts, but no code. The file is written
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
    try:
        parts = unzipped(io.dumps(filter))
        schema = with_public_names(json.loads(parts[_SCHEMA]))
        parts[_SCHEMA] = json.dumps(schema).encode()
        content = build(parts, f"{schema['__module__']}.{schema['__class__']}")
        # Load the file immediately to detect objects that cannot be restored.
        io.loads(content, trusted=io.get_untrusted_types(data=content))
    except RecursionError as error:
        raise ValueError(
            f"{type(filter).__name__} cannot be saved, because it contains an object that "
            "refers to itself. If the filter was found by a search, save its "
            "best_estimator_ instead"
        ) from error
    except Exception as error:
        if (name := _torch_object_in(filter)) is not None:
            raise ValueError(
                f"{type(filter).__name__} cannot be saved, because its scorer contains a "
                f"{name}, and torch objects are not supported. Write the filter with "
                "joblib.dump, and only load such files from sources that you trust. "
                "Alternatively, compute the scores of the torch model as a feature column, "
                "and save a filter that uses this column"
            ) from error
        raise ValueError(
            f"{type(filter).__name__} cannot be saved ({error}). All classes and "
            "functions must be importable by name. Define them in a module instead of "
            "using a lambda"
        ) from error
    with replaced(path, "wb") as file:
        file.write(content)
    return Path(path)


def _torch_object_in(filter):
    """Return the class name of a torch object in a filter's scorer, or None."""
    waiting = [vars(filter).get(name) for name in ("scorer", "scorer_")]
    seen = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, type):
            continue
        seen.add(id(value))
        kind = type(value)
        if kind.__module__.partition(".")[0] == "torch":
            return f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif hasattr(value, "__dict__"):
            waiting += vars(value).values()
    return None


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Load a filter from a file written by `save`.

    No code in the file is executed. The file may refer to classes of scikit-learn and NumPy, and
    to public classes of this package that do not open connections or files. A reference to any
    other class or function raises an error. Checksums reveal damage and accidental changes, but
    they are not a signature. Anyone with write access can replace the file with a filter that
    keeps all claims, so store the file in a place to which only you have write access.

    Parameters
    ----------
    path : path-like
        File path.
    trusted : iterable of str, default=()
        Dotted names of other classes and functions that the file may refer to, such as your own
        scorer. Trusted classes are imported, and their methods are executed. Language model
        clients must also be trusted by name. Language model clients are always loaded without
        addresses, environment variable names and caches, so these parameters must be set again.

    Returns
    -------
    filter : fitted filter
        A filter whose predictions are bitwise identical to those of the saved filter.

    Raises
    ------
    ValueError
        If the file is damaged, was changed, has a newer format, or contains an untrusted name.
        The error message states the reason and lists the addresses that the filter would contact.
    OSError
        If the file cannot be read.
    """
    from skops import io  # Importing skops loads all modules of scikit-learn.

    content = Path(path).read_bytes()
    trusted = {trusted} if isinstance(trusted, str) else set(trusted)
    try:
        header, parts = read(content)
        schema = json.loads(parts[_SCHEMA])
        unknown = io.get_untrusted_types(data=zipped(parts))
        check_names(schema, unknown, trusted)
        closed = close_openings(schema)
        parts[_SCHEMA] = json.dumps(schema).encode()
        loaded = io.loads(zipped(parts), trusted=unknown)
        _check_loaded(loaded, header)
    except ImportError as error:
        raise ImportError(
            f"{path} requires a package that is not installed: {error}"
        ) from error
    except Exception as error:
        if isinstance(error, ValueError) and str(error):
            raise ValueError(f"{path} cannot be loaded: {error}") from error
        raise ValueError(
            f"{path} cannot be loaded because it is damaged ({type(error).__name__}: "
            f"{error})"
        ) from error
    sklearn_version = header["written_with"].get("scikit-learn")
    versions = f"{sklearn_version} (with skdcf {header['skdcf']})"
    warn_of_versions(header["object"], versions)
    if closed:
        warn(
            f"{path} contains a setting that would open {', '.join(closed)}. This setting "
            "was removed. Set it again if you need it",
            ParameterWarning,
        )
    return loaded


def _check_loaded(loaded, header):
    module, _, name = header["object"].rpartition(".")
    if not isinstance(loaded, BaseEstimator) or type(loaded).__name__ != name:
        raise ValueError(
            f"the header specifies {module}.{name}, but the file contains another object"
        )
    scores = getattr(loaded, "nonconformity_scores_", None)
    if scores is None:
        return
    good = isinstance(scores, np.ndarray) and scores.dtype == np.float64
    if not good or scores.ndim != 1 or np.isnan(scores).any():
        raise ValueError(
            "the nonconformity scores must be a 1-D float64 array without NaN"
        )
    if (scores[1:] < scores[:-1]).any() or len(scores) != loaded.n_calibration_:
        raise ValueError(
            "the nonconformity scores must be sorted, with one score per calibration "
            "problem"
        )


def build(members, kind):
    """Return the file content, given the content of each archive member, keyed by name."""
    header = {
        "format": FORMAT,
        "skdcf": __version__,
        "object": kind,
        "written_with": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scikit-learn", "skops")},
        },
        "sha256": {k: hashlib.sha256(v).hexdigest() for k, v in members.items()},
    }
    return zipped({_ABOUT: json.dumps(header, indent=1).encode()} | members)


def zipped(parts):
    """Return an uncompressed zip archive as bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def unzipped(content):
    """Return the members of an uncompressed zip archive, keyed by name."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read(content):
    """Return the header of the file, and its other members keyed by name.

    Raises
    ------
    ValueError
        If the archive is damaged, was changed, or has a newer format.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            _check_infos(archive.infolist(), len(content))
        parts = unzipped(content)
        header = json.loads(parts.pop(_ABOUT))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"the file is truncated or damaged ({error})") from error
    except (KeyError, RecursionError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"the file was not written by skdcf ({error})") from error
    _check_about(header)
    _check_sums(header["sha256"], parts)
    return header, parts


def _check_infos(infos, size):
    names = [array_info.filename for array_info in infos]
    if len(set(names)) < len(names):
        raise ValueError("the file must not contain two members with the same name")
    if sum(array_info.file_size for array_info in infos) > size:
        raise ValueError(
            "the members of the file must not overlap, but their total size exceeds the "
            "file size"
        )
    for array_info in infos:
        if array_info.compress_type != zipfile.ZIP_STORED or array_info.flag_bits & 1:
            raise ValueError(
                f"the member {array_info.filename!r} is compressed or encrypted"
            )


def _check_about(header):
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise ValueError("the header must specify the format as an integer")
    if header["format"] > FORMAT:
        raise ValueError(
            f"the format version must be at most {FORMAT}, got {header['format']}. The "
            f"file was written by skdcf {header.get('skdcf')}, but the installed version "
            f"is {__version__}. Upgrade skdcf"
        )
    has_texts = all(isinstance(header.get(key), str) for key in ("skdcf", "object"))
    has_tables = all(
        isinstance(header.get(key), dict) for key in ("sha256", "written_with")
    )
    if header["format"] < 1 or not (has_texts and has_tables):
        raise ValueError("the header is damaged")


def _check_sums(sums, parts):
    if odd := sorted(sums.keys() ^ parts.keys()):
        raise ValueError(
            f"the members {odd[:3]} were added or removed after the file was saved"
        )
    for name, content in parts.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise ValueError(
                f"the member {name!r} was changed after the file was saved"
            )


PACKAGE = __name__.partition(".")[0]
# Modules that users do not import directly.
_INSIDE = ("apps", "cli", "filters", "ops")
# Classes of the applications may open connections and files.
_APPLICATIONS = f"{PACKAGE}.apps"

#: Classes and harmless functions that are trusted in addition to those trusted by skops.
_KNOWN = (
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "skdcf.apps.text.split_sentences",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
)
#: String that skops writes in place of None.
_NULL: dict[str, Any] = {"content": "null", "is_json": True, "__class__": "str"}
_NULL |= {"__module__": "builtins", "__loader__": "JsonNode"}
#: Modules in which some versions of Python define objects that other modules export.
_MOVED = {"pathlib._local": "pathlib"}


@cache
def public_modules():
    """Return the public modules of the package.

    The applications are listed last, because they import packages that may not be installed.
    """
    public = [
        f"{package}.{module.name}"
        for package in (PACKAGE, _APPLICATIONS)
        for module in pkgutil.iter_modules(import_module(package).__path__)
        if not module.name.startswith("_") and module.name not in _INSIDE
    ]
    of_applications = f"{_APPLICATIONS}."
    return PACKAGE, *sorted(
        public, key=lambda name: (name.startswith(of_applications), name)
    )


@cache
def _known_names():
    """Return the full names that a file may contain, in addition to public classes of the package.

    Comparing prefixes would be unsafe. A module also contains its imports, such as numpy, and the
    attributes of numpy include other modules.
    """
    splits = import_module("sklearn.model_selection._split")
    listed = import_module("sklearn.model_selection").__all__
    splitters = [
        name for name in listed if inspect.isclass(getattr(splits, name, None))
    ]
    return frozenset(
        [
            *_KNOWN,
            *(f"skdcf.edges.{name}" for name in import_module("skdcf.edges").__all__),
            *(f"sklearn.model_selection._split.{name}" for name in splitters),
            *(
                f"{module}.{name}"
                for module, names in KEPT_IN_FILES.items()
                for name in names
            ),
        ]
    )


@cache
def _public_name(thing):
    for module in public_modules():
        if _exported(module, thing.__name__) is thing:
            return module, thing.__name__
    raise ValueError(
        f"{thing.__module__}.{thing.__name__} cannot be saved, because it is private "
        f"to {PACKAGE}"
    )


def _exported(module, name):
    loaded = import_module(module) if module in public_modules() else None
    names = [*getattr(loaded, "__all__", ()), *getattr(loaded, "__saved__", ())]
    return getattr(loaded, name, None) if name in names else None


def _class_of(name):
    """Return the public class of this package with the given dotted name, or None."""
    module, _, last = name.rpartition(".")
    exported = _exported(module, last)
    return exported if inspect.isclass(exported) else None


def nodes_of(schema):
    """Yield the dotted name and the node of each object in a skops schema."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("__module__"), str) and "__class__" in node:
                yield f"{node['__module__']}.{node['__class__']}", node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def with_public_names(schema):
    """Replace private names with public names in the schema, in place."""
    for _, node in nodes_of(schema):
        module = node["__module__"] = _MOVED.get(node["__module__"], node["__module__"])
        if module.partition(".")[0] == PACKAGE:
            exported = getattr(import_module(module), node["__class__"])
            node["__module__"], node["__class__"] = _public_name(exported)
    return schema


def check_names(schema, unknown, trusted):
    """Raise ValueError if a name is neither known nor trusted.

    ``unknown`` contains the names that skops does not trust.
    """
    names = set(unknown)
    walked = set(_names_of_walkers(schema))
    openings = [(name, text) for name, _, text in _openings(schema)]
    outward = {name for name, _ in openings}
    harmless = {name for name in names - outward if _is_known(name)}
    untrusted = sorted((names - harmless | outward | walked) - set(trusted))
    if untrusted:
        opened = [text for _, text in openings]
        raise ValueError(
            f"the file names {', '.join(untrusted)}, which skdcf does not trust"
            + (f". It would open {', '.join(opened)}" if opened else "")
            + ". If you trust these names, load the file in Python with trusted="
            f"{untrusted}"
        )


def _names_of_walkers(schema):
    """Return the dotted names of methods and partial functions that skops would create."""
    for name, node in nodes_of(schema):
        loader = node.get("__loader__")
        if loader == "PartialNode":
            yield "functools.partial"
        elif loader == "MethodNode":
            content = node.get("content")
            method = content.get("func") if isinstance(content, dict) else None
            yield f"{name}.{method}"


def close_openings(schema):
    """Remove addresses, paths and variable names from the schema, and return them as strings."""
    openings = list(_openings(schema))
    for _, node, _ in openings:
        node |= _NULL | {"__id__": -id(node)}
    return [text for _, _, text in openings]


def _is_known(name):
    if name in _known_names():
        return True
    return _class_of(name) is not None and not name.startswith(f"{_APPLICATIONS}.")


def _openings(schema):
    """Yield (class, node, text) for each parameter that would open a connection or a file."""
    for name, node in nodes_of(schema):
        for parameter in getattr(_class_of(name), "_opens", ()):
            state = node.get("content")
            inner = state.get("content") if isinstance(state, dict) else None
            if not isinstance(inner, dict):
                raise ValueError(f"the {name} is damaged")
            value = inner.get(parameter)
            shipped = getattr(_class_of(name), "_ships", ())
            inside = "null", *map(json.dumps, shipped)
            if value is not None and value.get("content") not in inside:
                text = value.get("content")
                readable = json.loads(text) if isinstance(text, str) else "a path"
                yield name, value, f"{parameter}={readable!r}"
