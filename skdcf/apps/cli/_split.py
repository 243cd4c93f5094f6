"""The command ``split``, which converts answers to problems with one claim per sentence."""

from ..._checks import counted
from ...datasets.records import format_problem
from ..text import LAYOUT, AnswerSplitter, describe_removed
from . import _files as files


def split(options):
    """Convert each logged answer to a problem with one claim per sentence."""
    files.check_folder(options.output)
    splitter = AnswerSplitter(
        options.language or "en",
        edges=options.edges,
        no_claim=options.no_claim,
    )
    graphs = list(files.read_records(options, splitter.split))
    has_logprobs = [graph.features is not None for graph in graphs]
    if len({*has_logprobs}) > 1:
        n = has_logprobs.index(not has_logprobs[0]) + 1
        raise ValueError(
            f"{options.problems}: all answers or none must have logprobs, but answer {n} differs "
            "from the answers before it"
        )
    files.write_lines(options.output, map(format_problem, graphs))
    n_claims = sum(graph.n_claims for graph in graphs)
    n_sentences = sum(len(graph.metadata[LAYOUT]) // 2 for graph in graphs)
    files.inform(
        f"split {counted(len(graphs), 'answer')} into "
        f"{counted(n_claims, 'claim')}, and found "
        f"{counted(n_sentences - n_claims, 'sentence')} without a claim. Answers with a question: "
        f"{sum(bool(graph.problem) for graph in graphs)}, with passages: "
        f"{sum(bool(graph.context) for graph in graphs)}, with logprobs: {sum(has_logprobs)}"
        f"{describe_removed(graphs)}"
    )
