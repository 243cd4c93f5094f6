"""Estimate error probabilities of filtered answers, without a guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import GraphBatch
from ..graphs.problems import Problems
from ..graphs.ragged import flatten


def chances_of(
    fitted: Any, X: Problems, masks: Any, alpha: float | None
) -> NDArray[np.float64]:
    """Return the error probabilities, as in `ConformalFilter.error_probability`."""
    refuse_without_hazards(fitted.scorer_)
    if masks is None:
        margin, view = fitted._decision(X, alpha)
        kept = margin > 0
    else:
        if alpha is not None:
            raise ValueError(
                f"alpha={alpha:g} and masks cannot both be passed, because the masks already "
                "determine the kept claims. Omit alpha or masks"
            )
        view = fitted._look(X)
        _, kept, _ = flatten(view.raw.split(np.ones(view.raw.n_claims)), masks)
    _refuse_open(kept, view.with_columns)
    chance = fitted.scorer_.error_probability(view.with_columns, kept)
    n_kept = np.bincount(view.raw.problem_of[kept], minlength=len(view.raw))
    return np.where(n_kept > 0, chance, np.nan)


def refuse_without_hazards(scorer: Any) -> None:
    """Raise ValueError if the scorer does not estimate hazards."""
    if not hasattr(scorer, "error_probability"):
        raise ValueError(
            f"scorer must estimate error probabilities, but {scorer!r} only ranks claims. "
            'Fit the filter with scorer="stack" or scorer="neyman-pearson"'
        )


def _refuse_open(kept: NDArray[np.bool_], batch: GraphBatch) -> None:
    """Raise ValueError if a claim is kept but one of its parents is dropped."""
    parent, child = batch.edges.T
    open_ = np.flatnonzero(kept[child] & ~kept[parent])
    if len(open_):
        row = int(child[open_[0]])
        above = int(parent[open_[0]] - batch.offsets[batch.problem_of[row]])
        raise ValueError(
            f"{batch.locate(row)} is kept, but its ancestor, claim {above}, is dropped. "
            "The error probability is only defined if all ancestors of each kept claim "
            "are kept. Keep both claims, or drop both"
        )
