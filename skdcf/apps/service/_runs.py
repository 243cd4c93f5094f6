"""Runs of agents that are open: a decision for each step, whatever becomes of the process."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...datasets.records import BROKEN
from ...datasets.runs import read_beginning, read_run
from ..web.refusal import RefusedError
from ._journal import Journal
from ._served import Served, Writing

_MOST_RUNS = 10_000
_LONGEST = 8 * 2**20  # characters of the texts of a run, as many as of a request
_MOST_TEXT = 2**28  # characters of all open runs together
_LONGEST_PAUSE = 7 * 24 * 3600.0  # seconds without a step, in which a person may decide
_MOST_IN_MEMORY = 256


@dataclass
class _Run:
    """A run as it stands in the journal.

    Parameters
    ----------
    head : dict
        What is known beforehand, as it was sent.
    writing : Writing
        Decides about the next step.
    steps : list of dict
        Those that were decided about, as they were sent.
    """

    head: dict[str, Any]
    writing: Writing
    steps: list[dict[str, Any]]


class Runs:
    """All runs that are open.

    Every method may be called from a thread of its own. The journal holds the runs, and
    other processes may go on with them. The last ones stay in memory as well; before use
    each takes in the steps that the journal has beyond them.

    Parameters
    ----------
    journal : Journal
        Where runs are kept.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._end_old()
        self._runs: dict[str, _Run] = {}  # the one that was used last stands last
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    @property
    def n_open(self) -> int:
        """How many runs are open."""
        return self._journal.size_of_runs()[0]

    def open(self, served: Served, head: dict[str, Any]) -> str:
        """Begin a run.

        Parameters
        ----------
        served : Served
            Its filter decides.
        head : dict
            What is known beforehand.

        Returns
        -------
        str
            The id of the run.

        Raises
        ------
        ValueError
            If the head is not as it has to be, or the filter cannot decide step by step.
        RefusedError
            If there is no folder, or if too many runs are open.
        """
        if not self._journal.in_folder:
            raise RefusedError(
                501, "runs are kept in a folder: start the service with --folder"
            )
        writing = _begin(served, head)
        self._end_old()
        self._refuse_too_much(len(json.dumps(head)), 0)
        if self.n_open >= _MOST_RUNS:
            raise RefusedError(503, "too many runs are open: close some of them")
        name = secrets.token_hex(12)
        self._journal.open_run(name, served.digest, head)
        self._keep(name, _Run(head, writing, []))
        return name

    def add(
        self, name: str, number: int, step: dict[str, Any], filters: Iterable[Served]
    ) -> bool:
        """Decide about the next step of a run.

        Parameters
        ----------
        name : str
            The id of the run.
        number : int
            The position of the step. One that was decided about already may be sent again.
        step : dict
            ``text`` and ``features``, as far as there are some. Without ``parents`` it
            builds on the step before it. Of a run that was opened with ``messages`` it has
            the messages since the step before, of which the last is its own.
        filters : iterable of Served
            All that are served.

        Returns
        -------
        bool
            Whether the step may be carried out; False for each after the first that may not.

        Raises
        ------
        ValueError
            If the step is not as it has to be; the run is as before.
        RefusedError
            If no such run is open, if it is another step's turn, or if it is too long.
        """
        with self._alone(name, filters) as run:
            n_steps = len(run.steps)
            if number > n_steps:
                raise RefusedError(
                    409,
                    f"step {number} comes too early: the next one is step {n_steps}",
                )
            if number < n_steps:
                return _decision(run, number, step)
            self._refuse_too_much(len(json.dumps(step)), self._journal.run(name).size)
            claim = _claims_of(run.head, [*run.steps, step])[-1]
            keep = run.writing.add(claim)
            run.steps.append(step)
            if self._journal.add_step(name, number, step, keep):
                return keep
            # Another process was asked for this number at the same time, and was faster.
            run = self._catch_up(name, None, filters)
            return _decision(run, number, step)

    def close(self, name: str, filters: Iterable[Served]) -> Writing:
        """End a run, and put an answer with its id in its place.

        Parameters
        ----------
        name : str
            The id of the run.
        filters : iterable of Served
            All that are served.

        Returns
        -------
        Writing
            What was written.

        Raises
        ------
        RefusedError
            If no such run is open, or another process adds a step to it.
        """
        with self._alone(name, filters) as run:
            if not self._journal.close_run(run.writing.entry(name)):
                raise RefusedError(
                    409,
                    "a step of this run was decided about meanwhile: close it again",
                )
            del self._runs[name]
            return run.writing

    def _end_old(self) -> None:
        """Remove the runs without a step for too long."""
        self._journal.end_runs(before=time.time() - _LONGEST_PAUSE)

    def _refuse_too_much(self, n_new: int, n_before: int) -> None:
        """RefusedError where texts become too long: of this run, or of all together."""
        if n_before + n_new > _LONGEST:
            raise RefusedError(413, f"a run has at most {_LONGEST:,} characters")
        if self._journal.size_of_runs()[1] + n_new > _MOST_TEXT:
            raise RefusedError(503, "open runs hold too much text: close some of them")

    @contextmanager
    def _alone(self, name: str, filters: Iterable[Served]) -> Iterator[_Run]:
        """The run, of which nothing else in this process does anything.

        After an error it is read from the journal again.
        """
        self._end_old()
        with self._lock:
            if name in self._busy:
                raise RefusedError(
                    409, "a step of this run is decided about: wait for the reply"
                )
            self._busy.add(name)
        try:
            run = self._catch_up(name, self._runs.pop(name, None), filters)
            self._keep(name, run)
            yield run
        except BaseException:
            self._runs.pop(name, None)
            raise
        finally:
            self._busy.discard(name)

    def _keep(self, name: str, run: _Run) -> None:
        """Keep a run in memory, and forget the one that was not used for longest."""
        with self._lock:
            self._runs[name] = run
            if len(self._runs) > _MOST_IN_MEMORY:
                del self._runs[next(iter(self._runs))]

    def _catch_up(self, name: str, run: _Run | None, filters: Iterable[Served]) -> _Run:
        """The run with all steps of the journal, which are decided about once more."""
        state = self._journal.run(name)
        if run is None:
            served = [served for served in filters if served.digest == state.filter]
            if not served:
                raise RefusedError(
                    409,
                    "the filter of this run is not served any more: open another run",
                )
            head = self._journal.head(name)
            run = _Run(head, _begin(served[0], head), [])
        n_known = len(run.steps)
        if n_known == state.n_steps:
            return run
        added = self._journal.steps(name, n_known)
        run.steps += [step for step, _ in added]
        claims = _claims_of(run.head, run.steps)[n_known:]
        for number, (claim, (_, keep)) in enumerate(
            zip(claims, added, strict=True), n_known
        ):
            if run.writing.add(claim) != keep:
                raise RefusedError(
                    409,
                    f"step {number} would be decided about otherwise now: open another run",
                )
        return run


def _decision(run: _Run, number: int, step: dict[str, Any]) -> bool:
    """The decision about a step that is sent again, perhaps since its reply was lost."""
    if step != run.steps[number]:
        raise RefusedError(409, f"step {number} was decided about, and was another one")
    return run.writing.mask[number]


def _begin(served: Served, head: dict[str, Any]) -> Writing:
    """Begin a decision about the steps of a run, before the first one."""
    known = {key: value for key, value in head.items() if key != "messages"}
    if "messages" in head:
        known = read_beginning(head) | known
    return Writing(served, known | {"stop": True})


def _claims_of(
    head: dict[str, Any], steps: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Steps as claims, each of which builds on the one before it."""
    has_messages = "messages" in head
    if any(("messages" in step) != has_messages for step in steps):
        raise ValueError(
            "a run is sent in messages from its beginning to its end, or not at all: send "
            'them as "messages" when it is opened, and those since then with each step'
        )
    if has_messages and steps:
        steps = _steps_in_messages(head, steps)
    return [{"parents": [v - 1] if v else []} | step for v, step in enumerate(steps)]


def _steps_in_messages(
    head: dict[str, Any], sent: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Texts and columns of steps that were sent as messages."""
    messages = [message for body in (head, *sent) for message in body["messages"]]
    run = {"task": "open", "messages": messages}
    try:
        record = read_run(run, "chain", head.get("alternatives"))
    except BROKEN as error:
        raise ValueError(str(error)) from error
    n_new = len(record["claims"]) - len(sent) + 1
    if n_new != 1:
        raise ValueError(
            f"these messages hold {n_new} steps: send with each step its own message alone, "
            "after what stands before it"
        )
    rows = zip(record["claims"], record["features"], strict=True)
    return [{"text": text, "features": features} for text, features in rows]
