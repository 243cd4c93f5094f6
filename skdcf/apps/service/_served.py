"""One served filter: its decisions about answers, and the monitor of its guarantee."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...datasets.records import BROKEN, read_problem
from ...estimators import passing_answers
from ...graphs import GraphBatch, ReasoningGraph
from ...graphs.problems import as_one
from ...graphs.wordings import shown_rows
from ...guarantees import NoFalseClaim
from ...inspection import explain
from ...monitoring import CoverageMonitor
from ..web.refusal import RefusedError
from ._journal import Entry, Journal
from ._questions import Questions

_MOST_CLAIMS = 2_000  # claims of an answer, since others wait while it is decided about
_TOGETHER = 32  # answers that are decided about in one go
_LARGE = 2**14  # bytes; a larger request is decided about in a thread of its own
NOT_PASSING = -1  # in place of a group: the guarantee says nothing of the answer
_QUICK = 0.02  # seconds that other requests may well wait
_ABOUT = "problem", "context", "alternatives", "id", "metadata", "feature_names"


@dataclass
class Asked:
    """An answer that is asked about, and what becomes of it.

    Parameters
    ----------
    alpha : float or None
        The level as it was sent.
    level : float
        The level that it means.
    graph : ReasoningGraph
        The answer.
    kept : ndarray of bool, optional
        What is kept, once it is decided.
    reasons : mapping, optional
        Why the other claims are not.
    error : Exception, optional
        What went wrong instead.
    """

    alpha: float | None
    level: float
    graph: ReasoningGraph
    kept: NDArray[np.bool_] | None = None
    reasons: Mapping[int, str] | None = None
    error: Exception | None = None

    @property
    def is_decided(self) -> bool:
        """Whether it is known what is kept, or that nothing can be said."""
        return self.kept is not None or self.error is not None


class Served:
    """A filter in use.

    Parameters
    ----------
    filter : fitted filter
        Decides about the claims.
    key : bytes
        By which questions are hashed.
    calibrated : str, optional
        When it was made, for those who run the service.
    """

    def __init__(self, filter: Any, key: bytes, calibrated: str | None = None) -> None:
        self.filter = filter
        self.calibrated = calibrated
        self.guarantee = filter.calibration_.guarantee
        self._has_wordings = True in filter.provenance_.get("wordings", ())
        self.alpha = self.guarantee.level(None, filter.alpha)
        self.digest = _digest_of(filter)
        self.monitor = CoverageMonitor(filter)
        #: Why no alarm can be given, if none can.
        self.not_watched = self.monitor.why_not_watched()
        self._groups = list(getattr(filter.calibration_, "names", [None]))
        self.questions = Questions(filter, key)
        # The way from a question to this filter, where models are asked.
        self.pipeline: Any = None
        self._n_watched = 0  # place of the last judged answer that was taken in
        origin = getattr(filter, "provenance_", None) or {}
        self._knows_extraction = None not in (origin.get("extraction") or [None])
        self._knows_writer = None not in (origin.get("written_by") or [None])
        self._pace = 1.0  # seconds for each of the last answers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._waiting: list[Asked] = []

    def read(self, record: dict[str, Any]) -> Asked:
        """Read the answer in a request.

        Parameters
        ----------
        record : dict
            As `skdcf.datasets.read_jsonl` reads a line, and ``alpha`` if it is given.

        Returns
        -------
        Asked

        Raises
        ------
        ValueError
            If the answer, or alpha, is not as it has to be.
        """
        record = dict(record)
        alpha = record.pop("alpha", None)
        level = self.guarantee.level(alpha, self.filter.alpha)
        try:
            graph = read_problem(record).graph
        except BROKEN as error:
            raise ValueError(str(error)) from error
        check_size(graph.n_claims)
        return Asked(alpha=alpha, level=level, graph=graph)

    async def decide(self, record: dict[str, Any], n_bytes: int) -> Asked:
        """Decide about an answer, together with those that wait at the same time.

        Parameters
        ----------
        record : dict
            As for `read`.
        n_bytes : int
            Its size; for a large one no other waits.

        Returns
        -------
        Asked
        """
        if n_bytes > _LARGE:
            asked = await asyncio.to_thread(self.read, record)
            await asyncio.to_thread(self._explain, [asked])
        else:
            asked = self.read(record)
            await self._decide_together(asked)
        if asked.error is not None:
            raise asked.error
        return asked

    async def _decide_together(self, asked: Asked) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._turn = asyncio.Lock()
            self._waiting = []
        self._waiting.append(asked)
        async with self._turn:
            # It may have been decided about together with another one.
            while not asked.is_decided:
                # Answers that come at the same time join here.
                await asyncio.sleep(0)
                group = self._waiting[:_TOGETHER]
                begin = perf_counter()
                # Together they take less time; a thread would add its own.
                if self._pace * len(group) < _QUICK:
                    self._explain(group)
                else:
                    await asyncio.to_thread(self._explain, group)
                self._pace = (perf_counter() - begin) / len(group)
                del self._waiting[: len(group)]

    def _explain(self, group: list[Asked]) -> None:
        """Add mask and reasons to each answer, or the error that it meets by itself."""
        try:
            [alpha] = {asked.alpha for asked in group}
            graphs = [asked.graph for asked in group]
            explanations = explain(self.filter, graphs, alpha=alpha)
            for asked, explanation in zip(group, explanations, strict=True):
                asked.reasons = explanation.reasons
                asked.kept = explanation.kept
        except Exception as error:
            if len(group) == 1:
                group[0].error = error
                return
            self._explain(group[::2])
            self._explain(group[1::2])

    def entry(
        self,
        name: str,
        graph: ReasoningGraph,
        kept: NDArray[np.bool_],
        level: float,
        passes: bool,
    ) -> Entry:
        """What the journal holds of an answer.

        Parameters
        ----------
        name : str
            Its id.
        graph : ReasoningGraph
            The answer, of which the question matters.
        kept : ndarray of bool
            What is kept of it.
        level : float
            At which this was decided.
        passes : bool
            Whether the answer passes.

        Returns
        -------
        Entry
        """
        question, is_calibrated = self.questions.name(graph)
        return Entry(
            id=name,
            mask="".join("01"[keep] for keep in kept.tolist()),
            filter=self.digest,
            alpha=level,
            question=question,
            part=self._part_of(graph) if passes else NOT_PASSING,
            calibrated=is_calibrated,
        )

    def passes(self, graph: ReasoningGraph) -> bool:
        """Tell whether an answer passes; nothing is kept of those that do not.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer. Its first claim is enough if it was decided while it was written.

        Returns
        -------
        bool
            True for every answer if the guarantee has ``show=1``.
        """
        if self.guarantee.show == 1:
            return True
        return bool(passing_answers(self.filter, [graph])[0])

    def _part_of(self, graph: ReasoningGraph) -> int | None:
        """The position of the group of an answer that passes; None without groups."""
        if self.guarantee.by is None or len(self._groups) == 1:
            return None
        batch = GraphBatch.from_graphs([graph])
        try:
            risks = self.guarantee.path_risks(np.zeros(batch.n_claims), batch)
        except ValueError:  # the group is a column that the filter computes
            batch = self.filter.transform_features(batch)
            risks = self.guarantee.path_risks(np.zeros(batch.n_claims), batch)
        group = as_one((risks.groups or [None])[0])
        return self._groups.index(group) if group in self._groups else None

    def origin(self, graph: ReasoningGraph) -> dict[str, str]:
        """Return what is known about the origin of an answer, and what the guarantee covers.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer.

        Returns
        -------
        dict
            ``origin`` is "as calibrated" where the request says what extracted the claims,
            and the filter knows what extracted those that calibrated; other extractions
            are refused. It is "unknown" where one of them alone knows who wrote the answer.
            ``text_guarantee`` is "none" where the filter alone knows the extraction.
        """
        metadata = graph.metadata or {}
        is_told = metadata.get("extraction") is not None
        guarantee = "none" if self._knows_extraction and not is_told else "claims"
        is_same = self._knows_extraction and is_told
        knows_writer = metadata.get("written_by") is not None
        is_same = is_same and knows_writer == self._knows_writer
        origin = "as calibrated" if is_same else "unknown"
        return {"text_guarantee": guarantee, "origin": origin}

    def reply(
        self,
        name: str,
        graph: ReasoningGraph,
        kept: NDArray[np.bool_],
        level: float,
        passes: bool,
        claims: Sequence[str | None] | None,
    ) -> dict[str, Any]:
        """What a reply says of an answer.

        Parameters
        ----------
        name : str
            Its id.
        graph : ReasoningGraph
            The answer.
        kept : ndarray of bool
            What is kept of it.
        level : float
            At which this was decided.
        passes : bool
            Whether the answer passes.
        claims : sequence of str, or None
            Texts of the claims, as far as they have some.

        Returns
        -------
        dict
            As `_models.Decided` has it.
        """
        text = None
        if claims and None not in claims:
            # While an answer is written, its graph is the question alone.
            is_whole = graph.n_claims == len(claims)
            rows = (
                shown_rows(graph, kept) if is_whole else np.flatnonzero(kept).tolist()
            )
            text = "\n".join(str(claims[v]) for v in rows)
        reply = {"id": name, "alpha": level, "mask": kept.tolist(), "text": text}
        reply["passes"] = passes
        return reply | self.origin(graph)

    def catch_up(self, journal: Journal) -> None:
        """Take in the labels that came since the last time, of whichever process.

        Parameters
        ----------
        journal : Journal
            Where they are.
        """
        for entry in journal.judged(self.digest, self._n_watched):
            self._watch(entry)
            self._n_watched = entry.judged or 0

    def _watch(self, entry: Entry) -> None:
        """Take in the labels of an answer, if they say something of the guarantee."""
        if entry.alpha != self.alpha or not entry.drawn:
            return
        if entry.part == NOT_PASSING:
            self.monitor.n_unwatched_ += 1
            return
        if not self.questions.counts(entry):
            self.monitor.n_repeated_ += 1
            return
        if self._has_wordings and repr(self.guarantee) != repr(NoFalseClaim()):
            # The journal does not know which claims are wordings of one.
            self.monitor.n_unwatched_ += 1
            return
        mask = np.array([bit == "1" for bit in entry.mask], dtype=bool)
        labels = np.array(json.loads(entry.labels or "[]"))
        lost = self.guarantee.loss(labels, mask, np.array([0, len(mask)]))
        with suppress(ValueError):  # errors that follow no known law are not watched
            group = None if entry.part is None else self._groups[entry.part]
            self.monitor.update_losses(lost, group, shown=[mask.any()])

    def describe(self) -> dict[str, Any]:
        """Describe the filter and its guarantee, for operators of the service.

        Returns
        -------
        dict
        """
        return {
            "alpha": self.alpha,
            "alarm": self.monitor.alarm,
            "not_watched": self.not_watched,
            "guarantee": self.filter.describe(),
            "filter": self.digest,
            "n_calibration": self.filter.n_calibration_,
            "calibrated": self.calibrated,
            "origin": getattr(self.filter, "provenance_", None),
        }

    def numbers(self) -> dict[str, float]:
        """Return the state of the monitor, keyed by the names of the numbers in /metrics.

        Returns
        -------
        dict
        """
        summary = self.monitor.summary()
        numbers = {
            "alpha": self.alpha,
            "answers_judged_total": summary["n_problems"],
            "answers_with_error_total": summary["n_errors"],
            "monitor_wealth": summary["wealth"],
            "monitor_alarm": int(summary["alarm"]),
        }
        if summary["n_problems"]:
            for name in ("shown", "false_among_shown"):
                numbers[f"{name}_share"] = summary[name]
                numbers[f"{name}_share_error"] = summary[f"{name}_error"]
        return numbers


class Writing:
    """An answer that is being written, or the run of an agent: a decision for each claim.

    Parameters
    ----------
    served : Served
        Its filter decides claim by claim.
    head : dict
        What is known beforehand, and whether to ``stop`` at the first dropped claim.

    Raises
    ------
    ValueError
        If the head is not as it has to be.
    """

    def __init__(self, served: Served, head: dict[str, Any]) -> None:
        head = dict(head)
        self.stop = head.pop("stop", False)
        if not isinstance(self.stop, bool):
            raise ValueError('"stop" is true or false')
        asked = served.read(head | {"claims": []})
        self.served = served
        self.graph = asked.graph
        self.level = asked.level
        self.mask: list[bool] = []
        self.texts: list[Any] = []
        self._first: list[dict[str, Any]] = []
        self._coming: list[dict[str, Any]] = []
        self._decisions = served.filter.stream(
            iter(self._coming.pop, None),
            asked.alpha,
            stop=self.stop,
            **{name: getattr(asked.graph, name) for name in _ABOUT},
        )

    @property
    def has_stopped(self) -> bool:
        """Whether a claim was dropped at which the answer was to stop."""
        return self.stop and not all(self.mask)

    def add(self, claim: dict[str, Any]) -> bool:
        """Decide about the next claim.

        Parameters
        ----------
        claim : dict
            ``text``, ``parents`` and ``features``, as far as there are some.

        Returns
        -------
        bool
            Whether it is kept.

        Raises
        ------
        ValueError
            If the claim is not as it has to be; nothing can be added any more.
        RefusedError
            If it is one too many.
        """
        check_size(len(self.mask) + 1)
        self._first = self._first or [claim]
        if self.has_stopped:
            keep = False  # as it builds on a claim that was dropped
        else:
            self._coming.append(claim)
            try:
                keep = next(self._decisions)
            except BROKEN as error:
                raise ValueError(str(error)) from error
        self.mask.append(keep)
        self.texts.append(claim.get("text"))
        return keep

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which claims were kept so far."""
        return np.array(self.mask, dtype=bool)

    @property
    def passes(self) -> bool:
        """Whether the answer passes. It is a chain, so its first claim is the safest."""
        if any(self.mask):
            return True
        texts = [claim["text"] for claim in self._first if "text" in claim]
        columns = [claim["features"] for claim in self._first if "features" in claim]
        about = {name: getattr(self.graph, name) for name in _ABOUT}
        first = ReasoningGraph(columns or None, (), claims=texts or (), **about)
        return self.served.passes(first)

    def entry(self, name: str) -> Entry:
        """What the journal holds of this answer.

        Parameters
        ----------
        name : str
            Its id.

        Returns
        -------
        Entry
        """
        return self.served.entry(
            name, self.graph, self.kept, level=self.level, passes=self.passes
        )

    def reply(self, name: str) -> dict[str, Any]:
        """What a reply says of this answer.

        Parameters
        ----------
        name : str
            Its id.

        Returns
        -------
        dict
        """
        return self.served.reply(
            name,
            self.graph,
            self.kept,
            level=self.level,
            passes=self.passes,
            claims=self.texts,
        )


def check_size(n_claims: int) -> None:
    """RefusedError for an answer that is too long.

    Parameters
    ----------
    n_claims : int
    """
    if n_claims > _MOST_CLAIMS:
        raise RefusedError(413, f"an answer has at most {_MOST_CLAIMS:,} claims")


def _digest_of(filter: Any) -> str:
    """A name by which a filter is known again, with its calibration."""
    description = f"{filter!r} {filter.n_calibration_}"
    arrays = filter.max_path_risks_, filter.nonconformity_scores_
    scores = np.concatenate(arrays, dtype=np.float64).tobytes()
    return hashlib.sha256(description.encode() + scores).hexdigest()[:16]
