"""Declaration and validation of estimator parameters, as in scikit-learn.

This is the only module that imports private names of scikit-learn. They have no public equivalents.
A test imports them from the nightly build of scikit-learn, so changes are noticed early.
"""

from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import sklearn
from sklearn.base import _clone_parametrized as clone_parameters  # noqa: F401
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import _param_validation
from sklearn.utils import _safe_indexing as take_rows  # noqa: F401
from sklearn.utils._param_validation import Options, StrOptions  # noqa: F401

from ._checks import warn
from ._version import __version__

MYPY = False
if MYPY:  # mypy has no types for scikit-learn, and would accept every parameter.
    BaseEstimator = object
else:
    from sklearn.base import BaseEstimator


class HasMethods(_param_validation.HasMethods):
    """Constraint that requires an instance with the given methods, not a class."""

    def is_satisfied_by(self, val):
        """Return whether ``val`` is an instance that has the required methods."""
        return not isinstance(val, type) and super().is_satisfied_by(val)


class Number(_param_validation.Interval):
    """Constraint that requires a Python or numpy number in an interval, excluding booleans."""

    def is_satisfied_by(self, val):
        """Return whether ``val`` is a number in the interval."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def at_least(low, kind=Real):
    """Return a constraint that requires a finite number greater than or equal to ``low``."""
    return Number(kind, low, None, closed="left")


def positive(kind=Real):
    """Return a constraint that requires a finite positive number."""
    return Number(kind, 0, None, closed="neither")


def fraction(closed="neither"):
    """Return a constraint that requires a number between 0 and 1."""
    return Number(Real, 0, 1, closed=closed)


class Settings(BaseEstimator):
    """Base class of objects whose parameters can be validated.

    Subclasses declare the valid values of each parameter in ``_parameter_constraints``, as in
    scikit-learn, and override `validate` to check parameters that depend on each other.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset the inherited ``requires_fit`` in a class that defines its own `fit`."""
        super().__init_subclass__(**options)
        own = vars(cls)
        is_new = "fit" in own and "requires_fit" not in own
        if is_new and not getattr(cls, "requires_fit", True):
            cls.requires_fit = None  # type: ignore[attr-defined, misc]

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

    def validate(self) -> None:
        """Raise ValueError unless all parameters are valid."""
        self._validate_params()


@dataclass_transform(eq_default=False)
def settings(cls):
    """Add a constructor that stores the annotated attributes without validation."""
    return dataclass(cls, eq=False, repr=False)


def versions():
    """Return the versions of scikit-learn and skdcf, which are stored in files and pickles."""
    return f"{sklearn.__version__} (with skdcf {__version__})"


def warn_of_versions(name, there):
    """Warn if a file or pickle was written by a different version of skdcf or scikit-learn."""
    if there != versions():
        message = InconsistentVersionWarning(
            estimator_name=name,
            current_sklearn_version=versions(),
            original_sklearn_version=there,
        )
        warn(message, InconsistentVersionWarning)


def reduced(filter):
    """Return the value of ``__reduce__`` for a filter, including its state and the versions."""
    return _restored, (type(filter), versions()), filter.__getstate__()


def _restored(kind, there):
    warn_of_versions(kind.__name__, there)
    return kind.__new__(kind)
