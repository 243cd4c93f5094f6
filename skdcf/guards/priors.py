"""Problems whose questions a public prior was learnt from.

The prior has seen their labels, so it scores them better than new problems. A threshold that is
calibrated on them keeps too much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch
from ..graphs.hashes import Hashes


def known_to_priors(priors: Any, hashes: Hashes) -> NDArray[np.bool_]:
    """Tell which problems have a question that a public prior was learnt from.

    A prior knows the texts of its questions. Answers to the same question in other words are
    known through their group.

    Parameters
    ----------
    priors : tuple of PublicPrior
        Those of a scorer.
    hashes : Hashes
        The hashes of the problems.

    Returns
    -------
    ndarray of bool, shape (n_problems,)
        True for a known problem.
    """
    is_known = np.zeros(len(hashes.question), dtype=bool)
    for prior in priors:
        is_known |= prior.knows(hashes.text)
    return np.isin(hashes.question, hashes.question[is_known])


def refuse_known_questions(priors: Any, batch: GraphBatch, hashes: Hashes) -> None:
    """Refuse problems with questions that a public prior was learnt from.

    Parameters
    ----------
    priors : tuple of PublicPrior
        Those of a scorer.
    batch : GraphBatch
        The problems.
    hashes : Hashes
        Their hashes.

    Raises
    ------
    ValueError
        If there are such problems.

    Warns
    -----
    GuaranteeWarning
        If problems have no question by which they could be known.
    """
    if not priors:
        return
    is_known = known_to_priors(priors, hashes)
    if is_known.any():
        raise ValueError(
            f"{int(is_known.sum())} of {len(is_known)} problems, "
            f"{batch.name_of(int(np.argmax(is_known)))} first, have questions that the public "
            "prior in the scorer was learnt from. The guarantee needs new problems: leave "
            "these out (seen(X) of the prior tells which they are), or use another prior"
        )
    n_unknown = int((hashes.text < 0).sum())
    if n_unknown:
        warn(
            f"{n_unknown} of {len(is_known)} problems have no question, so nothing tells "
            "whether the public prior was learnt from them. If it was, the guarantee does "
            "not hold. Pass their questions as problem=",
            GuaranteeWarning,
        )
