"""`skops.io`, imported without all modules of scikit-learn.

When skops is imported, it lists all estimators of scikit-learn, which it then trusts. This
imports every module of scikit-learn and takes longer than the work of a command. Here the list
stays empty, and `is_estimator` looks up the few names that a file holds.
"""

import inspect
import sys
import threading
from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import Any

import sklearn.utils
from sklearn.base import BaseEstimator

# Parts of scikit-learn in which skops looks for no estimators.
_LEFT_OUT = frozenset(
    ("conftest", "estimator_checks", "experimental", "externals", "setup", "tests")
)


@cache
def skops_io() -> Any:
    """Return the module `skops.io`: the user's if it is imported, else a private copy.

    The copy trusts no estimator by itself, so it must not be the one that users import.
    """
    # Another thread must not meet the empty list while skops is imported.
    if "skops.io" in sys.modules or threading.active_count() > 1:
        return import_module("skops.io")
    list_all = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = lambda type_filter=None: []
    try:
        copy = import_module("skops.io")
    finally:
        sklearn.utils.all_estimators = list_all
        for name in list(sys.modules):
            if f"{name}.".startswith("skops.io."):
                del sys.modules[name]
        if "skops" in sys.modules:
            vars(sys.modules["skops"]).pop("io", None)
    return copy


@cache
def is_estimator(name: str) -> bool:
    """Tell whether a dotted name is that of an estimator that scikit-learn exports."""
    module, _, last = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or _LEFT_OUT.intersection(parts):
        return False
    public = takewhile(lambda part: not part.startswith("_"), parts)
    try:
        found = getattr(import_module(".".join(public)), last, None)
    except ImportError:
        return False
    if not inspect.isclass(found) or not issubclass(found, BaseEstimator):
        return False
    is_named_so = f"{found.__module__}.{found.__qualname__}" == name
    is_private = last.startswith("_") or found is BaseEstimator
    return is_named_so and not (is_private or inspect.isabstract(found))
