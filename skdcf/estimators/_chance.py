"""The chance of each text and the first claims of an answer, neither of which is a promise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import GraphBatch
from ..graphs.problems import Problems
from ._validation import filter_in


def chances_of(
    fitted: Any, X: Problems, masks: Any, alpha: float | None
) -> NDArray[np.float64]:
    """What `ConformalFilter.error_probability` returns."""
    refuse_without_hazards(fitted.scorer_)
    if masks is None:
        margin, view = fitted._decision(X, alpha)
        kept = margin > 0
    else:
        if alpha is not None:
            raise ValueError(
                f"alpha is {alpha:g} and masks are passed as well: the masks say what is kept, "
                "so leave one of the two out"
            )
        view = fitted._look(X)
        kept = _flat_masks(masks, view.passed)
    _refuse_open(kept, view.scored)
    chance = fitted.scorer_.error_probability(view.scored, kept)
    n_kept = np.bincount(view.passed.problem_of[kept], minlength=len(view.passed))
    return np.where(n_kept > 0, chance, np.nan)


def refuse_without_hazards(scorer: Any) -> None:
    """ValueError unless the scorer states how likely each claim is the first error."""
    if not hasattr(scorer, "error_probability"):
        raise ValueError(
            f"{scorer!r} orders claims and does not say how likely an error is, so that it "
            "states no chance of a text. The level of a claim is no such chance either. Fit "
            'with the scorer "stack" or "neyman-pearson"'
        )


def first_claims(filter: Any, X: Problems, share: float = 0.0) -> NDArray[Any]:
    """Masks of the safest claims of each problem, whatever alpha keeps of it.

    Nothing is guaranteed for such a text; ``error_probability`` says how likely it is wrong.

    Parameters
    ----------
    filter : fitted filter
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The problems.
    share : float in [0, 1], default=0.0
        Share of the claims, rounded up; at least one.

    Returns
    -------
    ndarray of shape (n_problems,)
        Shaped as in ``predict``: those with the smallest path risks, each with all that
        it builds on.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share!r}, but must be from 0 to 1")
    claims, view = filter_in(filter)._claims(X)
    batch = view.scored
    risk = claims.path_risk
    order = np.lexsort((np.arange(len(risk)), batch.depth, risk, batch.problem_of))

    # As many as the share says, at least one, and none that may never be kept.
    position = np.empty(len(risk), dtype=np.int64)
    position[order] = np.arange(len(risk)) - batch.offsets[:-1][batch.problem_of]
    n_first = np.maximum(np.ceil(share * batch.sizes - 1e-9), 1)
    return view.shaped((position < n_first[batch.problem_of]) & ~np.isposinf(risk))


def _flat_masks(masks, batch):
    """Masks of all claims, or ValueError where they are those of other problems."""
    # Of a table the masks are booleans, one for the one claim of each row.
    rows = [np.atleast_1d(mask) for mask in masks]
    if len(rows) != len(batch):
        raise ValueError(
            f"there are {len(rows)} masks for {len(batch)} problems: pass one for each, as "
            "predict returns them for the same problems"
        )
    for i, (mask, size) in enumerate(zip(rows, batch.sizes.tolist(), strict=True)):
        if mask.shape != (size,):
            raise ValueError(
                f"{batch.name_of(i)} has {size} claims, but its mask has shape {mask.shape}. "
                "Are the masks those of another batch?"
            )
        if size and mask.dtype != bool:
            raise ValueError(
                f"the mask of {batch.name_of(i)} holds {mask.dtype} values, but must "
                "hold booleans: whether each claim is kept"
            )
    return np.concatenate(rows).astype(bool)


def _refuse_open(kept: NDArray[np.bool_], batch: GraphBatch) -> None:
    """ValueError where something is kept without a claim that it builds on."""
    parent, child = batch.edges.T
    open_ = np.flatnonzero(kept[child] & ~kept[parent])
    if len(open_):
        row = int(child[open_[0]])
        above = int(parent[open_[0]] - batch.offsets[batch.problem_of[row]])
        raise ValueError(
            f"{batch.locate(row)} is kept without claim {above}, on which it builds. The "
            "chance is known for sets that hold all that their claims build on: keep both, "
            "or drop both"
        )
