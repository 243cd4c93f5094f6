"""Who said that a claim is true, and when: sources of labels, and judgements on disk.

A journal holds the judgements, saved one by one. It only ever grows. Each line is one key
stroke: a label, a note or corrected edges, by whom and when. What is true now is what the
lines say in their order, the last one counting. A program that is killed loses nothing but
a line that was half written, and that line is left out.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from ..._checks import check_choice
from ..._files import append_journal, follow_journal, read_journal
from ...graphs import GraphBatch, Labels, ReasoningGraph, as_batch, pack_labels
from ...graphs.hashes import problem_digest
from ...graphs.per_problem import LabelList
from ...graphs.sources import (
    KINDS,
    MARKED_WORDS,
    NO_CLAIM,
    SOURCES,
    UNSURE,
    iterate_sources,
    marked_claims,
    read_sources,
)
from ...ops.hard import path_risk, segment_sum

#: Judgements that a person can give of a claim, with its label; None takes one back.
#: "unsure" was looked at and could not be called true, "unknown" was not looked at, and "no claim"
#: says that nothing is claimed, so that nothing of it can be false.
WORDS = {"true": 1, "false": 0, "unsure": 0, "no claim": 1, "unknown": -1, None: None}
#: What two people are compared by: of a claim that one is unsure of they say nothing.
VERDICTS: dict[str | None, int] = {"true": 1, "false": 0, "no claim": 1}
#: What claims are judged for. Only "labels" may calibrate.
PURPOSES = ("labels", "review", "audit")
_LONGEST_NOTE = 10_000
_HOW = {"human": "by people", "model": "by models", "derived": "derived"}


class LabelSource(NamedTuple):
    """Who judged a claim, and when.

    Parameters
    ----------
    kind : {"human", "model", "derived"}
        A person, a language model, or a rule that made the label from something else.
    by : str
        Name of the person, the model or the rule.
    when : str or None
        Time in ISO 8601.
    version : str or None
        Of the prompt, or of the rule.
    seconds : float or None
        For how long a person looked at the claim.
    note : str or None
        What the person noted.
    """

    kind: str
    by: str
    when: str | None = None
    version: str | None = None
    seconds: float | None = None
    note: str | None = None

    @classmethod
    def now(cls, kind: str, by: str, version: str | None = None) -> LabelSource:
        """A source with the present time.

        Parameters
        ----------
        kind : {"human", "model", "derived"}
            As in the class.
        by : str
            Name of the person, the model or the rule.
        version : str, optional
            Of the prompt, or of the rule.

        Returns
        -------
        LabelSource
        """
        when = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(kind, by, when, version)


_ALWAYS = LabelSource._fields[:4]  # the others are written where there are any


def set_label_sources(
    graph: ReasoningGraph, sources: LabelSource | Sequence[LabelSource | None]
) -> ReasoningGraph:
    """The graph with the sources of its labels in its metadata, where they travel along.

    Parameters
    ----------
    graph : ReasoningGraph
    sources : LabelSource, or sequence of (LabelSource or None)
        One for all claims, or one for each; None where nobody judged the claim.

    Returns
    -------
    ReasoningGraph

    Raises
    ------
    ValueError
        If there are more or fewer sources than claims, or a kind is unknown.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling.sources import LabelSource, get_label_sources, set_label_sources
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4", "so it is odd"])
    >>> graph = set_label_sources(graph, [LabelSource("human", "ann"), None])
    >>> get_label_sources(graph)
    [LabelSource(kind='human', by='ann', when=None, version=None, seconds=None, note=None), None]
    """
    if isinstance(sources, LabelSource):
        sources = [sources] * graph.n_claims
    if len(sources) != graph.n_claims:
        raise ValueError(f"{len(sources)} sources but {graph.n_claims} claims")
    for source in sources:
        if source is not None:
            check_choice("kind", source.kind, KINDS)
    rows = [
        source
        and {k: v for k, v in source._asdict().items() if v is not None or k in _ALWAYS}
        for source in sources
    ]
    return graph.replace(metadata={**(graph.metadata or {}), SOURCES: rows})


def get_label_sources(graph: ReasoningGraph) -> list[LabelSource | None]:
    """Where the labels of a graph come from.

    Parameters
    ----------
    graph : ReasoningGraph

    Returns
    -------
    list of (LabelSource or None)
        One for each claim; None where it is not known.
    """
    rows = read_sources(graph.metadata, graph.n_claims)
    return [row and LabelSource(*map(row.get, LabelSource._fields)) for row in rows]


def describe_labels(X: Any, y: Labels | ArrayLike) -> str:
    """How many labels there are and who gave them, in one sentence, for reports.

    Parameters
    ----------
    X : sequence of ReasoningGraph, or GraphBatch
        With sources in their metadata, where these are known.
    y : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.

    Returns
    -------
    str
        Counts of claims, by kind of source and by name.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling.sources import LabelSource, describe_labels, set_label_sources
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4", "so it is odd"])
    >>> graph = set_label_sources(graph, LabelSource("human", "ann"))
    >>> describe_labels([graph], [[1, -1]])
    '2 claims: 1 judged by people (ann 1), 1 not judged'
    """
    batch = as_batch(X)
    labels = pack_labels(y, batch)
    counts = Counter()
    for label, row in zip(labels.tolist(), iterate_sources(batch), strict=True):
        if label >= 0:
            counts[(row["kind"], str(row.get("by"))) if row else ("unknown", "")] += 1
    counts_in_words = [
        count for kind in (*KINDS, "unknown") if (count := _count(kind, counts))
    ]
    if unknown := int(np.sum(labels < 0)):
        counts_in_words.append(f"{unknown} not judged")
    rows = [None] * len(batch) if batch.metadata is None else batch.metadata
    sizes = batch.sizes.tolist()

    def count_marked(key):
        pairs = zip(rows, sizes, strict=True)
        return sum(len(marked_claims(row, key, n)) for row, n in pairs)

    if unsure := count_marked(UNSURE):
        counts_in_words.append(
            f"of {unsure} somebody was unsure, which counts as false"
        )
    if nothing := count_marked(NO_CLAIM):
        counts_in_words.append(
            f"{nothing} claim nothing, which counts as true and not as a true claim kept"
        )
    return f"{len(labels)} claims: {', '.join(counts_in_words)}"


def describe_unfinished(X: Any, y: Labels | ArrayLike) -> str:
    """Say in a sentence how many claims are unjudged in answers that somebody started to judge.

    Calibration counts an unknown label as false. It costs nothing below a claim that is false.

    Parameters
    ----------
    X : sequence of ReasoningGraph, or GraphBatch
        The problems.
    y : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.

    Returns
    -------
    str
        Empty if there is no such claim.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling.sources import describe_unfinished
    >>> graphs = [ReasoningGraph(None, [(0, 1)], claims=["a", "b", "c"])] * 2
    >>> describe_unfinished(graphs, [[0, -1, -1], [-1, -1, -1]]).partition(";")[0]
    '1 claims in 1 answers were not judged'
    """
    batch = as_batch(X)
    labels = pack_labels(y, batch)
    is_open = (labels < 0) & (path_risk((labels == 0).astype(float), batch) == 0)
    is_started = segment_sum(labels >= 0, batch.offsets) > 0
    n_open = segment_sum(is_open, batch.offsets)[is_started]
    if not n_open.any():
        return ""
    return (
        f"{int(n_open.sum())} claims in {int((n_open > 0).sum())} answers were not judged; they "
        "count as false, so less is kept. Judge them to keep more"
    )


def _count(kind, found):
    names = {by: n for (k, by), n in found.items() if k == kind}
    if not names:
        return None
    total = sum(names.values())
    if kind == "unknown":
        return f"{total} judged, the data do not say by whom"
    listed = ", ".join(f"{by} {n}" for by, n in sorted(names.items()))
    judged = "" if kind == "derived" else "judged "
    return f"{total} {judged}{_HOW[kind]} ({listed})"


class LabelStore:
    """Problems, and what people said of their claims so far.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        With claims. Corrected edges replace theirs.
    path : path-like
        The journal; made if it is not there, and gone on with if it is. Several people
        may share one.
    labels : sequence of arrays, optional
        Labels that are known, say proposed by a model. They stay where nobody says
        anything else.
    purpose : {"labels", "review", "audit"}, default="labels"
        What is judged for. Claims of a review are chosen by their risk, and those of an
        audit by what a filter kept, so that a journal holds judgements of one kind alone.

    Attributes
    ----------
    events : list of dict
        All judgements in their order.
    plan : dict or None
        How an audit is done, with the sizes of its ``looks``.

    Raises
    ------
    ValueError
        If a problem has no claim texts, or the file is no journal of this purpose.

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
                raise ValueError(f"problem {i} has no claim texts to show")
        self._digests = [problem_digest(graph) for graph in self.graphs]
        unknown = [
            digest
            for digest, graph in zip(self._digests, self.graphs, strict=True)
            if not graph.edges_known
        ]
        #: Names the problems of unknown edges in the journal: with other ones beside them,
        #: what somebody said of all of them does not count.
        self._unknown = hashlib.sha256(" ".join(sorted(unknown)).encode()).hexdigest()
        self._lock = threading.Lock()
        #: The last event of each kind, person, problem and claim.
        self._last: dict[tuple[str, str, str, int | None], dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        #: How an audit was planned; None before that.
        self.plan: dict[str, Any] | None = None
        self._end = read_journal(self.path, self._apply)

    @property
    def version(self) -> int:
        """Grows with every change, so that a page knows whether it is up to date."""
        return len(self.events)

    def follow(self) -> None:
        """Take in what other people have judged meanwhile, each with a program of their own."""
        # The next judgement makes it anew.
        with self._lock, suppress(FileNotFoundError):
            self._end = follow_journal(self.path, self._apply, self._end)

    def _apply(self, event):
        purpose = event.get("purpose", "labels")
        if purpose != self.purpose:
            raise ValueError(
                f"it is a judgement for {purpose!r}, and not for {self.purpose!r}"
            )
        if "looks" in event:
            self.plan = self.plan or event
            self.events.append(event)
            return
        kinds = ("edges", "edges_known", "note")
        kind = next((k for k in kinds if k in event), "label")
        claim = None if kind in ("edges", "edges_known") else event["claim"]
        if kind != "label" or event["label"] in WORDS:
            self._last[kind, event["by"], event["problem"], claim] = event
        self.events.append(event)

    def label(
        self, problem: int, claim: int, word: str | None, *, by: str, seconds=None
    ) -> None:
        """Save what somebody says of a claim.

        Parameters
        ----------
        problem, claim : int
            Positions, counted from 0.
        word : {"true", "false", "unsure", "no claim", "unknown"} or None
            "unsure" was looked at and could not be called true, "no claim" is a sentence that
            claims nothing, "unknown" was not looked at; None takes back what was said before.
        by : str
            Who says it.
        seconds : float, optional
            For how long the claim was looked at.

        Raises
        ------
        ValueError
            If there is no such claim or word.
        """
        if not isinstance(word, str | None) or word not in WORDS:
            raise ValueError(f"the label is {word!r}, but must be one of {list(WORDS)}")
        event = {**self._place(problem, claim), "label": word}
        if seconds is not None:
            if type(seconds) not in (int, float) or not 0 <= seconds < 1e6:
                raise ValueError(f"seconds is {seconds!r}, but must be a duration")
            event["seconds"] = round(seconds, 1)
        self._save(event, by)

    def note(self, problem: int, claim: int, text: str, *, by: str) -> None:
        """Save a note on a claim, which stands in the place of an earlier one.

        Parameters
        ----------
        problem, claim : int
            Positions, counted from 0.
        text : str
            An empty one takes the note back.
        by : str
            Who says it.

        Raises
        ------
        ValueError
            If there is no such claim, or the text is none or has more than 10,000
            characters.
        """
        if not isinstance(text, str) or len(text) > _LONGEST_NOTE:
            raise ValueError(f"a note is a text of at most {_LONGEST_NOTE} characters")
        self._save({**self._place(problem, claim), "note": text}, by)

    def correct_edges(self, problem: int, edges: Any, *, by: str) -> None:
        """Save what builds on what, as somebody sees it.

        Parameters
        ----------
        problem : int
            Its position.
        edges : list of (parent, child)
            All of them, as positions of claims.
        by : str
            Who says it.

        Raises
        ------
        ValueError
            If the edges make no graph: on a cycle, or a claim that is not there; or if
            what is judged was chosen by a filter, which has decided by the edges.
        """
        if self.purpose != "labels":
            raise ValueError(
                "the filter has decided by the edges as they are, so that they stay: correct "
                "them before the answers are filtered"
            )
        if self._graph(problem).wordings is not None:
            raise ValueError(
                f"edges of problem {problem} cannot be corrected here, since its claims have "
                "wordings: correct them before the claims are reworded"
            )
        graph = self._graph(problem).replace(edges=_pairs(edges))
        event = {"problem": self.digest(problem), "edges": graph.edges.tolist()}
        self._save(event, by)

    def settle_plan(self, looks: Sequence[int], *, by: str, **draw: Any) -> None:
        """Save how an audit is done, before its first verdict.

        Parameters
        ----------
        looks : sequence of int
            Numbers of texts after which the bound is read.
        by : str
            Who plans it.
        **draw
            What decides which texts are drawn.
        """
        self._save({"looks": list(looks), **draw}, by)

    def state_edges_known(self, known: bool, *, by: str) -> None:
        """Save whether it is known now of every claim what it builds on.

        Only where somebody says so do corrections count in problems of which the edges were
        unknown: what a person links in a few of them says nothing of the others.

        Parameters
        ----------
        known : bool
            Whether all problems have all their edges now.
        by : str
            Who says it.

        Raises
        ------
        ValueError
            If ``known`` is neither True nor False.
        """
        if not isinstance(known, bool):
            raise ValueError(f"known is {known!r}, but must say yes or no")
        self._save({"problem": self._unknown, "edges_known": known}, by)

    def edges_known(self, problem: int, by: str) -> bool:
        """Tell whether the edges of a problem are known, as they were or by what somebody said.

        Parameters
        ----------
        problem : int
            Its position, counted from 0.
        by : str
            Who corrected them.

        Returns
        -------
        bool
            False where somebody has to say what each claim builds on.
        """
        statement = self._last.get(("edges_known", by, self._unknown, None), {})
        return self.graphs[problem].edges_known or statement.get("edges_known", False)

    def _graph(self, problem):
        if type(problem) is not int or not 0 <= problem < len(self.graphs):
            raise ValueError(f"problem {problem!r} but {len(self.graphs)} problems")
        return self.graphs[problem]

    def _place(self, problem, claim):
        graph = self._graph(problem)
        if type(claim) is not int or not 0 <= claim < graph.n_claims:
            raise ValueError(f"claim {claim!r} but {graph.n_claims} claims")
        return {"problem": self.digest(problem), "claim": claim}

    def digest(self, problem: int) -> str:
        """Give what the journal calls a problem: a digest of its texts.

        Parameters
        ----------
        problem : int
            Its position, counted from 0.

        Returns
        -------
        str
            Hexadecimal digits, the same wherever the problem stands in a file.
        """
        return self._digests[problem]

    def _save(self, event, by):
        event |= {"by": by, "when": LabelSource.now("human", by).when}
        if self.purpose != "labels":
            event["purpose"] = self.purpose
        with self._lock:
            append_journal(self.path, event)
            self._end = follow_journal(self.path, self._apply, self._end)

    def said(self, problem: int, by: str) -> list[str | None]:
        """Return what somebody said of the claims of a problem.

        Parameters
        ----------
        problem : int
            Its position, counted from 0.
        by : str
            Who said it.

        Returns
        -------
        list of {"true", "false", "unsure", "no claim", "unknown"} or None
            One for each claim; None where nothing was said.
        """
        return [event.get("label") for event in self._events("label", problem, by)]

    def _events(self, kind, problem, by):
        digest = self.digest(problem)
        n = self.graphs[problem].n_claims
        return [self._last.get((kind, by, digest, v), {}) for v in range(n)]

    def notes(self, problem: int, by: str) -> list[str]:
        """The notes of somebody on the claims of a problem.

        Parameters
        ----------
        problem : int
            Its position, counted from 0.
        by : str
            Who wrote them.

        Returns
        -------
        list of str
            Empty where there is none.
        """
        return [event.get("note", "") for event in self._events("note", problem, by)]

    def edges(self, problem: int, by: str) -> list[list[int]]:
        """Return which claims build on which, as somebody corrected it, or as it was.

        Parameters
        ----------
        problem : int
            Its position, counted from 0.
        by : str
            Who corrected them.

        Returns
        -------
        list of [parent, child]
            Positions of claims.
        """
        as_read = {"edges": self.graphs[problem].edges.tolist()}
        return self._last.get(("edges", by, self.digest(problem), None), as_read)[
            "edges"
        ]

    def annotators(self) -> list[str]:
        """List who has said something.

        Returns
        -------
        list of str
            Their names, sorted.
        """
        return sorted({by for kind, by, *_ in self._last if kind != "note"})

    def labels(self, by: str) -> list[NDArray[np.int64]]:
        """The labels of one person, with those that were known where nothing was said.

        Parameters
        ----------
        by : str
            Whose labels these are.

        Returns
        -------
        list of ndarray of int
            1 true, 0 false or unsure, -1 not judged.
        """
        return self._labels(by, True)

    def verdicts(self, by: str) -> list[NDArray[np.int64]]:
        """What one person called true or false, to be compared with another.

        Parameters
        ----------
        by : str
            Whose verdicts these are.

        Returns
        -------
        list of ndarray of int
            1 true, 0 false, -1 where the person was unsure or said nothing.
        """
        words = (self.said(i, by) for i in range(len(self.graphs)))
        return [
            np.array([VERDICTS.get(word, -1) for word in row], np.int64)
            for row in words
        ]

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

    def settle(self, first: str, second: str, by: str) -> None:
        """Save as ``by`` what two people agree on, where ``by`` has said nothing yet.

        Parameters
        ----------
        first, second : str
            Who has judged.
        by : str
            Whose set of labels is settled. What the two disagree on stays open in it.

        Raises
        ------
        ValueError
            If one of the two has judged nothing.
        """
        self.check_judged(first, second)
        for i, v, a, b in self.compare(first, second, by):
            if a == b:
                self.label(i, v, a, by=by)

    def check_judged(self, *names: str) -> None:
        """Raise ValueError unless each of these people has judged something.

        Parameters
        ----------
        *names : str
            Who should have judged.
        """
        for name in names:
            if name not in (annotators := self.annotators()):
                raise ValueError(f"{name!r} has judged nothing; there are {annotators}")

    def compare(self, first: str, second: str, by: str) -> Iterator[tuple]:
        """Go through the claims that two people judged and somebody else has not.

        Parameters
        ----------
        first, second : str
            Who has judged.
        by : str
            Who has said nothing of these claims.

        Yields
        ------
        tuple of (problem, claim, label, other label)
        """
        for i in range(len(self.graphs)):
            words = zip(
                self.said(i, first), self.said(i, second), self.said(i, by), strict=True
            )
            for v, (a, b, as_read) in enumerate(words):
                if as_read is None and a is not None and b is not None:
                    yield i, v, a, b

    def export(self, by: str, *, known: bool = True) -> Bunch:
        """All problems with the labels and edges of one person.

        Parameters
        ----------
        by : str
            Whose labels and edges these are.
        known : bool, default=True
            Whether labels that the problems came with stand where nothing was said.

        Returns
        -------
        Bunch
            ``graphs`` (GraphBatch; who said what, notes and seconds are in the metadata,
            ``edges_corrected`` where edges were changed, ``unsure_claims`` where somebody was
            unsure, and ``makes_no_claim``), ``labels`` (list of int arrays: 1 true or without
            a claim, 0 false or unsure, -1 not judged), ``words`` (what was said,
            as in `said`), ``n_corrected`` (number of problems with other edges),
            ``n_unknown`` (number of those whose edges were unknown and stay so, as nobody
            said that all are known now).
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
                correction = {"edges_corrected": True, "edges_corrected_by": by}
                correction = {**(graph.metadata or {}), **correction}
                # Edges of claims with wordings stay as they are, or there are none.
                pairs = _pairs(edges if graph.wordings is None else [])
                graph = graph.replace(edges=pairs, metadata=correction)
            graph = set_label_sources(graph, self._sources(i, graph, by))
            graphs.append(_with_marks(graph, self.said(i, by)))
        return Bunch(
            graphs=GraphBatch.from_graphs(graphs),
            labels=self._labels(by, known),
            words=[self.said(i, by) for i in range(len(graphs))],
            n_corrected=corrected,
            n_unknown=unknown,
        )

    def _sources(self, i, graph, by):
        return [
            theirs or source
            for theirs, source in zip(
                self.sources(i, by), get_label_sources(graph), strict=True
            )
        ]

    def sources(self, problem: int, by: str) -> list[LabelSource | None]:
        """Who judged the claims of a problem, when, and for how long.

        Parameters
        ----------
        problem : int
            Its position, counted from 0.
        by : str
            Who judged.

        Returns
        -------
        list of (LabelSource or None)
            One for each claim; None where this person said nothing.
        """
        notes = self.notes(problem, by)
        sources: list[LabelSource | None] = []
        for v, event in enumerate(self._events("label", problem, by)):
            source = None
            if event.get("label") is not None:
                details = {"seconds": event.get("seconds"), "note": notes[v] or None}
                source = LabelSource("human", by, event["when"], **details)
            sources.append(source)
        return sources


def _with_marks(graph, words):
    """The graph whose metadata list the claims that somebody is unsure of, or finds empty."""
    metadata = dict(graph.metadata or {})
    for marking_word, key in MARKED_WORDS.items():
        before = marked_claims(metadata, key, graph.n_claims)
        # Nobody said anything else of these.
        marked = [v for v in before if words[v] is None]
        marked += [v for v, word in enumerate(words) if word == marking_word]
        metadata.pop(key, None)
        if marked:
            metadata[key] = sorted(marked)
    return graph.replace(metadata=metadata)


def _pairs(edges):
    if not isinstance(edges, list):
        raise ValueError("edges must be a list of pairs")
    return [tuple(pair) if isinstance(pair, list) else pair for pair in edges]
