"""Convert logged answers to problems, without calling a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..._checks import counted
from ...datasets import records
from ...datasets.paths import MISSING, paths_of, value_at
from ...datasets.thoughts import without_reasoning, without_thoughts
from ...edges import chain_edges, no_edges
from ...features import SURPRISAL, surprisal
from ...graphs import ReasoningGraph
from ._layout import LAYOUT
from ._no_claim import NoClaimList, no_claim_list
from ._sentences import sentences_with_layout

ANSWER = "answer"
#: Metadata key for what was removed from an answer: `THOUGHTS`, `CUT_OFF` or both.
REMOVED = "removed"
THOUGHTS = "thoughts or control tokens"
CUT_OFF = "the last sentence, because of finish_reason,"
# Keys and values that servers use for an answer that was cut off.
_CUT = {
    "finish_reason": "length",
    "done_reason": "length",
    "stop_reason": "max_tokens",
    "finishReason": "MAX_TOKENS",
    "status": "incomplete",
}
LOGPROBS = "logprobs"
_CALLED_ANSWER = "response"  # alternative name for the answer, as in RAGAS
_EDGES = {"none": no_edges, "chain": chain_edges}


class AnsweredLine(NamedTuple):
    """An answer read from a log, with its problem and the log-probabilities of its tokens."""

    answer: str
    logprobs: Any
    graph: ReasoningGraph


class AnswerReader:
    """Callable that reads an answer and its problem from a line of a log.

    Parameters
    ----------
    rename : mapping of str to str
        Mapping from keys or paths in the lines to ``answer``, ``logprobs`` or keys of the JSON
        Lines format.

    Attributes
    ----------
    rename : dict
        The entries of the mapping whose values are keys of the JSON Lines format.
    """

    def __init__(self, rename: Mapping[str, str]) -> None:
        self.rename = dict(rename)
        self._keys: dict[str, list[str]] = {ANSWER: [], LOGPROBS: []}
        for theirs, ours in rename.items():
            if ours in self._keys:
                self._keys[ours].append(theirs)
                del self.rename[theirs]

    def __call__(self, record: dict[str, Any]) -> AnsweredLine:
        """Read a line, and create a problem with zero claims if the line has no claims.

        Parameters
        ----------
        record : dict
            The JSON object parsed from a line.

        Returns
        -------
        line : AnsweredLine
            The answer, its log-probabilities and the problem. Thoughts, control tokens and the
            last sentence of a cut-off answer are removed.
        """
        answers = self._values(record, ANSWER, ANSWER, _CALLED_ANSWER)
        texts = {path: _text_of(value) for path, value in answers.items()}
        path = next((path for path in texts if texts[path] is not None), None)
        if path is None:
            raise ValueError(self._describe_fault(record, answers))
        answer = without_thoughts(texts[path])
        parts = answers[path]
        has_thoughts = answer != texts[path] or (
            isinstance(parts, list) and without_reasoning(parts) != parts
        )
        removed = [THOUGHTS] if has_thoughts else []
        if _is_cut_off(record, path):
            answer = _without_last_sentence(answer)
            removed.append(CUT_OFF)
        logprobs = self._values(record, LOGPROBS, LOGPROBS)
        rest = {key: record[key] for key in record if key not in logprobs}
        graph = records.read_graph({"claims": []} | rest, self.rename)
        if graph.alternatives is not None:
            graph = graph.replace(
                alternatives=map(without_thoughts, graph.alternatives)
            )
        if removed:
            graph = graph.replace(metadata={**(graph.metadata or {}), REMOVED: removed})
        return AnsweredLine(
            answer=answer,
            logprobs=next((v for v in logprobs.values() if v is not None), None),
            graph=graph,
        )

    def _values(self, record, ours, *names):
        """Return the values in a line under the keys of the log and the given names."""
        keys = [*self._keys[ours], *names]
        values = {key: value_at(record, key, ours) for key in keys}
        return {key: value for key, value in values.items() if value is not MISSING}

    def _describe_fault(self, record, answers):
        for key, value in answers.items():
            place = f"{key.partition('[]')[0]}[-1]" if isinstance(value, list) else key
            return (
                f'the answer "{key}" must be a string, got {value!r:.60}. Use "" for an answer '
                f"without content, or select the text, for example with --map "
                f"{place}.content=answer. To judge each message of an agent, use "
                "skdcf.datasets.from_messages"
            )
        for key in self._keys[ANSWER]:
            return records.describe_missing(record, key, ANSWER)
        texts = [p for p in paths_of(record) if isinstance(value_at(record, p), str)]
        return (
            'each line must contain a string under the key "answer", but only the keys '
            f"{sorted(texts)} contain strings. If the answer has a different key or path, pass "
            "--map KEY=answer"
        )


def _text_of(value):
    """Return the text of an answer, which may be a list of parts, or None."""
    if isinstance(value, list) and value and all(isinstance(p, dict) for p in value):
        texts = [part.get("text") for part in without_reasoning(value)]
        value = "".join(texts) if all(isinstance(t, str) for t in texts) else None
    return value if isinstance(value, str) else None


def _is_cut_off(record, path):
    """Return whether an object that contains an answer states that the answer was cut off."""
    while path:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
        place = value_at(record, path)
        if isinstance(place, dict) and any(
            place.get(key) == value for key, value in _CUT.items()
        ):
            return True
    return False


def _without_last_sentence(answer):
    sentences, between = sentences_with_layout(answer)
    n = len("".join([*between[-2:], *sentences[-1:]]))
    return answer[: len(answer) - n]


def describe_removed(graphs: Iterable[ReasoningGraph]) -> str:
    """Return a sentence on what `AnswerReader` removed from the answers, or an empty string."""
    removed = [(graph.metadata or {}).get(REMOVED, ()) for graph in graphs]
    counts = {what: sum(what in row for row in removed) for what in (THOUGHTS, CUT_OFF)}
    parts = [f"{what} in {counted(n, 'answer')}" for what, n in counts.items() if n]
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
    no_claim : NoClaimList, optional
        List of patterns that match sentences without a claim. The default is the built-in list.
    """

    language: str = "en"
    edges: str = "none"
    no_claim: NoClaimList | None = None

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
        calibrated = filter.provenance_
        keys = ("splitter", "language", "edge_rule", "no_claim")
        values = [calibrated.get(key, [None]) for key in keys]
        if any(len(row) != 1 or row[0] is None for row in values):
            raise ValueError(
                '"answer" cannot be split, because the calibration answers were split into '
                'sentences in different ways. Send "claims" instead'
            )
        made = {key: row[0] for key, row in zip(keys, values, strict=True)}
        splitter = cls(made["language"], made["edge_rule"])
        if splitter.provenance != made:
            raise ValueError(
                "answers must be split in the same way as the calibration answers "
                f"({made}), got {splitter.provenance}. Split them with "
                '"skdcf split" and the same --no-claim FILE, and send "claims"'
            )
        return splitter

    @cached_property
    def provenance(self) -> dict[str, str]:
        """Return the description of the splitter that is stored in the provenance of claims."""
        return {
            "splitter": "sentencex",
            "language": self.language,
            "edge_rule": self.edges,
            "no_claim": self._no_claim.name,
        }

    @property
    def _no_claim(self) -> NoClaimList:
        return no_claim_list() if self.no_claim is None else self.no_claim

    def split(
        self, record: dict[str, Any], read: Callable[[dict[str, Any]], AnsweredLine]
    ) -> ReasoningGraph:
        """Convert a line with an answer to a problem.

        Parameters
        ----------
        record : dict
            The JSON object parsed from a line without claims.
        read : callable
            Function that reads a line, such as an `AnswerReader`.

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
        line = read(record)
        sentences, between = sentences_with_layout(line.answer, self.language)
        claims, without_claim = self._no_claim.divide(sentences)
        edges = [*map(list, _EDGES[self.edges](claims))]
        # The line is read again with the claims, because the group of a problem may depend on
        # them.
        graph = read(record | {"claims": claims, "edges": edges}).graph
        metadata = dict(graph.metadata or {})
        metadata[LAYOUT] = {"between": between, "without_claim": without_claim}
        if line.logprobs is not None:
            columns = surprisal(line.logprobs, line.answer, claims)
            graph = graph.replace(features=columns, feature_names=SURPRISAL)
        made = (graph.provenance or {}) | self.provenance
        return graph.replace(provenance=made, metadata=metadata)
