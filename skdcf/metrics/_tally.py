"""What is counted per problem and level, and its means over questions."""

import numpy as np

from .._checks import check_choice
from ..graphs.grouping import read_groups
from ..ops.hard import segment_sum
from ._filter_report import FilterReport
from ._intervals import band_of_law, mean_interval
from ._scores import first_true


class Tally:
    """Counts of the kept claims, each of shape (n_alphas, n_problems).

    Parameters
    ----------
    guarantee : Guarantee
        It says what is lost.
    alphas : ndarray of shape (n_alphas,)
    kept : ndarray of bool, shape (n_alphas, n_claims)
    labels : ndarray of int, shape (n_claims,)
    offsets : ndarray of int, shape (n_problems + 1,)
    questions : ndarray of int, shape (n_problems,)
        The question that each problem answers.
    chain : bool
        Whether claims build on each other in their order.
    weight : ndarray of shape (n_claims,), optional
        How much each claim matters.
    """

    def __init__(
        self,
        guarantee,
        alphas,
        kept,
        labels,
        offsets,
        questions,
        chain=False,
        weight=None,
    ):
        true, n = labels == 1, len(offsets) - 1
        unknown = np.full((len(alphas), n), np.nan)
        self.alphas, self.questions = alphas, questions
        self.is_probability = guarantee.is_probability
        loss = np.array([guarantee.loss(labels, k, offsets) for k in kept], float)
        empty = _sums(kept, offsets) == 0
        prefixes = (first_true(~(k & true), offsets) for k in kept)
        self.counts = {
            "loss": loss,
            "retention": _sums(kept & true, offsets),
            "false_kept": _sums(kept & ~true, offsets),
            "empty": empty.astype(float),
            "lost_nonempty": loss * ~empty,
            "clean_prefix": np.array([*prefixes]) if chain else unknown,
            "weighted_retention": unknown
            if weight is None
            else _sums((kept & true) * weight, offsets),
        }

    def report(self, theory, parts=None):
        """Make a `FilterReport`, and in it one for each group, {name: its problems}."""
        own = theory | {"laws": [None] * len(self.alphas)}
        groups = {name: self._report(rows, own) for name, rows in (parts or {}).items()}
        return self._report(np.arange(len(self.questions)), theory, groups)

    def _report(self, rows, theory, groups=None):
        questions = self.questions[rows]
        counts = self.counts.items()
        each = {k: mean_per_question(v[:, rows], questions) for k, v in counts}
        mean = {name: values.mean(axis=1) for name, values in each.items()}
        n = each["loss"].shape[1]
        with np.errstate(invalid="ignore"):
            among = 1 - mean["lost_nonempty"] / (1 - mean["empty"])
        same = ("retention", "false_kept", "clean_prefix", "weighted_retention")
        return FilterReport(
            alpha=self.alphas,
            coverage=1 - mean["loss"],
            coverage_interval=np.array(
                [mean_interval(r, self.is_probability, len(rows)) for r in each["loss"]]
            ),
            coverage_band=np.array(
                [band_of_law(law, 0.95, n) for law in theory["laws"]]
            ),
            retention_error=standard_error(each["retention"]),
            abstention=mean["empty"],
            threshold=np.array(theory["thresholds"]),
            nonempty_coverage=among,
            n_problems=len(rows),
            n_questions=n,
            n_calibration=theory["n_calibration"],
            seen=tuple(int(seen[rows].sum()) for seen in theory["seen"]),
            groups=groups or {},
            **{name: mean[name] for name in same},
        )


def _sums(values, offsets):
    return np.array([segment_sum(row, offsets) for row in values], float)


def mean_per_question(values, questions):
    """Mean over the answers to each question, shape (..., n_questions).

    Parameters
    ----------
    values : ndarray of shape (..., n_problems)
    questions : ndarray of int, shape (n_problems,)
    """
    found, code, count = np.unique(questions, return_inverse=True, return_counts=True)
    if len(found) == len(questions):
        return values
    return np.apply_along_axis(lambda row: np.bincount(code, row), -1, values) / count


def standard_error(values):
    """Standard error of the mean over the last axis; NaN of a single value."""
    n = values.shape[-1]
    if n < 2:
        return np.full(values.shape[:-1], np.nan)
    return values.std(axis=-1, ddof=1) / np.sqrt(n)


def is_chain(batch):
    """Whether every claim but the first of each problem builds on the one before it."""
    edges = batch.edges
    n_pairs = int(np.maximum(batch.sizes - 1, 0).sum())
    return len(edges) == n_pairs and bool((edges[:, 1] - edges[:, 0] == 1).all())


def claim_weights(claim_weight, batch):
    """How much each claim matters, shape (n_claims,), or ValueError."""
    if isinstance(claim_weight, str):
        check_choice("claim_weight", claim_weight, batch.feature_names or ())
        return batch.features[:, batch.feature_names.index(claim_weight)]
    values = claim_weight(batch) if callable(claim_weight) else claim_weight
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (batch.n_claims,) or not np.isfinite(values).all():
        raise ValueError(
            f"claim_weight has shape {values.shape}, but {batch.n_claims} finite numbers "
            "are needed, one per claim"
        )
    return values


def rows_by_group(by, batch):
    """The numbers of the problems of each group; a problem may be in several."""
    return rows_by_value(*read_groups(by, batch))


def rows_by_value(values, overlap=False):
    """The places of each value; with ``overlap`` values are sets."""
    places: dict = {}
    for i, value in enumerate(values):
        for name in sorted(value, key=str) if overlap else [value]:
            places.setdefault(name, []).append(i)
    return {name: np.array(rows) for name, rows in places.items()}
