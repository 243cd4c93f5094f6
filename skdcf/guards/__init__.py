"""Guards against silent violations of the guarantee.

Five functions call the guards, and each of these functions is called in only one place.

* `at_fit` is called after the problems are split and before any training.
* `at_calibrate` is called after the calibration problems are selected.
* `at_scores` is called after the calibration problems are scored.
* `at_use` is called before a calibrated filter is applied to problems.
* `at_choice` is called before a filter chooses one of several answers to a question.

If a guard finds a violation, it raises an error or issues a warning. `at_fit` and `at_calibrate`
also store the provenance and the kinds of judges on the filter, so later problems can be compared
with them. The guard `rounding` also lowers scores to allow for differences between machines.
Unknown edges are refused when problems are read.
"""

from __future__ import annotations

from .choices import refuse_chosen, refuse_other_scorer
from .copies import refuse_copies, with_texts
from .dependence import refuse_dependence
from .direction import warn_of_direction, warn_of_reversed_edges
from .labels import refuse_chosen_labels, warn_of_no_errors, warn_of_unjudged
from .leakage import warn_of_labels_among_columns
from .overlap import refuse_trained, warn_of_copies_across_split
from .presence import compare_presence, presence_of, warn_of_counts, warn_of_edges
from .provenance import compare_provenance, origin_of
from .rounding import Precision, measured_rounding, resolution_of
from .settings import refuse_changed


def at_fit(estimator, view, training_rows, calibration_rows):
    """Check the split into training and calibration problems before training starts.

    Parameters
    ----------
    estimator : filter
        The filter to be fitted. Records how the calibration problems were made.
    view : View
        The problems, with labels and hashes.
    training_rows, calibration_rows : ndarray of int
        Indices of the training and calibration problems. If there are no training problems, the
        scorer is not trained.
    """
    if len(calibration_rows):
        refuse_chosen_labels(view.raw)
    warn_of_reversed_edges(view.raw)
    warn_of_labels_among_columns(view.raw, view.labels)
    has_texts = with_texts(view.raw)[calibration_rows]
    refuse_copies(view.hashes[calibration_rows], has_texts)
    if len(training_rows):
        warn_of_copies_across_split(view, training_rows, calibration_rows)
        warn_of_no_errors(view.labels)
    calibration = view.take(calibration_rows)
    # Without calibration problems, the fields of the training problems are recorded.
    origin = origin_of(estimator, calibration.raw, calibration.labels)
    if not len(calibration_rows):
        origin["presence"] = presence_of(estimator, view.raw)
    estimator._origin = origin
    warn_of_unjudged(calibration.raw, calibration.labels)


def at_calibrate(estimator, view):
    """Check the problems used to calibrate a fitted filter.

    Parameters
    ----------
    estimator : fitted filter
        The filter to calibrate. The filter's training problems are rejected.
    view : View
        The problems, with labels and hashes.
    """
    refuse_chosen_labels(view.raw)
    refuse_trained(view.raw, view.hashes, estimator._trained)
    refuse_other_scorer(estimator, view.raw)
    replace_origin(estimator, origin_of(estimator, view.raw, view.labels))
    warn_of_unjudged(view.raw, view.labels)


def at_scores(estimator, view, named, risks):
    """Check the scores of the calibration problems and measure the rounding errors of the scores.

    Parameters
    ----------
    estimator : fitted filter
        The filter whose scorer computed the confidences.
    view : View
        The problems, with labels and confidences.
    named : GraphBatch
        The problems, including the columns that the guarantee refers to by name.
    risks : PathRisks
        Path risks on which the guarantee is calibrated.

    Returns
    -------
    precision : Precision
        The precision with which the scores can be reproduced. The scores are lowered accordingly.
    """
    warn_of_direction(view.confidence, view.labels, view.raw.problem_of)
    refuse_dependence(estimator._resolved_guarantee(), named, risks.groups)
    rounding = 0.0
    # If no columns are fitted and the scores of a problem are bitwise equal in every batch, there
    # is no rounding error to measure.
    if not estimator.scorer_.batch_invariant or estimator.features_ is not None:
        confidence_alone = estimator._confidence_alone
        rounding = measured_rounding(confidence_alone, view.raw, view.confidence)
    batches = view.raw, view.with_columns
    resolution = resolution_of(estimator.scorer_, batches, view.confidence)
    return Precision(resolution, rounding)


def at_use(estimator, batch, *, labelled=False):
    """Check new problems before a calibrated filter computes their columns and filters them.

    Parameters
    ----------
    estimator : fitted filter
        The filter whose settings and ``provenance_`` are compared with the problems.
    batch : GraphBatch
        The problems passed by the caller.
    labelled : bool, default=False
        Whether the problems have labels. If True, the meanings of the labels are compared as
        well.
    """
    left_out = () if labelled else ("label_",)
    _compare(estimator, batch, prefix_left_out=left_out)


def at_choice(estimator, batch):
    """Check the answers from which a fitted filter chooses one per question.

    The rule that chose the calibration answers is not compared, because no rule has been applied
    to the new answers yet.

    Parameters
    ----------
    estimator : fitted filter
        The filter whose settings and ``provenance_`` are compared with the answers.
    batch : GraphBatch
        All sampled answers.
    """
    refuse_chosen(batch)
    _compare(estimator, batch, prefix_left_out=("label_", "chosen_"))


def replace_origin(estimator, origin):
    """Record how new calibration problems were made, in place of the earlier ones."""
    presence = estimator._origin["presence"]
    compare_presence(presence, origin["presence"])
    warn_of_edges(presence, origin["presence"])
    estimator._origin = origin


def _compare(estimator, batch, *, prefix_left_out):
    """Compare settings, fields and provenance of problems with those in calibration."""
    refuse_changed(estimator)
    calibrated = estimator._origin
    new = origin_of(estimator, batch)
    compare_presence(calibrated["presence"], new["presence"])
    warn_of_edges(calibrated["presence"], new["presence"])
    warn_of_counts(calibrated["presence"], new["presence"])
    compare_provenance(
        calibrated["provenance"], new["provenance"], prefix_left_out=prefix_left_out
    )
