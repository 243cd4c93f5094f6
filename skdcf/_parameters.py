"""Parameters of estimators, declared as scikit-learn declares its own."""

from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import numpy as np
from sklearn.utils import _param_validation
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils._param_validation import StrOptions as StrOptions

if TYPE_CHECKING:  # type checkers know this base, and so check constructors as well
    MYPY = False
    if MYPY:  # which does not read scikit-learn and takes its classes for anything
        Known = object
    else:
        from sklearn.base import BaseEstimator as Known

    class BaseEstimator(Known):
        def __getattr__(self, name: str) -> Any: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def _validate_params(self) -> None: ...
        def __getstate__(self) -> dict[str, Any]: ...

else:
    from sklearn.base import BaseEstimator


class HasMethods(_param_validation.HasMethods):
    """An object with these methods; a class is none, although it has them."""

    def is_satisfied_by(self, val):
        """Whether ``val`` is an object with the methods."""
        return not isinstance(val, type) and super().is_satisfied_by(val)


class Number(Interval):
    """An interval of numbers, of Python's or numpy's own types; booleans are none."""

    def is_satisfied_by(self, val):
        """Whether ``val`` is a number in the interval."""
        if isinstance(val, np.floating):  # `RealNotInt` knows only that of 64 bits
            val = float(val)
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def at_least(low, kind=Real):
    """Numbers from ``low`` on and below infinity: ``Real`` or ``Integral`` ones."""
    return Number(kind, low, None, closed="left")


def positive(kind=Real):
    """Numbers above 0 and below infinity: ``Real`` or ``Integral`` ones."""
    if kind is Integral:
        return at_least(1, kind)
    return Number(Real, 0, None, closed="neither")


#: A fraction between 0 and 1, both excluded; a number from 0 to 1; whole numbers from 1 on.
SHARE = Number(RealNotInt, 0, 1, closed="neither")
UNIT = Number(Real, 0, 1, closed="both")
SHARE_OR_ALL = Number(Real, 0, 1, closed="right")
COUNT = positive(Integral)


#: Methods by which a class learns.
FITTING = {"fit", "fit_levels"}


class Settings(BaseEstimator):
    """A value with parameters, which checks itself.

    Subclasses declare what each parameter may be in ``_parameter_constraints``, in the
    terms of scikit-learn, and extend `validate` by what must hold together.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Forget that a parent class declares to learn nothing, where `fit` is another one."""
        super().__init_subclass__(**options)
        own_names = vars(cls).keys()
        inherited = getattr(cls, "requires_fit", True)
        if (
            own_names & FITTING
            and "requires_fit" not in own_names
            and inherited is not True
        ):
            cls.requires_fit: bool | None = None  # type: ignore[attr-defined, misc]

    @classmethod
    @cache  # scikit-learn reads signatures for every clone and every check
    def _get_param_names(cls):
        return super()._get_param_names()  # type: ignore[misc]  # of BaseEstimator

    if TYPE_CHECKING:

        def validate(self) -> None:
            """Raise ValueError unless all parameters are as declared."""

    else:
        validate = BaseEstimator._validate_params


@dataclass_transform(eq_default=False)
def settings(cls):
    """Give a class the constructor that stores its annotated parameters, and does no more."""
    return dataclass(cls, eq=False, repr=False)
