"""Apply served filters to answers, and monitor the guarantee of each filter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._messages import message_of
from ...datasets.paths import put_at
from ...datasets.records import BROKEN
from ...estimators import passing_answers
from ...graphs import GraphBatch, ReasoningGraph, answer_text
from ...graphs.problems import kept_text
from ...inspection import explain
from ...monitoring import CoverageMonitor
from ..llm import AnswerReader, AnswerSplitter, NoClaimList
from ..web.refusal import RefusedError
from ._journal import Entry, Journal
from ._questions import Questions

# maximum number of claims in a request, because other requests wait until it is processed
_MOST_CLAIMS = 2_000
# Group number of an answer that the guarantee does not cover.
NOT_PASSING = -1
_ABOUT = (
    "problem",
    "context",
    "alternatives",
    "id",
    "provenance",
    "metadata",
    "feature_names",
)
#: Keys of a whole answer, which must not be sent before the first claim.
_OF_ANSWERS = (
    *("claims", "features", "parents", "edges", "labels", "text", "answer"),
    *("response", "messages", "spans", "resourceSpans", "steps", "conversations"),
)


@dataclass
class Asked:
    """An answer in a request, with the decision of the filter.

    Parameters
    ----------
    alpha : float or None
        The level requested by the client, or None.
    level : float
        The level of the decision, which is the filter's level if ``alpha`` is None.
    graph : ReasoningGraph
        The answer.
    kept : ndarray of bool, optional
        Mask of the kept claims, or None before the decision.
    log_line : dict, optional
        The request, if it contains a whole answer instead of claims.
    answer_key : str, optional
        Key or path of the answer in ``log_line``.
    reasons : mapping, optional
        The reason for each dropped claim, keyed by position.
    """

    alpha: float | None
    level: float
    graph: ReasoningGraph
    log_line: dict[str, Any] | None = None
    answer_key: str | None = None
    kept: NDArray[np.bool_] | None = None
    reasons: Mapping[int, str] | None = None

    def filtered_line(self) -> dict[str, Any]:
        """Return the additional reply fields for a whole answer that has been filtered.

        Returns
        -------
        fields : dict
            The kept text, the claims, and the request with the answer replaced by the kept text.
            The dict is empty if the request contains claims.
        """
        if self.log_line is None or self.answer_key is None or self.kept is None:
            return {}
        text = kept_text(self.graph, self.kept)
        log_line = deepcopy(self.log_line)
        put_at(log_line, self.answer_key, text)
        return {
            "text": text,
            "log_line": log_line,
            "claims": [*(self.graph.claims or ())],
        }


class Served:
    """A filter that is served, with its monitor.

    Parameters
    ----------
    filter : fitted filter
        The filter.
    key : bytes
        Secret key used to hash the questions.
    calibrated : str, optional
        The time at which the filter was calibrated, which `describe` returns.
    reader : AnswerReader, optional
        Object that reads whole answers and renames keys. If None, keys are not renamed.
    no_claim : NoClaimList, optional
        List of patterns that match sentences without a claim. The default is the built-in list.
    """

    def __init__(
        self,
        filter: Any,
        key: bytes,
        calibrated: str | None = None,
        *,
        reader: AnswerReader | None = None,
        no_claim: NoClaimList | None = None,
    ) -> None:
        self.filter = filter
        self._reader = AnswerReader({}) if reader is None else reader
        self._no_claim = no_claim
        if no_claim is not None:
            AnswerSplitter.from_filter(filter, no_claim)  # reject another list early
        self.calibrated = calibrated
        self.guarantee = filter.calibration_.guarantee
        self.alpha = self.guarantee.level(None, filter.alpha)
        self.digest = _digest_of(filter)
        self.monitor = CoverageMonitor(filter)
        #: Reason why the monitor cannot raise an alarm, or None if it can.
        self.not_watched = self.monitor.why_not_watched()
        self._groups = list(getattr(filter.calibration_, "names", [None]))
        self.questions = Questions(filter, key)
        # position of the last judged answer that the monitor has counted
        self._n_watched = 0
        origin = getattr(filter, "provenance_", None) or {}
        self._knows_extraction = None not in (origin.get("extraction") or [None])
        self._knows_writer = None not in (origin.get("written_by") or [None])

    def read(self, record: dict[str, Any]) -> Asked:
        """Parse the answer in a request.

        Parameters
        ----------
        record : dict
            An object in the format of `skdcf.datasets.read_jsonl`. The object may also contain
            the key ``alpha``, and may contain a whole answer instead of claims.

        Returns
        -------
        asked : Asked
            The parsed answer, which has no decision yet.

        Raises
        ------
        ValueError
            If the answer or alpha is invalid.
        """
        record = dict(record)
        alpha = record.pop("alpha", None)
        level = self.guarantee.level(alpha, self.filter.alpha)
        key = None
        if not self._reader.has_claims(record):
            key = self._reader.key_of_answer(record)
        try:
            if key is None:
                graph = self._reader.read_problem(record).graph
            else:
                splitter = AnswerSplitter.from_filter(self.filter, self._no_claim)
                graph = splitter.split(record, self._reader).graph
        except BROKEN as error:
            raise ValueError(message_of(error)) from error
        check_size(graph.n_claims)
        log_line = None if key is None else record
        return Asked(
            alpha=alpha, level=level, graph=graph, log_line=log_line, answer_key=key
        )

    def decide(self, record: dict[str, Any]) -> Asked:
        """Filter an answer.

        Parameters
        ----------
        record : dict
            The answer, as in `read`.

        Returns
        -------
        asked : Asked
            The answer, with the decision of the filter.
        """
        asked = self.read(record)
        [explanation] = explain(self.filter, [asked.graph], alpha=asked.alpha)
        asked.kept = explanation.kept
        asked.reasons = explanation.reasons
        return asked

    def entry(
        self,
        name: str,
        graph: ReasoningGraph,
        kept: NDArray[np.bool_],
        level: float,
        passes: bool,
    ) -> Entry:
        """Return the journal entry of an answer.

        Parameters
        ----------
        name : str
            Id of the answer.
        graph : ReasoningGraph
            The answer. The graph may contain only the question, without claims.
        kept : ndarray of bool
            Whether each claim is kept.
        level : float
            Decision level.
        passes : bool
            Whether the answer passes.

        Returns
        -------
        entry : Entry
            Journal entry of the answer.
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
        """Return whether an answer passes. An answer that does not pass has no kept claims.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer. If the answer is filtered claim by claim, the graph may contain only the
            first claim.

        Returns
        -------
        passes : bool
            True if the answer passes. Every answer passes if the guarantee has ``show=1``.
        """
        if self.guarantee.show == 1:
            return True
        return bool(passing_answers(self.filter, [graph])[0])

    def _part_of(self, graph: ReasoningGraph) -> int | None:
        """Return the position of a passing answer's group, or None if there are no groups."""
        if self.guarantee.by is None or len(self._groups) == 1:
            return None
        batch = GraphBatch.from_graphs([graph])
        try:
            risks = self.guarantee.path_risks(np.zeros(batch.n_claims), batch)
        except ValueError:  # The filter computes the group from a column.
            batch = self.filter.transform_features(batch)
            risks = self.guarantee.path_risks(np.zeros(batch.n_claims), batch)
        group = (risks.groups or [None])[0]
        return self._groups.index(group) if group in self._groups else None

    def origin(self, graph: ReasoningGraph) -> dict[str, str]:
        """Return the known origin of an answer, and whether the guarantee covers its text.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer.

        Returns
        -------
        fields : dict
            ``origin`` is "as calibrated" if both the request and the filter state how the
            claims were extracted. Different extractions are refused. ``origin`` is "unknown" if
            only the request or only the filter states who wrote the answer. ``text_guarantee`` is
            "none" if only the filter states how the claims were extracted.
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
        """Return the reply fields for an answer.

        Parameters
        ----------
        name : str
            Id of the answer.
        graph : ReasoningGraph
            The answer.
        kept : ndarray of bool
            Whether each claim is kept.
        level : float
            Decision level.
        passes : bool
            Whether the answer passes.
        claims : sequence of str, or None
            Claim texts, or None if there are none.

        Returns
        -------
        reply : dict
            The fields of `_models.Decided`.
        """
        text = None
        if claims and None not in claims:
            # If the answer was filtered claim by claim, the graph contains only its
            # question.
            is_whole = graph.n_claims == len(claims)
            text = (
                answer_text(graph.subgraph(kept))
                if is_whole
                else "\n".join(map(str, compress(claims, kept)))
            )
        reply = {"id": name, "alpha": level, "mask": kept.tolist(), "text": text}
        reply["passes"] = passes
        return reply | self.origin(graph)

    def catch_up(self, journal: Journal) -> None:
        """Update the monitor with new labels, including labels sent to other processes.

        Parameters
        ----------
        journal : Journal
            The journal that contains the labels.
        """
        for entry in journal.judged(self.digest, self._n_watched):
            self._watch(entry)
            self._n_watched = entry.judged or 0

    def _watch(self, entry: Entry) -> None:
        """Update the monitor with the labels of an answer, if the guarantee covers the answer."""
        if entry.alpha != self.alpha or not entry.drawn:
            return
        if entry.part == NOT_PASSING:
            self.monitor.n_unwatched_ += 1
            return
        if not self.questions.counts(entry):
            self.monitor.n_repeated_ += 1
            return
        mask = np.array([bit == "1" for bit in entry.mask], dtype=bool)
        labels = np.array(json.loads(entry.labels or "[]"))
        lost = self.guarantee.loss(labels, mask, np.array([0, len(mask)]))
        with suppress(ValueError):  # The distribution of the error may be unknown.
            group = None if entry.part is None else self._groups[entry.part]
            self.monitor.update_losses(lost, group, shown=[mask.any()])

    def describe(self, journal: Journal) -> dict[str, Any]:
        """Return a description of the filter, its guarantee and its monitor.

        Parameters
        ----------
        journal : Journal
            The journal that contains the answers.

        Returns
        -------
        description : dict
            The fields of `_models.Status`, keyed by name.
        """
        n_kept, n_dropped = journal.count_claims(self.digest)
        summary = self.monitor.summary()
        return {
            "alpha": self.alpha,
            "alarm": self.monitor.alarm,
            "not_watched": self.not_watched,
            "guarantee": self.filter.describe(),
            "filter": self.digest,
            "n_calibration": self.filter.n_calibration_,
            "calibrated": self.calibrated,
            "origin": getattr(self.filter, "provenance_", None),
            "n_kept": n_kept,
            "n_dropped": n_dropped,
            "n_judged": summary["n_problems"],
            "n_errors": summary["n_errors"],
            "wealth": summary["wealth"],
        }


class Writing:
    """State of an answer that is filtered claim by claim.

    Parameters
    ----------
    served : Served
        The filter that decides.
    head : dict
        Data known before the first claim. The key ``stop`` determines whether filtering stops at
        the first dropped claim.

    Raises
    ------
    ValueError
        If ``head`` is invalid.
    """

    def __init__(self, served: Served, head: dict[str, Any]) -> None:
        head = dict(head)
        self.stop = head.pop("stop", False)
        if not isinstance(self.stop, bool):
            raise ValueError(f'"stop" must be true or false, got {self.stop!r}')
        if keys_of_claims := [key for key in _OF_ANSWERS if head.get(key)]:
            raise ValueError(
                f'"{keys_of_claims[0]}" must not be sent before the first claim, because this '
                "content would not be filtered. Send each claim on a separate line"
            )
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
        """Return whether filtering stopped because a claim was dropped."""
        return self.stop and not all(self.mask)

    def add(self, claim: dict[str, Any]) -> bool:
        """Decide whether to keep the next claim.

        Parameters
        ----------
        claim : dict
            The claim, with the keys ``text``, ``parents`` and ``features`` if they exist.

        Returns
        -------
        is_kept : bool
            Whether the claim is kept.

        Raises
        ------
        ValueError
            If the claim is invalid. After this error, no further claims can be added.
        RefusedError
            If there are too many claims.
        """
        check_size(len(self.mask) + 1)
        self._first = self._first or [claim]
        if self.has_stopped:
            keep = False  # A claim that depends on a dropped claim is dropped.
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
        """Return whether each decided claim was kept."""
        return np.array(self.mask, dtype=bool)

    @property
    def passes(self) -> bool:
        """Return whether the answer passes.

        In a chain, no claim has a smaller path risk than the first claim.
        """
        if any(self.mask):
            return True
        texts = [claim["text"] for claim in self._first if "text" in claim]
        columns = [claim["features"] for claim in self._first if "features" in claim]
        fields = {name: getattr(self.graph, name) for name in _ABOUT}
        first = ReasoningGraph(columns or None, (), claims=texts or (), **fields)
        return self.served.passes(first)

    def entry(self, name: str) -> Entry:
        """Return the journal entry of this answer.

        Parameters
        ----------
        name : str
            Id of the answer.

        Returns
        -------
        entry : Entry
            Journal entry of this answer.
        """
        return self.served.entry(
            name, self.graph, self.kept, level=self.level, passes=self.passes
        )

    def reply(self, name: str) -> dict[str, Any]:
        """Return the fields of the reply to this answer.

        Parameters
        ----------
        name : str
            Id of the answer.

        Returns
        -------
        reply : dict
            The fields of the reply.
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
    """Raise RefusedError if an answer has too many claims.

    Parameters
    ----------
    n_claims : int
        Number of claims in the answer.
    """
    if n_claims > _MOST_CLAIMS:
        raise RefusedError(
            413,
            f"an answer must have at most {_MOST_CLAIMS:,} claims, got {n_claims:,}",
        )


def _digest_of(filter: Any) -> str:
    """Return a digest that identifies a filter and its calibration."""
    description = f"{filter!r} {filter.n_calibration_}"
    arrays = filter.max_path_risks_, filter.nonconformity_scores_
    scores = np.concatenate(arrays, dtype=np.float64).tobytes()
    return hashlib.sha256(description.encode() + scores).hexdigest()[:16]
