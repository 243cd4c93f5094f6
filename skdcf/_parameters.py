"""Declaration and validation of estimator parameters, as in scikit-learn."""

from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import numpy as np

from . import _sklearn
from ._sklearn import Interval, RealNotInt
from ._sklearn import StrOptions as StrOptions

# Type checkers see BaseEstimator, so they also check constructors.
if TYPE_CHECKING:
    MYPY = False
    if MYPY:  # mypy has no types for scikit-learn and would treat its classes as Any.
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
    """Constraint that requires an instance with the given methods, not a class."""

    def is_satisfied_by(self, val):
        """Return whether ``val`` is an instance that has the required methods."""
        return not isinstance(val, type) and super().is_satisfied_by(val)


class Number(Interval):
    """Constraint that requires a Python or numpy number in an interval, excluding booleans."""

    def is_satisfied_by(self, val):
        """Return whether ``val`` is a number in the interval."""
        if isinstance(val, np.floating):  # `RealNotInt` only supports 64-bit floats.
            val = float(val)
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def at_least(low, kind=Real):
    """Return a constraint that requires a finite number greater than or equal to ``low``."""
    return Number(kind, low, None, closed="left")


def positive(kind=Real):
    """Return a constraint that requires a finite positive number."""
    if kind is Integral:
        return at_least(1, kind)
    return Number(Real, 0, None, closed="neither")


#: Constraints for a fraction in (0, 1), a number in (0, 1] and a positive integer.
SHARE = Number(RealNotInt, 0, 1, closed="neither")
SHARE_OR_ALL = Number(Real, 0, 1, closed="right")
COUNT = positive(Integral)


class Settings(BaseEstimator):
    """Base class of objects whose parameters can be validated.

    Subclasses declare the valid values of each parameter in ``_parameter_constraints``, as in
    scikit-learn, and override `validate` to check parameters that depend on each other.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset the inherited ``requires_fit`` in a class that defines its own `fit`."""
        super().__init_subclass__(**options)
        own_names = vars(cls).keys()
        inherited = getattr(cls, "requires_fit", True)
        if (
            "fit" in own_names
            and "requires_fit" not in own_names
            and inherited is not True
        ):
            cls.requires_fit: bool | None = None  # type: ignore[attr-defined, misc]

    @classmethod
    # The result is cached, because scikit-learn inspects the signature in every clone and
    # every check.
    @cache
    def _get_param_names(cls):
        return super()._get_param_names()  # type: ignore[misc]  # of BaseEstimator

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested parameters such as ``name__parameter``.

        Parameters
        ----------
        **params
            Parameter values, keyed by name.

        Returns
        -------
        self : object
            This object, with the new parameters.

        Raises
        ------
        ValueError
            If a parameter does not exist, or if a nested parameter belongs to a value without
            parameters, such as None. If an error is raised, no parameter is set.
        """
        for key in params:
            name, _, nested = key.partition("__")
            value = params.get(name, getattr(self, name, self))
            if nested and not hasattr(value, "set_params"):
                raise ValueError(
                    f"{key} cannot be set because {name}={value!r} has no parameters. Set "
                    f"{name} to an object that has the parameter {nested!r} first"
                )
        return super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator

    if TYPE_CHECKING:

        def validate(self) -> None:
            """Raise ValueError unless all parameters are valid."""

    else:
        validate = BaseEstimator._validate_params


@dataclass_transform(eq_default=False)
def settings(cls):
    """Add a constructor that stores the annotated attributes without validation."""
    return dataclass(cls, eq=False, repr=False)
