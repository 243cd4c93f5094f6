"""Provenance of labels, and the journal that stores verdicts on disk.

The journal is append-only. Each line is one event: a label, a note or corrected edges, with the
name of the annotator and the time. The lines are applied in order, so the last line about a claim
takes precedence. If the program is killed, at most one incomplete line is lost. Readers of the
journal skip an incomplete line.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from ..._checks import check_choice, counted
from ..._files import append_journal
from ...graphs import GraphBatch, ReasoningGraph, as_batch
from ...identity import problem_digest
from ...labels import LabelList, Labels, pack_labels
from ...ops.hard import path_risk, segment_sum
from .journal import follow_journal, read_journal

#: Possible verdicts on a claim and their labels. None withdraws a verdict. "unsure" means
#: that a person examined the claim but could not decide whether it is true. "unknown"
#: means that nobody examined the claim. "no claim" means that the sentence does not state
#: anything that could be false.
WORDS = {"true": 1, "false": 0, "unsure": 0, "no claim": 1, "unknown": -1, None: None}
#: Purposes of a journal. Only verdicts with the purpose "labels" can be used for calibration.
PURPOSES = ("labels", "review")
_LONGEST_NOTE = 10_000


class LabelSource(NamedTuple):
    """Person who judged a claim, and the time of the judgement.

    Parameters
    ----------
    by : str
        Name of the person.
    when : str
        Time of the judgement in ISO 8601 format.
    seconds : float or None
        Time that the person spent on the claim, in seconds.
    note : str or None
        Note of the person.
    """

    by: str
    when: str
    seconds: float | None = None
    note: str | None = None


def describe_labels(X: Any, y: Labels | ArrayLike) -> str:
    """Return a sentence with the number of labels from each source.

    Parameters
    ----------
    X : sequence of ReasoningGraph, or GraphBatch
        The problems. The key ``label_source`` of their provenance contains the source of the
        labels, such as "person" or "model NAME".
    y : sequence of arrays, one per problem
        Claim labels: 1 true, 0 false, -1 unknown.

    Returns
    -------
    sentence : str
        A sentence with the number of claims for each source.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import describe_labels
    >>> claims = ["2 + 2 = 4", "so it is odd"]
    >>> graph = ReasoningGraph(None, [], claims=claims, provenance={"label_source": "person"})
    >>> describe_labels([graph], [[1, -1]])
    '2 claims: 1 judged by people, 1 not judged'
    """
    batch = as_batch(X)
    labels = pack_labels(y, batch)
    n_judged = segment_sum(labels >= 0, batch.offsets).astype(int).tolist()
    rows = batch.provenance_rows or [{}] * len(batch)
    counts: Counter[str] = Counter()
    for n, row in zip(n_judged, rows, strict=True):
        counts[row.get("label_source", "an unknown source")] += n
    counts["people"] = counts.pop("person", 0)
    told = [f"{n} judged by {source}" for source, n in counts.items() if n]
    if unknown := int(np.sum(labels < 0)):
        told.append(f"{unknown} not judged")
    return f"{counted(len(labels), 'claim')}: {', '.join(told)}"


def describe_unfinished(X: Any, y: Labels | ArrayLike) -> str:
    """Return a sentence about the number of unjudged claims in partly judged answers.

    Calibration treats unknown labels as false. A claim that depends on a false claim is not
    counted, because its label has no effect.

    Parameters
    ----------
    X : sequence of ReasoningGraph, or GraphBatch
        The problems.
    y : sequence of arrays, one per problem
        Claim labels: 1 true, 0 false, -1 unknown.

    Returns
    -------
    sentence : str
        The sentence, or an empty string if no claims are counted.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling.sources import describe_unfinished
    >>> graphs = [ReasoningGraph(None, [(0, 1)], claims=["a", "b", "c"])] * 2
    >>> describe_unfinished(graphs, [[0, -1, -1], [-1, -1, -1]]).partition(".")[0]
    'not judged: 1 claim in 1 answer'
    """
    batch = as_batch(X)
    labels = pack_labels(y, batch)
    is_open = (labels < 0) & (path_risk((labels == 0).astype(float), batch) == 0)
    is_started = segment_sum(labels >= 0, batch.offsets) > 0
    n_open = segment_sum(is_open, batch.offsets)[is_started]
    if not n_open.any():
        return ""
    return (
        f"not judged: {counted(int(n_open.sum()), 'claim')} in "
        f"{counted(int((n_open > 0).sum()), 'answer')}. Unjudged claims count as false, so the "
        "filter keeps fewer claims. Judge them to keep more claims"
    )


class LabelStore:
    """Store of problems and of annotators' verdicts on their claims, saved in a journal.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        Problems with claim texts. Edges corrected by annotators replace the original edges.
    path : path-like
        Journal path. If the journal exists, new events are appended. Several people can share a
        journal.
    labels : sequence of arrays, optional
        Existing labels, such as labels assigned by a model. A person's verdict on a claim
        replaces the existing label.
    purpose : {"labels", "review"}, default="labels"
        Purpose of the verdicts. The claims of a review are selected by risk, so a journal contains
        verdicts for one purpose only.

    Attributes
    ----------
    events : list of dict
        All events in the journal, in the order of the lines.

    Raises
    ------
    ValueError
        If a problem has no claim texts, or if the file is not a journal for this purpose.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import LabelStore
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4", "so it is odd"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LabelStore([graph], f"{folder}/labels.journal")
    ...     store.label(0, 0, "true", by="ann")
    ...     store.label(0, 1, "unsure", by="ann")
    ...     LabelStore([graph], f"{folder}/labels.journal").export("ann").labels
    [array([1, 0])]
    """

    def __init__(
        self,
        graphs: Iterable[ReasoningGraph],
        path: str | os.PathLike[str],
        labels: Sequence[Any] | None = None,
        *,
        purpose: str = "labels",
    ):
        check_choice("purpose", purpose, PURPOSES)
        self.graphs = list(graphs)
        self.path = Path(path)
        self.known = labels
        self.purpose = purpose
        for i, graph in enumerate(self.graphs):
            if graph.claims is None:
                raise ValueError(
                    f"problem {i} must have claim texts to show, but it has none. Pass claims "
                    "when the problem is created"
                )
        self._digests = [problem_digest(graph) for graph in self.graphs]
        unknown = [
            digest
            for digest, graph in zip(self._digests, self.graphs, strict=True)
            if not graph.edges_known
        ]
        #: Hash that identifies the set of problems with unknown edges. Statements about the edges
        #: of all problems are ignored if the hash of the problems has changed.
        self._unknown = hashlib.sha256(" ".join(sorted(unknown)).encode()).hexdigest()
        self._lock = threading.Lock()
        #: Last event of each kind, keyed by person, problem and claim.
        self._last: dict[tuple[str, str, str, int | None], dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self._end = read_journal(self.path, self._apply)

    @property
    def version(self) -> int:
        """Return the number of events in the journal, which the page uses to detect changes."""
        return len(self.events)

    def follow(self) -> None:
        """Read the events that other programs have added to the journal."""
        # If the journal was removed, the next verdict creates a new one.
        with self._lock, suppress(FileNotFoundError):
            self._end = follow_journal(self.path, self._apply, self._end)

    def _apply(self, event):
        purpose = event.get("purpose", "labels")
        if purpose != self.purpose:
            raise ValueError(
                f"the purpose of a verdict must be {self.purpose!r} in this journal, got "
                f"{purpose!r}"
            )
        kinds = ("edges", "edges_known", "note")
        kind = next((k for k in kinds if k in event), "label")
        claim = None if kind in ("edges", "edges_known") else event["claim"]
        if kind != "label" or event["label"] in WORDS:
            self._last[kind, event["by"], event["problem"], claim] = event
        self.events.append(event)

    def label(
        self, problem: int, claim: int, word: str | None, *, by: str, seconds=None
    ) -> None:
        """Save a verdict on a claim.

        Parameters
        ----------
        problem, claim : int
            Positions of the problem and of the claim, counted from 0.
        word : {"true", "false", "unsure", "no claim", "unknown"} or None
            The verdict. "unsure" means that the claim was examined but could not be confirmed.
            "no claim" means that the sentence makes no claim. "unknown" means that the claim
            was not examined. The value None withdraws the previous verdict.
        by : str
            Annotator name.
        seconds : float, optional
            Time that the annotator spent on the claim, in seconds.

        Raises
        ------
        ValueError
            If the claim does not exist, or if ``word`` or ``seconds`` is invalid.
        """
        if not isinstance(word, str | None) or word not in WORDS:
            raise ValueError(f"the label must be one of {list(WORDS)}, got {word!r}")
        event = {**self._place(problem, claim), "label": word}
        if seconds is not None:
            if type(seconds) not in (int, float) or not 0 <= seconds < 1e6:
                raise ValueError(
                    f"seconds must be a number from 0 to 1,000,000, got {seconds!r}"
                )
            event["seconds"] = round(seconds, 1)
        self._save(event, by)

    def note(self, problem: int, claim: int, text: str, *, by: str) -> None:
        """Save a note on a claim, replacing any earlier note by the annotator.

        Parameters
        ----------
        problem, claim : int
            Positions of the problem and of the claim, counted from 0.
        text : str
            The note. An empty string removes the earlier note.
        by : str
            Annotator name.

        Raises
        ------
        ValueError
            If the claim does not exist, or if the text is not a string or is longer than
            10,000 characters.
        """
        if not isinstance(text, str) or len(text) > _LONGEST_NOTE:
            raise ValueError(
                f"the note must be a text of at most {_LONGEST_NOTE} characters, got "
                + (f"{len(text)}" if isinstance(text, str) else f"{text!r:.40}")
            )
        self._save({**self._place(problem, claim), "note": text}, by)

    def correct_edges(self, problem: int, edges: Any, *, by: str) -> None:
        """Save the corrected edges of a problem.

        Parameters
        ----------
        problem : int
            Problem index.
        edges : list of (parent, child)
            All edges of the problem, as pairs of claim positions.
        by : str
            Annotator name.

        Raises
        ------
        ValueError
            If the edges form a cycle or refer to a claim that does not exist. ValueError is also
            raised if the journal is for a review, because the filter has already used the edges.
        """
        if self.purpose != "labels":
            raise ValueError(
                "edges can only be corrected in a labelling journal, got a journal with the "
                f"purpose {self.purpose!r}. The filter has already used the edges of these "
                "problems. Correct the edges before filtering the answers"
            )
        graph = self._graph(problem).replace(edges=_pairs(edges))
        event = {"problem": self.digest(problem), "edges": graph.edges.tolist()}
        self._save(event, by)

    def state_edges_known(self, known: bool, *, by: str) -> None:
        """Save whether the edges of all problems are now complete.

        Corrected edges of problems with unknown edges are used only after all edges have been
        declared complete. Edges added to a few problems provide no information about the other
        problems.

        Parameters
        ----------
        known : bool
            Whether all edges of all problems are now known.
        by : str
            Annotator name.

        Raises
        ------
        ValueError
            If ``known`` is not a bool.
        """
        if not isinstance(known, bool):
            raise ValueError(f"known must be True or False, got {known!r}")
        self._save({"problem": self._unknown, "edges_known": known}, by)

    def edges_known(self, problem: int, by: str) -> bool:
        """Return whether the edges of a problem were known or have been declared complete.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.
        by : str
            The annotator who corrected the edges.

        Returns
        -------
        edges_known : bool
            True if the edges were known or have been declared complete, and False otherwise.
        """
        statement = self._last.get(("edges_known", by, self._unknown, None), {})
        return self.graphs[problem].edges_known or statement.get("edges_known", False)

    def _graph(self, problem):
        if type(problem) is not int or not 0 <= problem < len(self.graphs):
            raise ValueError(
                f"problem must be a nonnegative integer less than {len(self.graphs)}, got "
                f"{problem!r}"
            )
        return self.graphs[problem]

    def _place(self, problem, claim):
        graph = self._graph(problem)
        if type(claim) is not int or not 0 <= claim < graph.n_claims:
            raise ValueError(
                f"claim must be a nonnegative integer less than {graph.n_claims}, got "
                f"{claim!r}"
            )
        return {"problem": self.digest(problem), "claim": claim}

    def digest(self, problem: int) -> str:
        """Return a digest of the texts of a problem, which identifies the problem in the journal.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.

        Returns
        -------
        digest : str
            Hexadecimal digest, which does not depend on the position of the problem in a file.
        """
        return self._digests[problem]

    def _save(self, event, by):
        event |= {"by": by, "when": datetime.now(UTC).isoformat(timespec="seconds")}
        if self.purpose != "labels":
            event["purpose"] = self.purpose
        with self._lock:
            append_journal(self.path, event)
            self._end = follow_journal(self.path, self._apply, self._end)

    def said(self, problem: int, by: str) -> list[str | None]:
        """Return the verdicts of an annotator on the claims of a problem.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.
        by : str
            Annotator name.

        Returns
        -------
        verdicts : list of {"true", "false", "unsure", "no claim", "unknown"} or None
            The verdict on each claim, or None if the annotator has not judged the claim.
        """
        return [event.get("label") for event in self._events("label", problem, by)]

    def _events(self, kind, problem, by):
        digest = self.digest(problem)
        n = self.graphs[problem].n_claims
        return [self._last.get((kind, by, digest, v), {}) for v in range(n)]

    def notes(self, problem: int, by: str) -> list[str]:
        """Return the notes of an annotator on the claims of a problem.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.
        by : str
            Annotator name.

        Returns
        -------
        notes : list of str
            One note per claim, or an empty string for a claim without a note.
        """
        return [event.get("note", "") for event in self._events("note", problem, by)]

    def edges(self, problem: int, by: str) -> list[list[int]]:
        """Return the edges of a problem, including corrections by an annotator.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.
        by : str
            Annotator name.

        Returns
        -------
        edges : list of [parent, child]
            Edges as pairs of claim positions, with the parent first.
        """
        as_read = {"edges": self.graphs[problem].edges.tolist()}
        return self._last.get(("edges", by, self.digest(problem), None), as_read)[
            "edges"
        ]

    def annotators(self) -> list[str]:
        """Return the names of all annotators who have judged claims or corrected edges.

        Returns
        -------
        annotators : list of str
            The names in alphabetical order.
        """
        return sorted({by for kind, by, *_ in self._last if kind != "note"})

    def labels(self, by: str) -> list[NDArray[np.int64]]:
        """Return the labels of an annotator, supplemented by existing labels.

        Parameters
        ----------
        by : str
            Annotator name.

        Returns
        -------
        labels : list of ndarray of int
            Claim labels, which are 1 for true, 0 for false or unsure, and -1 for unjudged claims.
        """
        return self._labels(by, True)

    def _labels(self, by, known):
        known_labels = self.known if known else None
        if known_labels is None:
            known_labels = [[-1] * graph.n_claims for graph in self.graphs]
        answers = (self.said(i, by) for i in range(len(self.graphs)))
        pairs = [
            zip(*rows, strict=True) for rows in zip(answers, known_labels, strict=True)
        ]
        labels = ([k if w is None else WORDS[w] for w, k in p] for p in pairs)
        return LabelList(np.array(row, dtype=np.int64) for row in labels)

    def export(self, by: str, *, known: bool = True) -> Bunch:
        """Return all problems with the labels and edges of an annotator.

        Parameters
        ----------
        by : str
            Annotator name.
        known : bool, default=True
            Whether to use the existing labels of claims that the annotator has not judged.

        Returns
        -------
        dataset : Bunch
            The attribute ``graphs`` is a GraphBatch. The provenance of a graph contains
            ``edges_corrected`` if its edges were changed. The attribute ``labels`` contains one
            array of claim labels per problem. A label is 1 for true or no claim, 0 for false or
            unsure, and -1 for an unjudged claim. The attribute ``words`` contains the verdicts,
            as returned by `said`, and the attribute ``sources`` who gave them and when, as
            returned by `sources`. The attribute ``n_corrected`` is the number of problems with
            corrected edges. The attribute ``n_unknown`` is the number of problems whose corrected
            edges are not used.
            In these problems, the edges were unknown, and the annotator has not stated that all
            edges are now known.
        """
        graphs = []
        corrected = unknown = 0
        for i, graph in enumerate(self.graphs):
            edges = self.edges(i, by)
            changed = edges != graph.edges.tolist()
            if not self.edges_known(i, by):
                unknown += changed
            elif changed or not graph.edges_known:
                corrected += 1
                made = (graph.provenance or {}) | {"edges_corrected": True}
                graph = graph.replace(edges=_pairs(edges), provenance=made)
            graphs.append(graph)
        return Bunch(
            graphs=GraphBatch.from_graphs(graphs),
            labels=self._labels(by, known),
            words=[self.said(i, by) for i in range(len(graphs))],
            sources=[self.sources(i, by) for i in range(len(graphs))],
            n_corrected=corrected,
            n_unknown=unknown,
        )

    def sources(self, problem: int, by: str) -> list[LabelSource | None]:
        """Return the source of each verdict of an annotator on the claims of a problem.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.
        by : str
            Annotator name.

        Returns
        -------
        sources : list of (LabelSource or None)
            The source of each verdict, or None if the annotator has not judged the claim.
        """
        notes = self.notes(problem, by)
        sources: list[LabelSource | None] = []
        for v, event in enumerate(self._events("label", problem, by)):
            source = None
            if event.get("label") is not None:
                details = {"seconds": event.get("seconds"), "note": notes[v] or None}
                source = LabelSource(by, event["when"], **details)
            sources.append(source)
        return sources


def _pairs(edges):
    if not isinstance(edges, list):
        raise ValueError(f"edges must be a list of pairs, got {edges!r:.40}")
    return [tuple(pair) if isinstance(pair, list) else pair for pair in edges]
