"""Guard against ``by=`` groups that depend on the other problems of a batch.

A group such as the rank of a problem within the batch differs between calibration and use, so
the guarantee would hold in no group.
"""

from __future__ import annotations

import numpy as np

from ..graphs.problems import read_groups

LARGEST = 512  # maximum number of problems whose groups are computed again


def refuse_dependence(guarantee, batch, groups):
    """Raise ValueError if the group of a problem depends on other problems."""
    if groups is None:
        return
    last = len(batch) - 1
    rows = np.unique(np.linspace(0, last, min(last + 1, LARGEST)).astype(int))
    for part in (rows[:1], rows[1:2], rows[2 : 2 + len(rows) // 3]):
        if not 0 < len(part) < len(batch):
            continue
        for i, alone in zip(part, read_groups(guarantee.by, batch[part]), strict=True):
            if alone != groups[i]:
                raise ValueError(
                    f"the group of {batch.name_of(int(i))} must not depend on other problems, "
                    f"got {groups[i]} in the whole batch and {alone} in a smaller batch. Do not "
                    "compute ranks or sums over the batch"
                )
