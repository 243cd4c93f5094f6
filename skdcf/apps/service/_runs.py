"""Store open agent runs, so the decisions on their steps survive a restart of the process."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..web.refusal import RefusedError
from ._journal import Journal
from ._served import Served, Writing

_MOST_RUNS = 10_000
# maximum number of characters in a run, equal to the limit for a single request
_LONGEST = 8 * 2**20
_MOST_TEXT = 2**28  # maximum total number of characters in all open runs
# maximum number of seconds between two steps, which gives a person time to approve a step
_LONGEST_PAUSE = 7 * 24 * 3600.0
_MOST_IN_MEMORY = 256


@dataclass
class _Run:
    """In-memory copy of a run that is stored in the journal.

    Parameters
    ----------
    head : dict
        Data that are known before the first step, as sent by the client.
    writing : Writing
        Decision state, which determines the decision on the next step.
    steps : list of dict
        The steps on which the filter has decided, as sent by the client.
    """

    head: dict[str, Any]
    writing: Writing
    steps: list[dict[str, Any]]


class Runs:
    """Store of all open runs.

    The methods are thread-safe. Runs are stored in the journal, so any process can continue a
    run. Recently used runs are also stored in memory. Before a run in memory is used, it is
    updated with the steps that other processes have added to the journal.

    Parameters
    ----------
    journal : Journal
        Storage of the runs.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._end_old()
        # Runs, ordered from the least to the most recently used.
        self._runs: dict[str, _Run] = {}
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    @property
    def n_open(self) -> int:
        """Return the number of open runs."""
        return self._journal.size_of_runs()[0]

    def open(self, served: Served, head: dict[str, Any]) -> str:
        """Open a run, and return its id.

        Parameters
        ----------
        served : Served
            The filter that decides.
        head : dict
            Data known before the first step.

        Returns
        -------
        name : str
            The id of the run.

        Raises
        ------
        ValueError
            If ``head`` is invalid, or if the filter cannot decide step by step.
        RefusedError
            If the service has no folder, or if too many runs are open.
        """
        if not self._journal.in_folder:
            raise RefusedError(
                501, "runs need a folder. Start the service with --folder"
            )
        writing = _begin(served, head)
        self._end_old()
        self._refuse_too_much(len(json.dumps(head)), 0)
        if self.n_open >= _MOST_RUNS:
            raise RefusedError(503, "too many runs are open. Close some of them")
        name = secrets.token_hex(12)
        self._journal.open_run(name, served.digest, head)
        self._keep(name, _Run(head, writing, []))
        return name

    def add(
        self, name: str, number: int, step: dict[str, Any], filters: Iterable[Served]
    ) -> bool:
        """Decide whether to keep the next step of a run.

        Parameters
        ----------
        name : str
            The id of the run.
        number : int
            Position of the step. A step that has already been decided may be sent again.
        step : dict
            The step, with the keys ``text`` and ``features`` if the run uses them. If the key
            ``parents`` is missing, the step depends on the previous step.
        filters : iterable of Served
            All served filters.

        Returns
        -------
        is_kept : bool
            Whether the step may be executed. The value is False for all steps after the first
            refused step.

        Raises
        ------
        ValueError
            If the step is invalid. In this case, the run is not changed.
        RefusedError
            If no run with this id is open, if an earlier step has not been sent, if the step was
            already decided with different content, or if the run becomes too long.
        """
        with self._alone(name, filters) as run:
            n_steps = len(run.steps)
            if number > n_steps:
                raise RefusedError(
                    409,
                    f"step {number} must follow step {n_steps}, which has not been "
                    f"sent yet. Send step {n_steps} first",
                )
            if number < n_steps:
                return _decision(run, number, step)
            self._refuse_too_much(len(json.dumps(step)), self._journal.run(name).size)
            claim = _claims_of([*run.steps, step])[-1]
            keep = run.writing.add(claim)
            run.steps.append(step)
            if self._journal.add_step(name, number, step, keep):
                return keep
            # Another process has decided on this step in the meantime.
            run = self._catch_up(name, None, filters)
            return _decision(run, number, step)

    def close(self, name: str, filters: Iterable[Served]) -> Writing:
        """Close a run, and replace the run with an answer that has the same id.

        Parameters
        ----------
        name : str
            The id of the run.
        filters : iterable of Served
            All served filters.

        Returns
        -------
        writing : Writing
            The decisions on the steps of the run.

        Raises
        ------
        RefusedError
            If no run with this id is open, or if another process is adding a step to the run.
        """
        with self._alone(name, filters) as run:
            if not self._journal.close_run(run.writing.entry(name)):
                raise RefusedError(
                    409,
                    "another request has added a step to this run in the meantime. "
                    "Send the request again",
                )
            del self._runs[name]
            return run.writing

    def _end_old(self) -> None:
        """Delete runs that have had no new step for a week."""
        self._journal.end_runs(before=time.time() - _LONGEST_PAUSE)

    def _refuse_too_much(self, n_new: int, n_before: int) -> None:
        """Raise RefusedError if the texts of this run, or of all runs, become too long."""
        if n_before + n_new > _LONGEST:
            raise RefusedError(413, f"a run must have at most {_LONGEST:,} characters")
        if self._journal.size_of_runs()[1] + n_new > _MOST_TEXT:
            raise RefusedError(
                503, "the open runs contain too much text. Close some of them"
            )

    @contextmanager
    def _alone(self, name: str, filters: Iterable[Served]) -> Iterator[_Run]:
        """Context manager for exclusive use of a run within this process.

        After an error, the run is read again from the journal before its next use.
        """
        self._end_old()
        with self._lock:
            if name in self._busy:
                raise RefusedError(
                    409,
                    "another request for this run is in progress. Wait for its reply",
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
        """Keep a run in memory, and discard the least recently used run if necessary."""
        with self._lock:
            self._runs[name] = run
            if len(self._runs) > _MOST_IN_MEMORY:
                del self._runs[next(iter(self._runs))]

    def _catch_up(self, name: str, run: _Run | None, filters: Iterable[Served]) -> _Run:
        """Return the run, updated with the new steps in the journal.

        The decisions on these steps are computed again.
        """
        state = self._journal.run(name)
        if run is None:
            served = [served for served in filters if served.digest == state.filter]
            if not served:
                raise RefusedError(
                    409,
                    "the filter of this run is no longer served. Open a new run",
                )
            head = self._journal.head(name)
            run = _Run(head, _begin(served[0], head), [])
        n_known = len(run.steps)
        if n_known == state.n_steps:
            return run
        added = self._journal.steps(name, n_known)
        run.steps += [step for step, _ in added]
        claims = _claims_of(run.steps)[n_known:]
        for number, (claim, (_, keep)) in enumerate(
            zip(claims, added, strict=True), n_known
        ):
            if run.writing.add(claim) != keep:
                raise RefusedError(
                    409,
                    f"the decision about step {number} would be different now. Open a "
                    "new run",
                )
        return run


def _decision(run: _Run, number: int, step: dict[str, Any]) -> bool:
    """Return the decision on a step that is sent again, for example after a lost reply."""
    if step != run.steps[number]:
        raise RefusedError(
            409, f"step {number} was already decided, but with different content"
        )
    return run.writing.mask[number]


def _begin(served: Served, head: dict[str, Any]) -> Writing:
    """Return the initial decision state of a run."""
    return Writing(served, head | {"stop": True})


def _claims_of(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert steps to claims. By default, each claim depends on the previous claim."""
    return [{"parents": [v - 1] if v else []} | step for v, step in enumerate(steps)]
