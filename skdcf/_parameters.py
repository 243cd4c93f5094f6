"""Layer 0: parameters of estimators, declared as scikit-learn declares its own."""

import os
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import takewhile
from numbers import Integral, Real
from typing import ClassVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _param_validation
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._param_validation import RealNotInt as Fraction

__all__ = [
    "Documented",
    "Fraction",
    "HasMethods",
    "Number",
    "Settings",
    "StrOptions",
    "positive",
    "settings",
]


class HasMethods(_param_validation.HasMethods):
    """An object with these methods; a class is none, although it has them."""

    def is_satisfied_by(self, val):
        """Whether ``val`` is an object with the methods."""
        return not isinstance(val, type) and super().is_satisfied_by(val)


class Number(Interval):
    """An interval of numbers, of Python's or numpy's own types; booleans are none."""

    def is_satisfied_by(self, val):
        """Whether ``val`` is a number in the interval."""
        if isinstance(val, np.floating):  # `Fraction` knows only that of 64 bits
            val = float(val)
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def positive(kind=Real):
    """Numbers above 0 and below infinity: ``Real`` or ``Integral`` ones."""
    if kind is Integral:
        return Number(Integral, 1, None, closed="left")
    return Number(Real, 0, None, closed="neither")


class Documented:
    """The HTML of an estimator links to its page in the documentation.

    Where that is, the environment variable SKDCF_DOCS says, or the metadata of the
    installed package. Where neither does, there is no link.
    """

    @property
    def _doc_link_module(self):
        return "skdcf" if _docs_url() else ""

    @property
    def _doc_link_template(self):
        return _docs_url() + "/generated/{module}.{name}.html"

    def _doc_link_url_param_generator(self):
        kind = type(self)
        parts = takewhile(lambda p: not p.startswith("_"), kind.__module__.split("."))
        module = ".".join(part for part in parts if part != "estimators")
        return {"module": module, "name": kind.__name__}


def _docs_url():
    return os.environ.get("SKDCF_DOCS", _docs_of_metadata()).rstrip("/")


@cache
def _docs_of_metadata():
    try:
        urls = metadata.metadata("skdcf").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "")


class Settings(Documented, BaseEstimator):
    """A value with parameters, which checks itself.

    Subclasses declare what each parameter may be in ``_parameter_constraints``, in the
    terms of scikit-learn, and extend `validate` by what must hold together.
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @classmethod
    @cache  # it reads signatures, for every clone and every check
    def _get_param_names(cls):
        return super()._get_param_names()

    #: Raise ValueError unless all parameters are as declared.
    validate = BaseEstimator._validate_params


@dataclass_transform(eq_default=False)
def settings(cls):
    """Give a class the constructor that stores its annotated parameters, and does no more."""
    return dataclass(cls, eq=False, repr=False)
