"""The command ``split``: whole answers become problems, a sentence a claim, without a model."""

from __future__ import annotations

from collections import Counter

from ..datasets import records
from ..datasets.jsonl import read_lines
from ..edges import chain_edges, no_edges
from ..llm import split_sentences
from . import _files as files

_RULES = {"none": no_edges, "chain": chain_edges}


def split(options):
    """Write the answers of a log again, cut into sentences."""
    files.check_folder(options.output)
    read_answer = files.answer_reader(options)
    rule = _RULES[options.edges]
    counts = Counter()

    def cut(record):
        if "claims" in record:
            raise ValueError(
                'there are "claims" beside the answer, which is then not to be cut: take '
                "one of the two out"
            )
        answer, _ = read_answer(record)
        sentences = split_sentences(answer)
        claims = {"claims": sentences, "edges": [*map(list, rule(sentences))]}
        _, problem = read_answer(record | claims)
        graph = problem.graph
        counts.update(
            answers=1,
            claims=graph.n_claims,
            question=bool(graph.problem),
            context=bool(graph.context),
        )
        return problem

    problems = read_lines(files.source(options.problems), cut, "raise", dropped=[])
    files.write_lines(options.output, map(records.format_problem, problems))
    files.inform(
        f"{counts['answers']} answers cut into {counts['claims']} sentences; "
        f"{counts['question']} have a question, {counts['context']} have passages"
    )
    for key, what in (("problem", "question"), ("context", "context")):
        if not counts[what]:
            files.inform(
                f"no line has a {what}: where it stands under another key, name it by "
                f"--map KEY={key}"
            )
