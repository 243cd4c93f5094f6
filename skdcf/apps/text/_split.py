"""Convert logged answers to problems, without calling a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from ..._checks import counted
from ...datasets import records
from ...datasets.paths import MISSING, value_at
from ...datasets.thoughts import (
    clean_texts,
    is_cut_off,
    without_reasoning,
    without_thoughts,
)
from ...edges import chain_edges
from ...features import SURPRISAL, surprisal
from ...graphs import ReasoningGraph
from ._layout import LAYOUT, heading_mark
from ._no_claim import makes_claim, name_of, read_patterns
from ._sentences import sentences_with_layout


def read_answer(
    record: dict[str, Any], rename: Mapping[str, str]
) -> tuple[str, Any, ReasoningGraph]:
    """Read an answer and its problem from a line of a log.

    Parameters
    ----------
    record : dict
        The JSON object parsed from a line.
    rename : mapping of str to str
        Mapping from keys or paths in the line to ``answer``, ``logprobs`` or keys of the JSON
        Lines format.

    Returns
    -------
    answer : str
        The answer without thoughts and control tokens, and without the last sentence if the answer
        was cut off.
    logprobs : object or None
        The log-probabilities of its tokens.
    graph : ReasoningGraph
        The problem without claims.
    """
    paths = {ours: theirs for theirs, ours in rename.items()}
    path = paths.pop("answer", "answer")
    path_of_logprobs = paths.pop("logprobs", "logprobs")
    answer, removed = clean_answer(record, path)
    logprobs = value_at(record, path_of_logprobs)
    rest = {key: record[key] for key in record if key != path_of_logprobs}
    known = {theirs: ours for ours, theirs in paths.items()}
    graph = records.read_graph({"claims": []} | rest, known)
    graph = graph.replace(
        alternatives=clean_texts(graph.alternatives),
        metadata={**(graph.metadata or {}), **removed} or None,
    )
    return answer, None if logprobs is MISSING else logprobs, graph


def clean_answer(
    record: dict[str, Any], path: str = "answer"
) -> tuple[str, dict[str, list[str]]]:
    """Return the answer at a path in a line, and metadata that state what was removed from it."""
    value = value_at(record, path, "answer")
    text = _text_of(value)
    if text is None:
        raise ValueError(_describe_fault(record, path, value))
    answer = without_thoughts(text)
    removed = []
    has_reasoning = isinstance(value, list) and without_reasoning(value) != value
    if answer != text or has_reasoning:
        removed.append("thoughts or control tokens")
    if _is_cut_off(record, path):
        end = "".join(sentences_with_layout(answer)[-3:])
        answer = answer.removesuffix(end)
        removed.append("the last sentence, because of finish_reason,")
    return answer, {"removed": removed} if removed else {}


def _text_of(value):
    """Return the text of an answer, which may be a list of parts, or None."""
    if isinstance(value, list) and value and all(isinstance(p, dict) for p in value):
        texts = [part.get("text") for part in without_reasoning(value)]
        value = "".join(texts) if all(isinstance(t, str) for t in texts) else None
    return value if isinstance(value, str) else None


def _describe_fault(record, path, value):
    if value is MISSING:
        return (
            f"{records.describe_missing(record, path, 'answer')}. If the answer has a different "
            "key or path, pass --map KEY=answer"
        )
    place = f"{path.partition('[]')[0]}[-1]" if isinstance(value, list) else path
    return (
        f'the answer "{path}" must be a string, got {value!r:.60}. Use "" for an answer '
        f"without content, or select the text, for example with --map "
        f"{place}.content=answer. To judge each message of an agent, use "
        "skdcf.datasets.from_messages"
    )


def _is_cut_off(record, path):
    """Return whether the objects that contain an answer state that the answer was cut off."""
    places = []
    while path:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
        places.append(value_at(record, path))
    return is_cut_off(*places)


def describe_removed(graphs: Iterable[ReasoningGraph]) -> str:
    """Return a sentence on what `read_answer` removed from the answers, or an empty string."""
    rows = [(graph.metadata or {}).get("removed", ()) for graph in graphs]
    counts = Counter(chain(*rows))
    parts = [f"{what} in {counted(n, 'answer')}" for what, n in counts.items()]
    return f". Removed: {', '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class AnswerSplitter:
    """Splitter that divides answers into sentences, which are used as claims.

    Parameters
    ----------
    language : str
        Language code, as in `split_sentences`.
    edges : {"none", "chain"}
        Dependencies of a claim. With "chain", each claim depends on all earlier claims.
    no_claim : str, optional
        Path of a text file with patterns for sentences without a claim, one regular expression per
        line. Empty lines and lines that begin with ``"# "`` are ignored. A sentence makes no claim
        if a pattern matches the whole sentence, as written or without its Markdown marks. The
        default is the built-in list ``skdcf/apps/text/no_claim.txt``, which the file replaces. To
        extend the list, append patterns to a copy of it.

    Raises
    ------
    ValueError
        If a line of the file is not a valid regular expression.
    """

    language: str = "en"
    edges: str = "none"
    no_claim: str | None = None

    @classmethod
    def from_filter(cls, filter: Any) -> Any:
        """Return the splitter that created the calibration problems of a filter.

        Parameters
        ----------
        filter : fitted filter
            A filter calibrated on the output of ``skdcf split``.

        Returns
        -------
        splitter : AnswerSplitter
            A splitter with the settings that were used for the calibration problems.

        Raises
        ------
        ValueError
            If the calibration problems were created with a different splitter or list.
        """
        made = filter.provenance_
        settings = (made.get(key, [None])[0] for key in ("language", "edge_rule"))
        splitter = cls(*settings)
        own = splitter.provenance
        of_calibration = {key: made.get(key, [None]) for key in own}
        if of_calibration != {key: [value] for key, value in own.items()}:
            raise ValueError(
                '"answer" must be split in the same way as the calibration answers '
                f"({of_calibration}), got {own}. Split the answer with the same options of "
                '"skdcf split", and send "claims"'
            )
        return splitter

    @cached_property
    def provenance(self) -> dict[str, str]:
        """Return the description of the splitter that is stored in the provenance of claims."""
        return {
            "splitter": "sentencex",
            "language": self.language,
            "edge_rule": self.edges,
            "no_claim": name_of(read_patterns(self.no_claim)),
        }

    def split(
        self, record: dict[str, Any], rename: Mapping[str, str] | None = None
    ) -> ReasoningGraph:
        """Convert a line with an answer to a problem.

        Parameters
        ----------
        record : dict
            The JSON object parsed from a line without claims.
        rename : mapping of str to str, optional
            Mapping from keys or paths in the line to ``answer``, ``logprobs`` or keys of the JSON
            Lines format.

        Returns
        -------
        graph : ReasoningGraph
            The problem with its provenance, whose metadata contain the sentences that make no
            claim and the layout of the answer.

        Raises
        ------
        ValueError
            If the line already has claims, or if the log-probabilities do not match the answer.
        """
        if "claims" in record:
            raise ValueError(
                'each line must contain either "claims" or an answer, but one line contains '
                'both. Remove "claims" to split the answer, or remove the answer'
            )
        answer, logprobs, graph = read_answer(record, rename or {})
        patterns = read_patterns(self.no_claim)
        claims = []
        layout: list[Any] = sentences_with_layout(answer, self.language)
        for i in range(len(layout) - 2, 0, -2):
            # Without a claim below it, a line such as "**Location**" may be the answer.
            mark = heading_mark(layout, i) if claims else ""
            if makes_claim(layout[i], patterns, mark):
                claims.append(layout[i])
                layout[i] = None
        claims.reverse()
        graph = graph.replace(
            claims=claims,
            edges={"none": [], "chain": chain_edges(claims)}[self.edges],
            provenance={**(graph.provenance or {}), **self.provenance},
            metadata={**(graph.metadata or {}), LAYOUT: layout},
        )
        if logprobs is None:
            return graph
        columns = surprisal(logprobs, answer, claims)
        return graph.replace(features=columns, feature_names=SURPRISAL)
