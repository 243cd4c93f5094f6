"""Labels and decisions, one array per problem, which say so where one number is wanted.

Tools of scikit-learn make a table of what they are given. Of arrays of several lengths
numpy makes none, and its error does not say what to do instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class LabelList(list[Any]):
    """Labels as data sets have them: a list, which scikit-learn divides as one."""

    @property
    def shape(self) -> tuple[int]:
        """Number of problems: by its shape scikit-learn sees what takes many positions."""
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return super().__getitem__(key)
        positions = np.arange(len(self))[key]
        return LabelList(map(super().__getitem__, positions.tolist()))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        try:
            return np.array(list(self), dtype=dtype)
        except ValueError:
            raise TypeError(
                "labels are one array per problem, of several lengths, and no table. What "
                "divides problems by classes, as StratifiedKFold does, wants one class of "
                "each: [(row < 1).any() for row in y]. Masks are compared with labels by "
                "skdcf.metrics, and in a search by scoring=None. Other methods than predict "
                "are cross-validated by a loop over splits. list(y) makes a plain list of them"
            ) from None


class ProblemArrays(np.ndarray):
    """What a filter says of problems, an array of arrays that no metric of scikit-learn takes."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Refuse what metrics of scikit-learn do first, which is to look for classes."""
        if func is np.unique:
            raise TypeError(
                "a filter says one array per problem and no class, which accuracy and its "
                "kin compare. skdcf.metrics.coverage_score(y, masks) and evaluate_filter "
                "compare masks with labels; in a search leave scoring=None"
            )
        return super().__array_function__(func, types, args, kwargs)
