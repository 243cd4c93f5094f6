"""People calibrate and a model's verdicts train, where a file holds both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs import GraphBatch
from ..graphs.sources import SOURCES, iterate_sources, read_sources


def judged_by_people(batch: GraphBatch) -> NDArray[np.bool_] | None:
    """Tell which problems people judged, if a model judged others.

    Of the answers that were drawn blindly, those that a person has begun: "judged wholly"
    would choose the short ones. An empty answer counts where the order had come to it.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of bool, shape (n_problems,), or None
        None where there are no answers of either kind, so that all count alike.
    """
    metadata = () if batch.metadata is None else batch.metadata
    if not any(row and SOURCES in row for row in metadata):
        return None
    by_people = np.zeros(len(batch), dtype=bool)
    by_model = np.zeros(len(batch), dtype=bool)
    for i, (row, size) in enumerate(zip(metadata, batch.sizes.tolist(), strict=True)):
        drawn = (row or {}).get("sampling")
        kinds = {source["kind"] for source in read_sources(row, size) if source}
        begun = drawn == "random" and "human" in kinds
        by_people[i] = begun or (drawn == "reached" and not size)
        by_model[i] = "model" in kinds and not by_people[i]
    if not (by_people & (batch.sizes > 0)).any() or not by_model.any():
        return None
    return by_people


def without_verdicts_of_models(
    labels: NDArray[np.int8], batch: GraphBatch, people: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """Labels, where those that no person gave to an answer judged by people are unknown.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        1, 0 and -1.
    batch : GraphBatch
        The problems.
    people : ndarray of bool, shape (n_problems,)
        The problems that people judged.

    Returns
    -------
    ndarray of shape (n_claims,)
        The labels. What is unknown counts as false where it calibrates.
    """
    by_person = np.array(
        [
            bool(source) and source["kind"] == "human"
            for source in iterate_sources(batch)
        ],
        dtype=bool,
    )
    return np.where(people[batch.problem_of] & ~by_person, np.int8(-1), labels)


def warn_of_verdicts(people: NDArray[np.bool_]) -> None:
    """Warn that verdicts of a model are left out where nothing learns from them.

    Parameters
    ----------
    people : ndarray of bool, shape (n_problems,)
        The problems that people judged.
    """
    warn(
        f"people judged {int(people.sum())} of these answers, which calibrate alone: nothing "
        f"here learns from a model's verdicts, and the other {int((~people).sum())} answers "
        "are left out",
        LabelWarning,
    )


def divide(
    people: NDArray[np.bool_], question: NDArray[np.int64], learning: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Problems that train, and problems that calibrate.

    Parameters
    ----------
    people : ndarray of bool, shape (n_problems,)
        The problems that people judged: all of these calibrate.
    question : ndarray of int, shape (n_problems,)
        The question of each problem. One that people judged an answer to trains nothing.
    learning : bool
        Whether columns or scorer learn.

    Returns
    -------
    train, calibrate : ndarray of int
        Positions of the problems.

    Raises
    ------
    ValueError
        If nothing is left to train.
    """
    calibrate = np.flatnonzero(people)
    train = np.flatnonzero(~people & ~np.isin(question, question[calibrate]))
    if not learning:
        warn_of_verdicts(people)
    elif not len(train):
        raise ValueError(
            "a model judged only answers to questions of which people judged an answer, too. "
            "These calibrate, so that nothing is left to train: add answers to other questions"
        )
    return train, calibrate
