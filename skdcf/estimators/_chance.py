"""Estimate error probabilities and select the safest claims, without a guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._docs import documented
from ..graphs import GraphBatch
from ..graphs.problems import Problems
from ..graphs.ragged import flatten
from ._validation import filter_in


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


@documented
def first_claims(filter: Any, X: Problems, share: float = 0.0) -> NDArray[Any]:
    """Return masks that select the safest claims of each problem, regardless of alpha.

    There is no guarantee for the selected claims. Use ``error_probability`` to estimate the
    probability that at least one selected claim is false.

    Parameters
    ----------
    filter : fitted filter
    {X}
    share : float in [0, 1], default=0.0
        Proportion of claims to select in each problem. The number of selected claims is rounded
        up and is always at least one.

    Returns
    -------
    masks : ndarray of shape (n_problems,)
        Masks in the same format as in ``predict``. The masks select the claims with the smallest
        path risks, together with all ancestors of these claims.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    claims, view = filter_in(filter)._claims(X)
    batch = view.with_columns
    risk = claims.path_risk
    order = np.lexsort((np.arange(len(risk)), batch.depth, risk, batch.problem_of))

    # Select the given share of the claims, but at least one. Do not select claims that must never
    # be kept.
    position = np.empty(len(risk), dtype=np.int64)
    position[order] = np.arange(len(risk)) - batch.offsets[:-1][batch.problem_of]
    n_first = np.maximum(np.ceil(share * batch.sizes - 1e-9), 1)
    return view.shaped((position < n_first[batch.problem_of]) & ~np.isposinf(risk))


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
