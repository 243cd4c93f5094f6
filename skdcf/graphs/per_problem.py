"""Labels of problems, one array per problem."""

from __future__ import annotations

from typing import Any

import numpy as np


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
