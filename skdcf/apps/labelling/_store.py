"""Store of the verdicts of annotators: a journal in SQLite, which tabs and processes share.

Each row of the journal is one event: a verdict, a note or corrected edges, with the name of the
annotator and the time. Rows are only added, and the last row about a claim counts. A verdict is on
disk before the call that saves it returns.
"""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ..._checks import check_choice
from ...datasets.lines import refuse_surrogates
from ...graphs import GraphBatch, ReasoningGraph
from ...identity import problem_digest
from ...labels import LabelList

#: Possible verdicts on a claim and their labels. None withdraws a verdict. "unsure" means
#: that a person examined the claim but could not decide whether it is true. "unknown"
#: means that nobody examined the claim. "no claim" means that the sentence does not state
#: anything that could be false.
WORDS = {"true": 1, "false": 0, "unsure": 0, "no claim": 1, "unknown": -1, None: None}


class LabelStore:
    """Store of problems and of annotators' verdicts on their claims, saved in a journal.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        Problems with claim texts. Edges corrected by annotators replace the original edges.
    path : path-like
        The journal, an SQLite file on a local disk. New events are appended to an existing
        journal. Several people and processes can share a journal.
    labels : sequence of arrays, optional
        Existing labels, such as labels assigned by a model. A person's verdict on a claim
        replaces the existing label.
    purpose : {"labels", "review"}, default="labels"
        Purpose of the verdicts. Verdicts for another purpose in the same journal are ignored.
        The claims of a review are selected by risk, so its verdicts are not used for calibration.

    Attributes
    ----------
    version : int
        Number of events that were read from the journal.

    Raises
    ------
    ValueError
        If a problem has no claim texts, or if the file is not an SQLite journal.

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
        check_choice("purpose", purpose, ("labels", "review"))
        self.graphs = list(graphs)
        self.known = labels
        self.purpose = purpose
        self.version = 0
        for i, graph in enumerate(self.graphs):
            if graph.claims is None:
                raise ValueError(
                    f"problem {i} must have claim texts to show, but it has none. Pass claims "
                    "when the problem is created"
                )
        #: Digest of the texts of each problem, which does not depend on the position in a file.
        self.digests = [problem_digest(graph) for graph in self.graphs]
        #: Last event of each kind, keyed by person, problem and claim.
        self._last: dict[tuple[Any, ...], Bunch] = {}
        Path(path).touch(0o600)
        self._journal = sqlite3.connect(
            path, timeout=60, check_same_thread=False, isolation_level=None
        )
        weakref.finalize(self, self._journal.close)
        try:
            self._journal.executescript(
                "PRAGMA synchronous=FULL;"
                f"CREATE TABLE IF NOT EXISTS {purpose} (id INTEGER PRIMARY KEY, kind TEXT, "
                "person TEXT, problem TEXT, claim INTEGER, value TEXT, time TEXT)"
            )
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{path} must be a journal in SQLite, but {error}. A journal in JSON Lines "
                "cannot be read. Choose a new file"
            ) from error
        self.follow()

    def follow(self) -> None:
        """Read the events that other programs have added to the journal."""
        query = f"SELECT * FROM {self.purpose} WHERE id > ? ORDER BY id"
        for number, *key, value, time in self._journal.execute(query, (self.version,)):
            self._last[tuple(key)] = Bunch(
                number=number, value=json.loads(value), when=time
            )
            self.version = number

    def _save(self, kind, by, problem, claim, value):
        self._check_place(problem, claim)
        refuse_surrogates({"text": value})
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._journal.execute(
            f"INSERT INTO {self.purpose} VALUES (NULL, ?, ?, ?, ?, ?, ?)",
            (kind, by, self.digests[problem], claim, json.dumps(value), now),
        )
        self.follow()

    def label(self, problem: int, claim: int, word: str | None, *, by: str) -> None:
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

        Raises
        ------
        ValueError
            If the claim does not exist, or if ``word`` is invalid.
        """
        refuse_surrogates({"word": word})
        if word is not None:
            check_choice("word", word, WORDS)
        self._save("label", by, problem, claim, word)

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
            If the claim does not exist, or if the text contains an unpaired surrogate.
        """
        self._save("note", by, problem, claim, text)

    def correct_edges(self, problem: int, edges: Any, *, by: str) -> None:
        """Save the corrected edges of a problem whose edges are known.

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
            If the edges form a cycle or refer to a claim that does not exist, or if the edges of
            the problem are unknown. ValueError is also raised in a review, because the filter has
            already used the edges.
        """
        if self.purpose != "labels":
            raise ValueError(
                "edges can only be corrected for labels, but the filter has already used the "
                "edges of a review. Correct the edges before you filter the answers"
            )
        self._check_place(problem)
        graph = self.graphs[problem]
        if not graph.edges_known:
            raise ValueError(
                f"problem {problem} must have known edges, because edges that are added to some "
                "answers say nothing about the others. Use skdcf split --edges chain, or skdcf "
                "extract"
            )
        graph = graph.replace(edges=list(map(tuple, edges)))
        self._save("edges", by, problem, None, graph.edges.tolist())

    def _check_place(self, problem, claim=None):
        n_problems = len(self.graphs)
        if not 0 <= problem < n_problems:
            raise ValueError(
                f"problem must be at least 0 and less than {n_problems}, got {problem}"
            )
        n_claims = self.graphs[problem].n_claims
        if claim is not None and not 0 <= claim < n_claims:
            raise ValueError(
                f"claim must be at least 0 and less than {n_claims}, got {claim}"
            )

    def events(self, kind: str, problem: int, by: str) -> list[Bunch | None]:
        """Return the last event of a kind on each claim of a problem.

        Parameters
        ----------
        kind : {"label", "note"}
            Kind of the events.
        problem : int
            Position of the problem, counted from 0.
        by : str
            Annotator name.

        Returns
        -------
        events : list of (Bunch or None)
            For each claim ``number``, ``value`` and ``when`` (ISO 8601), or None.
        """
        key = kind, by, self.digests[problem]
        return [self._last.get((*key, v)) for v in range(self.graphs[problem].n_claims)]

    def said(self, problem: int, by: str, kind: str = "label") -> list[str | None]:
        """Return the verdicts or notes of an annotator on the claims of a problem.

        Parameters
        ----------
        problem : int
            Position of the problem, counted from 0.
        by : str
            Annotator name.
        kind : {"label", "note"}
            Whether to return verdicts or notes.

        Returns
        -------
        verdicts : list of str or None
            The verdict ("true", "false", "unsure", "no claim" or "unknown") or the note on each
            claim, or None if there is none.
        """
        return [event and event.value for event in self.events(kind, problem, by)]

    def in_order(self, by: str) -> list[tuple[int, int]]:
        """Return the claims with a verdict, in the order in which they were judged.

        Parameters
        ----------
        by : str
            Annotator name.

        Returns
        -------
        claims : list of (problem, claim)
            Positions of the problems and claims.
        """
        judged = [
            (event.number, i, v)
            for i in range(len(self.graphs))
            for v, event in enumerate(self.events("label", i, by))
            if event and event.value is not None
        ]
        return [(i, v) for _, i, v in sorted(judged)]

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
        event = self._last.get(("edges", by, self.digests[problem], None))
        return event.value if event else self.graphs[problem].edges.tolist()

    def annotators(self) -> list[str]:
        """Return the names of all annotators who have judged claims or corrected edges.

        Returns
        -------
        annotators : list of str
            The names in alphabetical order.
        """
        return sorted({by for kind, by, *_ in self._last if kind != "note"})

    def labels(self, by: str, *, known: bool = True) -> list[NDArray[np.int64]]:
        """Return the labels of an annotator.

        Parameters
        ----------
        by : str
            Annotator name.
        known : bool, default=True
            Whether to use the existing labels of claims that the annotator has not judged.

        Returns
        -------
        labels : list of ndarray of int
            Claim labels, which are 1 for true or no claim, 0 for false or unsure, and -1 for
            unjudged claims.
        """
        rows = []
        for i, graph in enumerate(self.graphs):
            row = np.full(graph.n_claims, -1)
            if known and self.known is not None:
                row[:] = self.known[i]
            for v, word in enumerate(self.said(i, by)):
                row[v] = row[v] if word is None else WORDS[word]
            rows.append(row)
        return LabelList(rows)

    def export(self, by: str) -> Bunch:
        """Return all problems with the labels and edges of an annotator.

        Parameters
        ----------
        by : str
            Annotator name.

        Returns
        -------
        dataset : Bunch
            The attribute ``graphs`` is a GraphBatch. The provenance of a graph contains
            ``edges_corrected`` if its edges were changed. The attribute ``labels`` contains one
            array of claim labels per problem, as returned by `labels`. The attribute
            ``n_corrected`` is the number of problems with corrected edges.
        """
        graphs = []
        n_corrected = 0
        for i, graph in enumerate(self.graphs):
            edges = self.edges(i, by)
            if edges != graph.edges.tolist():
                n_corrected += 1
                made = (graph.provenance or {}) | {"edges_corrected": True}
                graph = graph.replace(edges=list(map(tuple, edges)), provenance=made)
            graphs.append(graph)
        return Bunch(
            graphs=GraphBatch.from_graphs(graphs),
            labels=self.labels(by),
            n_corrected=n_corrected,
        )
