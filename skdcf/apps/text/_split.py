"""Convert logged answers to problems, without calling a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from ...datasets import records
from ...datasets.paths import MISSING, paths_of, value_at
from ...edges import chain_edges, no_edges
from ...features import SURPRISAL, surprisal
from ._layout import LAYOUT
from ._no_claim import NoClaimList, no_claim_list
from ._sentences import sentences_with_layout, splitter_of

ANSWER = "answer"
LOGPROBS = "logprobs"
_CALLED_ANSWER = ("response",)  # alternative names for the answer, as in RAGAS
_OF_CLAIMS = ("claims", "features")
_EDGES = {"none": no_edges, "chain": chain_edges}


class AnsweredLine(NamedTuple):
    """An answer read from a log, with its problem and the log-probabilities of its tokens."""

    answer: str
    logprobs: Any
    problem: records.Problem


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
    read_problem : callable
        Function that converts a line with claims to a `Problem`.
    """

    def __init__(self, rename: Mapping[str, str]) -> None:
        self.rename = {
            theirs: ours
            for theirs, ours in rename.items()
            if ours not in (ANSWER, LOGPROBS)
        }
        self._mapped_answers = _keys_mapped_to(ANSWER, rename)
        self._answer_keys = [*self._mapped_answers, ANSWER, *_CALLED_ANSWER]
        self._logprobs_keys = [*_keys_mapped_to(LOGPROBS, rename), LOGPROBS]
        self.read_problem = partial(records.read_problem, rename=self.rename)

    def key_of_answer(self, record: dict[str, Any]) -> str | None:
        """Return the key or path of the answer in a line, or None if there is no answer.

        Parameters
        ----------
        record : dict
            The JSON object parsed from a line.

        Returns
        -------
        key : str or None
            The key or path.
        """
        keys = self._answer_keys
        return next(
            (k for k in keys if isinstance(value_at(record, k, ANSWER), str)), None
        )

    def __call__(self, record: dict[str, Any]) -> AnsweredLine:
        """Read a line, and create a problem with zero claims if the line has no claims.

        Parameters
        ----------
        record : dict
            The JSON object parsed from a line.

        Returns
        -------
        line : AnsweredLine
            The answer, its log-probabilities and the problem.
        """
        key = self.key_of_answer(record)
        if key is None:
            self._check_type_of_answer(record)
            if self._mapped_answers:
                mapped = self._mapped_answers[0]
                raise ValueError(records.describe_missing(record, mapped, ANSWER))
            paths = sorted(paths_of(record))
            texts = [path for path in paths if isinstance(value_at(record, path), str)]
            raise ValueError(
                'each line must contain a string under the key "answer", but only the keys '
                f"{texts} contain strings. If the answer has a different key or path, pass "
                "--map KEY=answer"
            )
        logprobs_found = [value_at(record, name) for name in self._logprobs_keys]
        logprobs = next(
            (g for g in logprobs_found if g is not MISSING and g is not None), None
        )
        rest = {k: v for k, v in record.items() if k not in self._logprobs_keys}
        return AnsweredLine(
            answer=value_at(record, key),
            logprobs=logprobs,
            problem=self.read_problem({"claims": []} | rest),
        )

    def _check_type_of_answer(self, record: dict[str, Any]) -> None:
        """Raise ValueError if the answer exists, but is not a string."""
        for key in self._answer_keys:
            if (value := value_at(record, key)) is not MISSING:
                raise ValueError(
                    f'the answer "{key}" must be a string, {_advice_on_answer(key, value)}'
                )


def _advice_on_answer(key, value):
    """Return what an answer is instead of a string, and what to do."""
    if isinstance(value, dict):
        return (
            f"got an object with the keys {sorted(value)}. Pass the path of the text, for "
            f"example --map {key}.content=answer"
        )
    if not isinstance(value, list):
        return f'got {value!r}. Use the empty string "" for an answer without content'
    list_path, _, inner = key.partition("[]")
    if any(isinstance(entry, dict) for entry in value):
        inner = ".content"
    return (
        f"got a list with {len(value)} entries, which are not joined, because they may include "
        f"the question. Select one of them, for example --map {list_path}[-1]{inner}=answer for "
        "the last entry. To judge each message of an agent, use "
        "skdcf.datasets.from_messages"
    )


def _keys_mapped_to(name, rename):
    """Return the keys of a log that ``rename`` maps to the given name."""
    return [theirs for theirs, ours in rename.items() if ours == name]


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
        description = splitter_of(self.language)
        return description | {"edge_rule": self.edges, "no_claim": self._no_claim.name}

    @property
    def _no_claim(self) -> NoClaimList:
        return no_claim_list() if self.no_claim is None else self.no_claim

    def split(
        self, record: dict[str, Any], read: Callable[[dict[str, Any]], AnsweredLine]
    ) -> records.Problem:
        """Convert a line with an answer to a problem.

        Parameters
        ----------
        record : dict
            The JSON object parsed from a line without claims.
        read : callable
            Function that reads a line, such as an `AnswerReader`.

        Returns
        -------
        problem : Problem
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
        answer = line.answer or ""
        sentences, between = sentences_with_layout(answer, self.language)
        claims, without_claim = self._no_claim.divide(sentences)
        edges = [*map(list, _EDGES[self.edges](claims))]
        # The line is read again with the claims, because the group of a problem may depend on
        # them.
        problem = read(record | {"claims": claims, "edges": edges}).problem
        metadata = dict(problem.metadata or {})
        metadata[LAYOUT] = {"between": between, "without_claim": without_claim}
        graph = problem.graph
        if line.logprobs is not None:
            columns = surprisal(line.logprobs, answer, claims)
            graph = graph.replace(features=columns, feature_names=SURPRISAL)
        made = (graph.provenance or {}) | self.provenance
        return problem._replace(
            graph=graph.replace(provenance=made, metadata=metadata), metadata=metadata
        )
