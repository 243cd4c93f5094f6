"""Fitted filters in files, through skops: no pickle, and no code of strangers."""

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
        parts = unzipped(io.dumps(filter))
        schema = with_public_names(json.loads(parts[_SCHEMA]))
        parts[_SCHEMA] = json.dumps(schema).encode()
        content = build(parts, f"{schema['__module__']}.{schema['__class__']}")
        # Objects made here may be made again here; those that cannot be are found now.
        io.loads(content, trusted=io.get_untrusted_types(data=content))
    except RecursionError as error:
        raise ValueError(
            f"{type(filter).__name__} cannot be saved: it holds an object that refers to "
            "itself, as a search and a set_score_request do. Of a search save "
            "best_estimator_, which is the filter that it chose"
        ) from error
    except Exception as error:
        raise ValueError(
            f"{type(filter).__name__} cannot be saved: {error}. A filter holds classes "
            "and functions by the name under which they are imported, not their code: "
            "define them in a module, and use no lambda"
        ) from error
    with replaced(path, "wb") as file:
        file.write(content)
    return Path(path)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Make a filter again from a file that `save` wrote.

    Nothing in the file is executed. It may name classes of scikit-learn and numpy, and
    public classes of this package that open neither connections nor files; any other is
    refused. Checksums show damage and careless changes. They are no signature: who can
    write the file can make it a filter that keeps everything, so keep it where only you
    can write.

    Parameters
    ----------
    path : path-like
        Where the file is.
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
        header, parts = read(content)
        schema = json.loads(parts[_SCHEMA])
        unknown = io.get_untrusted_types(data=zipped(parts))
        check_names(schema, unknown, trusted)
        closed = close_openings(schema)
        parts[_SCHEMA] = json.dumps(schema).encode()
        loaded = io.loads(zipped(parts), trusted=unknown)
        _check_loaded(loaded, header)
    except ImportError as error:
        raise ImportError(f"{path} needs what is not installed: {error}") from error
    except Exception as error:
        reason = str(error) if isinstance(error, ValueError) else ""
        if not reason:
            reason = f"it is damaged ({type(error).__name__}: {error})"
        raise ValueError(f"{path} cannot be loaded: {reason}") from error
    sklearn_version = header["written_with"].get("scikit-learn")
    versions = f"{sklearn_version} (with skdcf {header['skdcf']})"
    warn_of_versions(header["object"], versions)
    if closed:
        warn(
            f"{path} would open {', '.join(closed)}: taken out, so set it again",
            ParameterWarning,
        )
    return loaded


def _check_loaded(loaded, header):
    module, _, name = header["object"].rpartition(".")
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


def build(members, kind):
    """The archive as bytes; ``members`` are bytes by name."""
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
    """A zip archive, uncompressed, as bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def unzipped(content):
    """The members of an uncompressed zip archive by name."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read(content):
    """Read what the file says about itself, and all of its other members by name.

    Raises
    ------
    ValueError
        With the reason, if the archive is damaged, changed or of a newer format.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            _check_infos(archive.infolist(), len(content))
        parts = unzipped(content)
        header = json.loads(parts.pop(_ABOUT))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"it is cut off or damaged ({error})") from error
    except (KeyError, RecursionError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it was not written by skdcf ({error})") from error
    _check_about(header)
    _check_sums(header["sha256"], parts)
    return header, parts


def _check_infos(infos, size):
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise ValueError("it holds two members of one name")
    if sum(info.file_size for info in infos) > size:
        raise ValueError("its members overlap: together they are larger than the file")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise ValueError(f"its member {info.filename!r} is compressed or encrypted")


def _check_about(header):
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise ValueError("it does not say which format it has")
    if header["format"] > FORMAT:
        raise ValueError(
            f"its format is {header['format']}, written by skdcf {header.get('skdcf')}; "
            f"this is skdcf {__version__}, which reads format {FORMAT} and older: update skdcf"
        )
    has_texts = all(isinstance(header.get(key), str) for key in ("skdcf", "object"))
    has_tables = all(
        isinstance(header.get(key), dict) for key in ("sha256", "written_with")
    )
    if header["format"] < 1 or not (has_texts and has_tables):
        raise ValueError("what it says about itself is damaged")


def _check_sums(sums, parts):
    if odd := sorted(sums.keys() ^ parts.keys()):
        raise ValueError(f"members were added or removed after it was saved: {odd[:3]}")
    for name, content in parts.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise ValueError(f"its member {name!r} was changed after it was saved")


PACKAGE = __name__.partition(".")[0]
_INSIDE = ("apps", "cli", "estimators", "ops")  # modules that users do not import from
# Classes of applications open connections and files.
_APPLICATIONS = f"{PACKAGE}.apps"

#: Classes and harmless functions, beside what skops trusts by itself.
_KNOWN = (
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "skdcf.apps.llm.join_claims",
    "skdcf.apps.llm.split_sentences",
    "xgboost.sklearn.XGBClassifier",
)
#: Trees that their libraries follow without looking, so that a made-up one ends the
#: process. Some versions of skops trust them.
_UNCHECKED = (
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
)
#: Skops writes this for None.
_NULL: dict[str, Any] = {"content": "null", "is_json": True, "__class__": "str"}
_NULL |= {"__module__": "builtins", "__loader__": "JsonNode"}
#: Where versions of Python keep what they all give from elsewhere.
_MOVED = {"pathlib._local": "pathlib"}


@cache
def public_modules():
    """Dotted names of the modules that users import from.

    Those of the applications come last: they import packages that need not be installed.
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
    """Full names of what a file may hold, beside public classes of this package.

    No prefix of a name is enough: a module also holds what it imports, such as numpy, and
    from there every attribute leads on.
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
                f"{room}.{name}"
                for room, names in KEPT_IN_FILES.items()
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
        f"{thing.__module__}.{thing.__name__} is private to {PACKAGE} and cannot be saved"
    )


def _exported(module, name):
    loaded = import_module(module) if module in public_modules() else None
    names = [*getattr(loaded, "__all__", ()), *getattr(loaded, "__saved__", ())]
    return getattr(loaded, name, None) if name in names else None


def _class_of(name):
    """A public class of this package by its dotted name, or None."""
    module, _, last = name.rpartition(".")
    exported = _exported(module, last)
    return exported if inspect.isclass(exported) else None


def nodes_of(schema):
    """All things in the schema of skops, a tree of dicts and lists, with their names."""
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
    """The schema with the names that users know, in place."""
    for _, node in nodes_of(schema):
        module = node["__module__"] = _MOVED.get(node["__module__"], node["__module__"])
        if module.partition(".")[0] == PACKAGE:
            exported = getattr(import_module(module), node["__class__"])
            node["__module__"], node["__class__"] = _public_name(exported)
    return schema


def check_names(schema, unknown, trusted):
    """Raise ValueError for names that are neither known nor trusted.

    ``unknown`` are the names that skops does not trust by itself.
    """
    names = set(unknown) | {name for name, _ in nodes_of(schema) if name in _UNCHECKED}
    walked = set(_names_of_walkers(schema))
    openings = [(name, text) for name, _, text in _openings(schema)]
    outward = {name for name, _ in openings}
    harmless = {name for name in names - outward if _is_known(name)}
    untrusted = sorted((names - harmless | outward | walked) - set(trusted))
    if untrusted:
        opened = [text for _, text in openings]
        raise ValueError(
            f"it names {', '.join(untrusted)}, which skdcf does not know to be harmless"
            + (f"; it would open {', '.join(opened)}" if opened else "")
            + ". If you know that they are, load it in Python with trusted="
            f"{untrusted}"
        )


def _names_of_walkers(schema):
    """Dotted names of methods, and of partial functions, by what skops would build."""
    for name, node in nodes_of(schema):
        loader = node.get("__loader__")
        if loader == "PartialNode":
            yield "functools.partial"
        elif loader == "MethodNode":
            content = node.get("content")
            method = content.get("func") if isinstance(content, dict) else None
            yield f"{name}.{method}"


def close_openings(schema):
    """Take out addresses, paths and names of keys, in place; return them as texts."""
    openings = list(_openings(schema))
    for _, node, _ in openings:
        node |= _NULL | {"__id__": -id(node)}
    return [text for _, _, text in openings]


def _is_known(name):
    if name in _known_names():
        return True
    return _class_of(name) is not None and not name.startswith(f"{_APPLICATIONS}.")


def _openings(schema):
    """Parameters that would open a connection or a file: (class, node, text) of each."""
    for name, node in nodes_of(schema):
        for parameter in getattr(_class_of(name), "_opens", ()):
            state = node.get("content")
            inner = state.get("content") if isinstance(state, dict) else None
            if not isinstance(inner, dict):
                raise ValueError(f"its {name} is damaged")
            value = inner.get(parameter)
            shipped = getattr(_class_of(name), "_ships", ())
            inside = "null", *map(json.dumps, shipped)
            if value is not None and value.get("content") not in inside:
                text = value.get("content")
                readable = json.loads(text) if isinstance(text, str) else "a path"
                yield name, value, f"{parameter}={readable!r}"
