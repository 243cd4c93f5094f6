"""Calibration labels that a language model gave.

The guarantee is then about the model's verdicts. After calibration on a strong model's verdicts,
13 to 25 % of the answers contained something that people call false, at alpha .1. If people judged
some of the calibration answers, those that a model judged are left out: when parts of both kinds
were joined, miscoverage was .20.
"""

from __future__ import annotations

from itertools import compress

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs import GraphBatch
from ..graphs.sources import SOURCES, iterate_sources, read_sources

_FEW = 0.05  # share of what is not as it should be above which there is a warning
_NOTHING = "nothing false"


#: Who judged an answer: nobody who is known, a model alone, a person who drew it blindly; and
#: an answer without claims that the order of a person had come to.
NOBODY, MODEL, PERSON, REACHED = range(4)


def judges_of(batch: GraphBatch) -> NDArray[np.int8]:
    """Tell who judged each answer.

    Of the answers that were drawn blindly, a person judged those that a person has begun:
    "judged wholly" would choose the short ones.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of int8, shape (n_problems,)
        `NOBODY`, `MODEL`, `PERSON` or `REACHED`.
    """
    judges = np.full(len(batch), NOBODY, dtype=np.int8)
    metadata = () if batch.metadata is None else batch.metadata
    for i, (row, size) in enumerate(zip(metadata, batch.sizes.tolist(), strict=False)):
        if not row or not (SOURCES in row or "sampling" in row):
            continue
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
    """Name the kinds of judges of some answers, as ``provenance_["judged_by"]`` has them.

    Parameters
    ----------
    judges : ndarray of int8, shape (n_problems,)
        From `judges_of`.

    Returns
    -------
    list of {"model", "person"}
    """
    names = {"model": MODEL, "person": PERSON}
    return [name for name, code in names.items() if (judges == code).any()]


def person_judged(judges: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Tell which answers calibrate if a person judged some and a model others.

    Parameters
    ----------
    judges : ndarray of int8, shape (n_problems,)
        From `judges_of`.

    Returns
    -------
    ndarray of bool, shape (n_problems,)
    """
    return np.isin(judges, (PERSON, REACHED))


def labels_of_people(labels: NDArray[np.int8], batch: GraphBatch) -> NDArray[np.int8]:
    """Labels, where those that no person gave to an answer judged by people are unknown.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        1, 0 and -1.
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of shape (n_claims,)
        The labels. What is unknown counts as false where it calibrates.
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
    """Note which share of the labels models gave; warn where it is more than a few."""
    judged = labels >= 0
    sources = () if batch.metadata is None else compress(iterate_sources(batch), judged)
    models = [row["by"] for row in sources if row and row["kind"] == "model"]
    share = len(models) / max(int(judged.sum()), 1)
    names = sorted(set(map(str, models)))
    estimator.provenance_ |= {"judged": [share], "judges": names}
    if share > _FEW:
        warn(
            f"{share:.0%} of the labels that calibrate were given by a language model "
            f"({', '.join(names)}), so that the promise is about its verdicts: of errors "
            "that it overlooks, any number may be kept. Draw some answers blindly and let a "
            "person judge them (skdcf label): then these calibrate, and the model's labels "
            "train (skdcf fit --people FILE). skdcf label --compare says how far the model's "
            "labels can be trusted",
            LabelWarning,
        )


def name_errors(sentence, origin):
    """The sentence of a guarantee, which says what its labels call false, and who does."""
    shares = origin.get("judged") or [0.0]
    judges = ", ".join(origin.get("judges", ()))
    meanings = {meaning for meaning in origin.get("label_meaning", ()) if meaning}
    supported = meanings == {"supported"}
    error = "its context does not support" if supported else ""
    if min(shares) == 1:
        verdict = "finds unsupported by its context" if supported else "calls false"
        error = f"judge {judges} {verdict}"
    elif max(shares) > 0:
        most = "up to " * (len(shares) > 1)
        sentence += f" (judge {judges} gave {most}{max(shares):.0%} of the labels)"
    if error and _NOTHING in sentence:
        sentence = sentence.replace(_NOTHING, f"nothing that {error}")
    elif error:
        sentence = f"{sentence}, where false is what {error}"
    if any(origin.get("reviewed", ())):
        sentence += (
            " (if the filter of the review that trained the scorer knew none of the "
            "calibration answers)"
        )
    return sentence
