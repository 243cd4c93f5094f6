"""Runs of agents that are open: a decision for each step, whatever becomes of the process."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...datasets.records import BROKEN
from ...datasets.runs import read_beginning, read_run
from ._journal import Journal
from ._requests import RefusedError
from ._served import Served, Writing

_MOST_RUNS = 10_000
_LONGEST = 8 * 2**20  # characters of the texts of a run, as many as of a request
_MOST_TEXT = 2**28  # characters of all open runs together
_LONGEST_PAUSE = 7 * 24 * 3600.0  # seconds without a step, in which a person may decide


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

    Every method may be called from a thread of its own. What is in memory stands in the
    journal, too, and is read from there after a restart, and after every error.

    Parameters
    ----------
    journal : Journal
        Where runs are kept.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        journal.end_runs(before=time.time() - _LONGEST_PAUSE)
        self._sizes = journal.sizes_of_runs()
        self._runs: dict[str, _Run] = {}
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    @property
    def n_open(self) -> int:
        """How many runs are open."""
        return len(self._sizes)

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
        if "stop" in head:
            raise ValueError(
                'a run always stops at the first step that is not kept: leave "stop" out'
            )
        writing = _begin(served, head)
        self._end_old()
        n_new = len(json.dumps(head))
        with self._lock:
            if self.n_open >= _MOST_RUNS:
                raise RefusedError(503, "too many runs are open: close some of them")
            self._refuse_too_much(n_new, 0)
            name = secrets.token_hex(12)
            self._journal.open_run(name, served.digest, head)
            self._sizes[name] = n_new
            self._runs[name] = _Run(head, writing, [])
        return name

    def add(
        self, name: Any, number: Any, step: dict[str, Any], filters: Iterable[Served]
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
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(
                f'"claim" is {number!r}, but must be the position of the step in its run, '
                "from 0 on"
            )
        with self._alone(name, filters) as run:
            n_steps = len(run.steps)
            if number > n_steps:
                raise RefusedError(
                    409,
                    f"step {number} comes too early: the next one is step {n_steps}",
                )
            # The step is sent again, perhaps since its reply was lost.
            if number < n_steps:
                if step != run.steps[number]:
                    raise RefusedError(
                        409, f"step {number} was decided about, and was another one"
                    )
                return run.writing.mask[number]
            n_new = len(json.dumps(step))
            self._refuse_too_much(n_new, self._sizes[name])
            claim = _claims_of(run.head, [*run.steps, step])[-1]
            keep = run.writing.add(claim)
            self._journal.add_step(name, number, step, keep)
            run.steps.append(step)
            self._sizes[name] += n_new
            return keep

    def close(
        self,
        name: Any,
        filters: Iterable[Served],
        save: Callable[[Writing, str], dict[str, Any]],
    ) -> dict[str, Any]:
        """End a run.

        Parameters
        ----------
        name : str
            The id of the run.
        filters : iterable of Served
            All that are served.
        save : callable
            Takes what was written and the id, and puts the answer in the place of the run.

        Returns
        -------
        dict
            What `save` says of it.

        Raises
        ------
        RefusedError
            If no such run is open.
        """
        with self._alone(name, filters) as run:
            reply = save(run.writing, name)
            del self._runs[name]
            del self._sizes[name]
            return reply

    def _end_old(self) -> None:
        """Forget the runs without a step for too long."""
        for name in self._journal.end_runs(before=time.time() - _LONGEST_PAUSE):
            self._sizes.pop(name, None)
            self._runs.pop(name, None)

    def _refuse_too_much(self, n_new: int, n_before: int) -> None:
        """RefusedError where texts become too long: of this run, or of all together."""
        if n_before + n_new > _LONGEST:
            raise RefusedError(413, f"a run has at most {_LONGEST:,} characters")
        if sum(self._sizes.values()) + n_new > _MOST_TEXT:
            raise RefusedError(503, "open runs hold too much text: close some of them")

    @contextmanager
    def _alone(self, name: Any, filters: Iterable[Served]) -> Iterator[_Run]:
        """The run, of which nobody else does anything; after an error it is read anew."""
        self._end_old()
        with self._lock:
            if not isinstance(name, str) or name not in self._sizes:
                raise RefusedError(
                    404,
                    "no run with this id is open: it was closed, or had no step for a week",
                )
            if name in self._busy:
                raise RefusedError(
                    409, "a step of this run is decided about: wait for the reply"
                )
            self._busy.add(name)
        try:
            if name not in self._runs:
                self._runs[name] = self._read(name, filters)
            yield self._runs[name]
        except BaseException:
            self._runs.pop(name, None)
            raise
        finally:
            self._busy.discard(name)

    def _read(self, name: str, filters: Iterable[Served]) -> _Run:
        """A run from the journal, decided about once more."""
        digest, head, decided = self._journal.read_run(name)
        served = [served for served in filters if served.digest == digest]
        if not served:
            raise RefusedError(
                409, "the filter of this run is not served any more: open another run"
            )
        writing = _begin(served[0], head)
        steps = [step for step, _ in decided]
        claims = _claims_of(head, steps)
        for number, (claim, (_, keep)) in enumerate(zip(claims, decided, strict=True)):
            if writing.add(claim) != keep:
                raise RefusedError(
                    409,
                    f"step {number} would be decided about otherwise now: open another run",
                )
        return _Run(head, writing, steps)


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
    messages: list[Any] = []
    for body in (head, *sent):
        if not isinstance(body["messages"], list):
            raise ValueError(
                f'"messages" is {body["messages"]!r:.40}, but must be a list of messages'
            )
        messages += body["messages"]
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
