"""Compare predicted error probabilities with the observed proportion of wrong texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count
from .._docs import documented
from .._html import Table
from ..estimators import ConformalFilter, check, flat_masks
from ..graphs import Labels, Problems, question_groups
from ..graphs.problems import Groups
from ..graphs.ragged import flatten
from ..metrics import mean_error, mean_interval, per_question
from ..ops.hard import segment_sum

FEWEST = 20  # With fewer texts per bin, the interval would be too wide to be useful.


@dataclass(frozen=True, eq=False, repr=False)
class ChanceReport(Table):
    """Report that compares predicted error probabilities with observed error rates.

    Texts are sorted by predicted probability and divided into bins of about equal size.

    Parameters
    ----------
    stated : ndarray of shape (n_bins,)
        Mean predicted error probability of the texts in each bin.
    observed : ndarray of shape (n_bins,)
        Proportion of texts in each bin that contain a false or unjudged claim. Results for
        several answers to the same question are averaged.
    observed_interval : ndarray of shape (n_bins, 2)
        Confidence interval (95 %) of ``observed``, computed over questions.
    n_texts : ndarray of int of shape (n_bins,)
        Number of texts in each bin.
    n_empty : int
        Number of problems without kept claims. Problems without kept claims have no error
        probability and are excluded.
    brier : float
        Brier score, which is the mean squared difference between the predicted probability and
        the outcome (0 or 1).
    brier_constant : float
        Brier score of the best constant prediction. This prediction is the proportion of wrong
        texts.
    brier_error : float
        Standard error of the difference between the two Brier scores, computed over questions.
    calibration_error : float
        Mean absolute difference between the predicted and the observed error rate of a bin,
        weighted by the number of texts in the bin.
    calibration_error_expected : float
        Approximate calibration error that is expected if all probabilities are correct.
    """

    stated: np.ndarray
    observed: np.ndarray
    observed_interval: np.ndarray
    n_texts: np.ndarray
    n_empty: int
    brier: float
    brier_constant: float
    brier_error: float
    calibration_error: float
    calibration_error_expected: float

    _fields = ("stated", "observed", "observed_interval", "n_texts")
    _columns = {
        "predicted": "{stated:.3f}",
        "observed": "{observed:.3f}",
        "95 % interval": "{observed_interval_low:.3f} - {observed_interval_high:.3f}",
        "texts": "{n_texts:d}",
    }

    def _heading(self):
        n = int(self.n_texts.sum())
        if not n:
            return "no text is shown, so there are no error probabilities"
        return (
            f"predicted and observed error rates of {n} texts; Brier score {self.brier:.3f}, "
            f"{self.brier_constant:.3f} +- {self.brier_error:.3f} for the best constant; "
            f"calibration error {self.calibration_error:.3f} (about "
            f"{self.calibration_error_expected:.3f} is expected by chance)"
        )

    @classmethod
    def from_predictions(
        cls,
        wrong: NDArray[Any],
        chance: NDArray[Any],
        *,
        groups: NDArray[Any] | None = None,
        n_bins: int = 10,
    ) -> ChanceReport:
        """Create a report from given error probabilities.

        Parameters
        ----------
        wrong : ndarray of bool of shape (n_problems,)
            Whether each text contains a false claim.
        chance : ndarray of shape (n_problems,)
            Predicted error probability of each text, or NaN for a problem without a text.
        groups : ndarray of shape (n_problems,), optional
            The question that each answer belongs to. If None, each answer belongs to a different
            question.
        n_bins : int, default=10
            Maximum number of bins. Fewer bins are used if a bin would otherwise contain fewer than
            20 texts.

        Returns
        -------
        report : ChanceReport
            The report, with one entry per bin.

        Raises
        ------
        ValueError
            If the lengths of the arguments differ, or if a probability is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from skdcf.evaluation import ChanceReport
        >>> rng = np.random.default_rng(0)
        >>> chance = rng.random(1000)
        >>> report = ChanceReport.from_predictions(rng.random(1000) < chance, chance)
        >>> bool(report.brier < report.brier_constant - 3 * report.brier_error)
        True
        """
        check_count("n_bins", n_bins, 1)
        wrong = np.asarray(wrong, dtype=np.float64)
        chance = np.asarray(chance, dtype=np.float64)
        questions = np.arange(len(chance)) if groups is None else np.asarray(groups)
        if not len(wrong) == len(chance) == len(questions):
            raise ValueError(
                "chance, wrong and groups must each have one value per problem, got "
                f"{len(chance)}, {len(wrong)} and {len(questions)} values"
            )
        shown = ~np.isnan(chance)
        n_empty = int((~shown).sum())
        wrong = wrong[shown]
        chance = chance[shown]
        questions = questions[shown]
        if ((chance < 0) | (chance > 1)).any():
            raise ValueError(
                "chance must contain probabilities between 0 and 1, got values outside this "
                "range"
            )

        n = len(chance)
        n_bins = max(1, min(n_bins, n // FEWEST)) if n else 0
        order = np.argsort(chance, kind="stable")
        rows = np.array_split(order, n_bins) if n_bins else []
        bins = [_bin(wrong[b], chance[b], questions[b]) for b in rows]
        stated, observed, low, high, n_texts = np.array(bins).reshape(-1, 5).T

        constant = wrong.mean() if n else np.nan
        brier = per_question((wrong - chance) ** 2, questions)
        brier_constant = per_question((wrong - constant) ** 2, questions)
        difference = brier - brier_constant
        return cls(
            stated=stated,
            observed=observed,
            observed_interval=np.stack([low, high], axis=1),
            n_texts=n_texts.astype(int),
            n_empty=n_empty,
            brier=float(brier.mean()) if n else np.nan,
            brier_constant=float(brier_constant.mean()) if n else np.nan,
            brier_error=float(mean_error(difference)),
            calibration_error=float(abs(stated - observed) @ n_texts / n)
            if n
            else np.nan,
            # The mean absolute deviation of a binomial proportion is 0.8 times its standard
            # deviation.
            calibration_error_expected=float(
                0.8 * np.sqrt(n_bins * constant * (1 - constant) / n)
            )
            if n
            else np.nan,
        )


def _bin(wrong, chance, questions):
    """Return the predicted and observed rates, the interval and the size of a bin."""
    right = 1 - per_question(wrong, questions)
    low, high = mean_interval(right, True, len(wrong))
    return chance.mean(), 1 - right.mean(), low, high, len(wrong)


@documented
def evaluate_error_probability(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    masks: Any = None,
    *,
    alpha: float | None = None,
    groups: Groups = None,
    n_bins: int = 10,
) -> ChanceReport:
    """Compare a filter's error probabilities with the labels of test problems.

    Parameters
    ----------
    filter : fitted filter
        The filter. The scorer of the filter must provide hazards (see the method
        `error_probability`).
    X : {problems}
        Test problems, in the format of the filter's `fit`.
    y : {labels}
        Claim labels of the test problems. A claim with an unknown label is treated as false.
    masks : sequence of boolean masks, optional
        Mask of the kept claims for each problem. If None, the masks are predicted.
    alpha : float in (0, 1), optional
        Level at which masks are predicted if ``masks`` is None. If ``alpha`` is None, the
        filter's alpha is used.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to, as in `skdcf.metrics.evaluate_filter`.
    n_bins : int, default=10
        Maximum number of bins. Each bin contains at least 20 texts.

    Returns
    -------
    report : ChanceReport
        The predicted and observed error rates in each bin. The report is printed as a table.

    Raises
    ------
    ValueError
        If problems, labels or masks are invalid, or if the scorer does not provide hazards.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import evaluate_error_probability
    >>> graphs, y = make_reasoning_graphs(600, "felm", random_state=0, return_X_y=True)
    >>> cf = CoherentConformalFilter(random_state=0).fit(graphs[:300], y[:300])
    >>> report = evaluate_error_probability(cf, graphs[300:], y[300:], n_bins=4)
    >>> bool(abs(report.stated - report.observed).max() < 0.15)
    True
    """
    batch, labels = check(filter, X, y)
    if masks is None:
        masks = batch.split(flat_masks(filter, batch, [alpha])[0])
        alpha = None
    chance = filter.error_probability(batch, masks, alpha=alpha)
    labels, kept, offsets = flatten(batch.split(labels), masks)
    wrong = segment_sum(kept & (labels != 1), offsets) > 0
    return ChanceReport.from_predictions(
        wrong, chance, groups=question_groups(batch, groups), n_bins=n_bins
    )
