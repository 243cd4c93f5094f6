"""Import of `skops.io` without importing all modules of scikit-learn.

When skops is imported, it lists all estimators of scikit-learn, which it then trusts. This
imports every module of scikit-learn, and takes longer than most commands of the program. Here
the list stays empty, and `is_estimator` looks up only the names in a file.
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

# Parts of scikit-learn in which skops does not look for estimators.
_LEFT_OUT = frozenset(
    ("conftest", "estimator_checks", "experimental", "externals", "setup", "tests")
)


@cache
def skops_io() -> Any:
    """Return the module `skops.io` if the user has imported it, or else a private copy.

    The copy does not trust any estimator, so users must not get it when they import skops.
    """
    # Other threads must not see the empty list while skops is imported.
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
    """Return whether a dotted name is the public name of a scikit-learn estimator."""
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
