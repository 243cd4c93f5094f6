"""Select the claims of a batch with a bound on the error rate among the shown texts."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike, NDArray

from .._checks import check_alpha
from .._docs import documented
from ..choosing import shown_masks
from ..filters import ConformalFilter
from ..graphs import Problems


@documented
def release(
    filter: ConformalFilter,
    X: Problems,
    alpha: float,
    *,
    groups: ArrayLike | Literal[False] | None = None,
    one_per_question: bool = False,
) -> NDArray[Any]:
    """Select claims in a batch, with a bound on the error rate among the shown texts.

    An answer is shown to readers if at least one of its claims is kept. Within a batch, the
    expected proportion of shown answers that contain a false claim is at most ``alpha``. For a
    batch without shown answers, this proportion is defined as 0. Over many batches, the
    proportion of shown answers that contain a false claim is about ``alpha`` divided by the
    proportion of batches in which an answer is shown. If the batches are small, the proportion
    over many batches can therefore be far above ``alpha``. A filter whose guarantee has ``show=``
    bounds the error rate among passing answers for batches of any size. For `predict` with
    ``show=1``, an answer without kept claims counts as a success.

    Parameters
    ----------
    filter : fitted filter
        A filter with the guarantee `~skdcf.guarantees.NoFalseClaim` without ``delta``. The filter's
        alpha only determines the required number of calibration answers.
        `release` requires more calibration answers than `predict`. Calibrate the filter at
        the level ``alpha`` times the expected proportion of shown answers.
    X : {problems}
        The new answers in the batch, one per question. If the guarantee has groups (``by=``), each
        group is a separate batch.
    alpha : float in (0, 1)
        Upper bound on the expected proportion of shown answers that contain a false claim.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to, as in the filter's ``calibrate``.
    one_per_question : bool
        Whether to filter only one answer per question, which is selected by a hash. In the other
        answers to the same question, no claim is kept.

    Returns
    -------
    masks : ndarray of shape (n_problems,)
        An object array with one boolean mask per problem, as returned by `predict`.

    Raises
    ------
    ValueError
        If a question was used for training or calibration, if two answers belong to the same
        question, or if the guarantee of the filter is not supported.

    Warns
    -----
    CalibrationWarning
        If no answer is shown.

    Notes
    -----
    The proof requires that the calibration answers and any single new answer are
    exchangeable, given the other new answers. Whether an answer is shown depends on its batch. For
    a batch of one answer, the result is the same as that of `predict`.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import release
    >>> graphs, y = make_reasoning_graphs(
    ...     1000, kind="felm", random_state=0, return_X_y=True
    ... )
    >>> cf = HardCF(alpha=0.02, random_state=0).fit(graphs[:600], y[:600])
    >>> masks = release(cf, graphs[600:], alpha=0.1)
    >>> shown = [bool(mask.any()) for mask in masks]
    >>> wrong = [bool((row[mask] == 0).any()) for row, mask in zip(y[600:], masks)]
    >>> sum(shown), sum(wrong)
    (254, 8)
    """
    alpha = check_alpha(alpha)
    filter.check_calibrated()
    return shown_masks(
        filter, X, alpha, groups=groups, one_per_question=one_per_question
    )
