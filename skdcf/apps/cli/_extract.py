"""The command ``extract``, which calls a language model."""

from typing import Any

from ..._checks import counted, printable
from ...datasets.jsonl import format_jsonl
from ..text import describe_removed, read_answer
from . import _files as files


def extract(options):
    """Extract claims, write the problems, and print the calls and the flagged problems."""
    from .. import llm

    files.check_folder(options.output)
    rows = list(files.read_records(options, _answer))
    cache = options.cache
    if cache is None and options.output != "-":
        cache = f"{options.output}.cache"
    steps = {
        "frequency": llm.Frequency(),
        "semantic": llm.SemanticJudge(),
        "verify": llm.Verify(),
    }
    extractor = llm.ClaimExtractor(
        options.model,
        client_of(options, cache),
        sample=llm.SampleAnswers(options.samples) if options.samples else None,
        features=[steps[name] for name in options.features],
    )
    batch: Any = extractor.transform(rows)
    files.write_lines(options.output, format_jsonl(batch))
    flags = [(graph.metadata or {}).get("flags") for graph in batch]
    for graph, texts in zip(batch, flags, strict=True):
        if texts:
            files.inform(f'answer "{printable(graph.id)}": {"; ".join(texts)}')
    usage = extractor.usage_
    files.inform(
        f"extracted {counted(batch.n_claims, 'claim')} from "
        f"{counted(len(batch), 'answer')} with {counted(usage['calls'], 'call')} "
        f"({usage['prompt_tokens']} prompt tokens, {usage['completion_tokens']} completion "
        f"tokens) and {usage['cached']} replies from the cache. Flagged answers: "
        f"{sum(map(bool, flags))}. Claims that may differ from the answer (1 in the column "
        f'"flagged"): {int(batch.features[:, -1].sum())}{describe_removed(batch)}'
    )


def client_of(options, cache=None):
    """Return the client of the endpoint that the options describe."""
    from .. import llm

    return llm.ChatClient(
        options.base_url,
        key_variable=options.key_variable or None,
        cache=cache,
        max_tokens=options.max_tokens,
    )


def _answer(record, rename):
    """Return the input of the extractor for a line of the log."""
    answer, logprobs, graph = read_answer(record, rename)
    names = ("problem", "id", "alternatives", "metadata", "context")
    known = {name: getattr(graph, name) for name in names}
    return known | {"answer": answer, "logprobs": logprobs}
