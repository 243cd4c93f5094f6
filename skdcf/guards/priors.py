"""Guard against problems whose questions were used to train a public prior.

A prior is more accurate on its own training problems than on new problems. If a threshold is
calibrated on training problems of the prior, the filter keeps too many claims.
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
    """Return which problems have a question that was used to train a public prior.

    A prior stores hashes of the question texts in its training data. Answers to a paraphrased
    question are recognised by their group.

    Parameters
    ----------
    priors : tuple of PublicPrior
        The priors of a scorer.
    hashes : Hashes
        The hashes of the problems.

    Returns
    -------
    is_known : ndarray of bool of shape (n_problems,)
        Whether a prior was trained on the question of each problem.
    """
    is_known = np.zeros(len(hashes.question), dtype=bool)
    for prior in priors:
        is_known |= prior.knows(hashes.text)
    return np.isin(hashes.question, hashes.question[is_known])


def refuse_known_questions(priors: Any, batch: GraphBatch, hashes: Hashes) -> None:
    """Raise ValueError if a public prior was trained on the question of any problem.

    Parameters
    ----------
    priors : tuple of PublicPrior
        The priors of a scorer.
    batch : GraphBatch
        The problems.
    hashes : Hashes
        The hashes of the problems.

    Raises
    ------
    ValueError
        If a prior was trained on the question of any problem.

    Warns
    -----
    GuaranteeWarning
        If some problems have no question, so these problems cannot be compared with the training
        data of the prior.
    """
    if not priors:
        return
    is_known = known_to_priors(priors, hashes)
    if is_known.any():
        raise ValueError(
            "the guarantee only covers new problems, but the public prior in the scorer "
            f"was trained on the questions of {int(is_known.sum())} of {len(is_known)} "
            f"problems (the first is {batch.name_of(int(np.argmax(is_known)))}). Find "
            "these problems with the seen() method of the prior, and leave them out, or "
            "use another prior"
        )
    n_unknown = int((hashes.text < 0).sum())
    if n_unknown:
        warn(
            f"{n_unknown} of {len(is_known)} problems have no question, so it is unknown "
            "whether the public prior was trained on them. The guarantee does not hold "
            "for problems on which the prior was trained. Pass the questions as problem=",
            GuaranteeWarning,
        )
