"""The command ``split``, which converts answers to problems with one claim per sentence."""

from __future__ import annotations

from collections import Counter

from ..._checks import counted
from ...datasets import records
from ..text import LAYOUT, AnswerSplitter, no_claim_list
from . import _files as files


def split(options):
    """Convert each logged answer to a problem with one claim per sentence."""
    files.check_folder(options.output)
    splitter = AnswerSplitter(
        options.language or "en",
        edges=options.edges,
        no_claim=no_claim_list(options.no_claim),
    )
    read_answer = files.answer_reader(options)
    counts = Counter()

    def cut(record):
        problem = splitter.split(record, read_answer)
        graph = problem.graph
        has_logprobs = graph.features is not None
        if counts["answers"] and bool(counts["logprobs"]) != has_logprobs:
            raise ValueError(
                "logprobs must be given for all answers or for none of them, but this answer "
                f"has {('' if has_logprobs else 'no ')}logprobs, unlike the answers before it"
            )
        counts.update(
            answers=1,
            claims=graph.n_claims,
            without_claim=len((problem.metadata or {})[LAYOUT]["without_claim"]),
            question=int(bool(graph.problem)),
            context=int(bool(graph.context)),
            logprobs=int(has_logprobs),
        )
        return problem

    problems = (problem for _, problem in files.read_records(options, cut))
    files.write_lines(options.output, map(records.format_problem, problems))
    files.inform(*_describe(counts))


def _describe(counts):
    """Yield messages about the data found in the log, and about missing data."""
    yield (
        f"split {counted(counts['answers'], 'answer')} into "
        f"{counted(counts['claims'], 'sentence')}. Answers with a question: "
        f"{counts['question']}, with passages: {counts['context']}"
    )
    if counts["logprobs"]:
        yield (
            "the columns surprisal_mean, surprisal_sum, surprisal_max and surprisal_digits "
            "were computed from the log-probabilities of the tokens"
        )
    if n := counts["without_claim"]:
        yield (
            f"other sentences without a claim, for example courtesies: {n}. Such a sentence is "
            "not judged, and is kept only next to a kept claim (--no-claim replaces the "
            "patterns that recognise these sentences)"
        )
    for key, what in (("problem", "question"), ("context", "context")):
        if not counts[what]:
            yield (f"no line has a {what}. If it has another key, pass --map KEY={key}")
