"""List of labels with one array per problem."""

from __future__ import annotations

from typing import Any

import numpy as np


class LabelList(list[Any]):
    """List of labels that scikit-learn can index with index arrays."""

    @property
    def shape(self) -> tuple[int]:
        """Shape (n_problems,), which tells scikit-learn that index arrays are supported."""
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return super().__getitem__(key)
        positions = np.arange(len(self))[key]
        return LabelList(map(super().__getitem__, positions.tolist()))
