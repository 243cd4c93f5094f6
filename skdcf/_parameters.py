"""Parameters of estimators, declared as scikit-learn declares its own."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import numpy as np

from . import _sklearn
from ._sklearn import Interval, RealNotInt
from ._sklearn import StrOptions as StrOptions

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


class HasMethods(_sklearn.HasMethods):
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
    #: The public classes whose instances a parameter takes, if it may also be None or a word:
    #: the module, and names of which the first is the default.
    _values: ClassVar[dict[str, tuple[str, ...]]] = {}

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

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones as ``name__parameter``.

        Parameters
        ----------
        **params
            By their names.

        Returns
        -------
        self
            The same object.

        Raises
        ------
        ValueError
            If there is no such parameter, or a nested one belongs to a value that has no
            parameters, such as None. Nothing is set then.
        """
        for key in params:
            name, _, nested = key.partition("__")
            value = params.get(name, getattr(self, name, self))
            if nested and not hasattr(value, "set_params"):
                raise ValueError(
                    f"{key} cannot be set, since {name}={value!r} has no parameters. "
                    f"{self._advise_value(name, nested.partition('__')[0])}"
                )
        return super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator

    def _advise_value(self, name, parameter):
        """Say which value of a parameter has a parameter of its own."""
        module, *names = self._values.get(name, ("skdcf",))
        classes = [getattr(import_module(module), value) for value in names]
        fitting = [
            f"{name}={kind.__name__}()"
            for kind in classes
            if parameter in kind._get_param_names()
        ]
        if fitting:
            return f"Pass {' or '.join(fitting)} first"
        example = ", as in scorer=LogisticRegression()" if name == "scorer" else ""
        return f"Pass a value of {name} that has the parameter {parameter!r}{example}"

    if TYPE_CHECKING:

        def validate(self) -> None:
            """Raise ValueError unless all parameters are as declared."""

    else:
        validate = BaseEstimator._validate_params


@dataclass_transform(eq_default=False)
def settings(cls):
    """Give a class the constructor that stores its annotated parameters, and does no more."""
    return dataclass(cls, eq=False, repr=False)
