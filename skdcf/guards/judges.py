"""Guard against calibration labels that were assigned by a language model.

If a model assigned the labels, the guarantee holds only with respect to the model's verdicts. After
calibration at alpha = 0.1 on the verdicts of six models, 3 to 64 % of the filtered agent runs
contained a step that people judged to be wrong. If people
judged some calibration answers, the answers judged only by a model are not used for calibration.
When parts with human labels and parts with model labels were joined, the miscoverage was 0.20.
"""

from __future__ import annotations

from itertools import compress

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs import GraphBatch
from ..graphs.sources import SOURCES, iterate_sources, read_sources

_FEW = 0.05  # proportion of model labels above which a warning is issued
_NO_ERROR = "no false claim"


#: Possible judges of an answer: unknown, only a model, or a person who labelled a random sample.
#: REACHED marks an answer without claims that came up while the annotator judged answers in
#: random order.
NOBODY, MODEL, PERSON, REACHED = range(4)


def judges_of(batch: GraphBatch) -> NDArray[np.int8]:
    """Return a code for each answer that states who judged the answer.

    A randomly drawn answer counts as judged by a person if a person labelled at least one of its
    claims. Counting only completely labelled answers would over-represent short answers.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    judges : ndarray of int8 of shape (n_problems,)
        The code of each problem, which is `NOBODY`, `MODEL`, `PERSON` or `REACHED`.
    """
    judges = np.full(len(batch), NOBODY, dtype=np.int8)
    for i, row in enumerate(batch.metadata_rows):
        if not (SOURCES in row or "sampling" in row):
            continue
        size = int(batch.sizes[i])
        drawn = row.get("sampling")
        kinds = {source["kind"] for source in read_sources(row, size) if source}
        if drawn == "random" and "human" in kinds:
            judges[i] = PERSON if size else REACHED
        elif drawn == "reached" and not size:
            judges[i] = REACHED
        elif "model" in kinds:
            judges[i] = MODEL
    return judges


def kinds_of(judges: NDArray[np.int8]) -> list[str]:
    """Return the kinds of judges of the given answers, as stored in ``provenance_``.

    Parameters
    ----------
    judges : ndarray of int8 of shape (n_problems,)
        Result of `judges_of`.

    Returns
    -------
    kinds : list of {"model", "person"}
        The kinds of judges who judged at least one answer.
    """
    names = {"model": MODEL, "person": PERSON}
    return [name for name, code in names.items() if (judges == code).any()]


def person_judged(judges: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return which answers are used for calibration if both people and models judged answers.

    Parameters
    ----------
    judges : ndarray of int8 of shape (n_problems,)
        Result of `judges_of`.

    Returns
    -------
    mask : ndarray of bool of shape (n_problems,)
        Whether each answer is used for calibration.
    """
    return np.isin(judges, (PERSON, REACHED))


def labels_of_people(labels: NDArray[np.int8], batch: GraphBatch) -> NDArray[np.int8]:
    """Return the labels, with model labels removed from answers that people judged.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    batch : GraphBatch
        The problems.

    Returns
    -------
    remaining_labels : ndarray of shape (n_claims,)
        The labels after the removal of model labels. A removed label is replaced with -1, which
        counts as false in calibration.
    """
    people = person_judged(judges_of(batch))
    if not people.any():
        return labels
    by_person = np.array(
        [
            bool(source) and source["kind"] == "human"
            for source in iterate_sources(batch)
        ],
        dtype=bool,
    )
    return np.where(people[batch.problem_of] & ~by_person, np.int8(-1), labels)


def note_judges(estimator, batch, labels):
    """Store the proportion of labels assigned by models, and warn if it exceeds 5 %."""
    judged = labels >= 0
    sources = () if batch.metadata is None else compress(iterate_sources(batch), judged)
    models = [row["by"] for row in sources if row and row["kind"] == "model"]
    share = len(models) / max(int(judged.sum()), 1)
    names = sorted(set(map(str, models)))
    estimator.provenance_ |= {"judged": [share], "judges": names}
    if share > _FEW:
        warn(
            f"a language model assigned {share:.0%} of the calibration labels "
            f"({', '.join(names)}), so the guarantee applies to the verdicts of this model "
            "and does not bound the errors that the model overlooks. Let a person label a "
            "random sample of answers (skdcf label). Then use these answers for "
            "calibration and the others for training (skdcf fit --people FILE). To "
            "measure the reliability of the model labels, use skdcf.apps.labelling.agreement",
            LabelWarning,
        )


def name_errors(sentence, origin):
    """Add the meaning of "false" and the kinds of judges to a sentence about the guarantee."""
    shares = origin.get("judged") or [0.0]
    judges = ", ".join(origin.get("judges", ()))
    meanings = {meaning for meaning in origin.get("label_meaning", ()) if meaning}
    supported = meanings == {"supported"}
    error = "is unsupported by its context" if supported else ""
    if min(shares) == 1:
        verdict = "finds unsupported by its context" if supported else "calls false"
        error = f"the judge {judges} {verdict}"
    elif max(shares) > 0:
        most = "up to " * (len(shares) > 1)
        sentence += (
            f" (the judge {judges} assigned {most}{max(shares):.0%} of the labels)"
        )
    if error and _NO_ERROR in sentence:
        sentence = sentence.replace(_NO_ERROR, f"no claim that {error}")
        error = ""
    if any(origin.get("reviewed", ())):
        sentence += (
            " (if the filter of the review that trained the scorer had not seen any of the "
            "calibration answers)"
        )
    return f"{sentence}. A false claim is a claim that {error}" if error else sentence
