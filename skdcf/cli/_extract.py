"""The command ``extract``: from answers as text to problems with claims and graphs."""

import json

from .._checks import printable
from ..datasets import format_jsonl
from ._files import (
    check_folder,
    inform,
    source,
    write_lines,
)

_STEPS = ("frequency", "semantic", "domains", "verify")


def extract(options):
    """Extract, and write the problems; say what it cost and what was odd."""
    check_folder(options.output)
    rows = list(_read(options.answers))
    extractor = _extractor(options)
    done = _extract(extractor, [row for row, _ in rows])
    lines = format_jsonl((e.graph for e in done), groups=[g for _, g in rows])
    write_lines(options.output, lines)
    odd = [e for e in done if e.flags]
    for e in odd:
        inform(f'problem "{printable(e.graph.id)}": {"; ".join(e.flags)}')
    usage, n_claims = extractor.usage_, sum(e.graph.n_claims for e in done)
    inform(
        f"{len(done)} problems with {n_claims} claims, {len(odd)} of them flagged",
        f"{usage.calls} calls ({usage.cached} replies from the cache, {usage.retries} "
        f"requests made again), {usage.prompt_tokens} tokens of prompts and "
        f"{usage.completion_tokens} of replies",
    )


def _extract(extractor, answers):
    from ..llm import CallError

    try:
        return extractor.extract(answers)
    except CallError as error:
        raise ValueError(error) from error


def _extractor(options):
    from ..llm import (
        ChatClient,
        ClaimExtractor,
        DomainFlags,
        Frequency,
        SampleAnswers,
        SemanticJudge,
        Verify,
    )

    steps = dict(
        zip(_STEPS, (Frequency, SemanticJudge, DomainFlags, Verify), strict=True)
    )
    cache = options.cache
    if cache is None and options.output != "-":
        cache = f"{options.output}.cache"
    client = ChatClient(
        options.base_url,
        key_variable=options.key_variable,
        cache=cache,
        in_flight=options.in_flight,
        prices=options.prices,
        confirm_above=options.confirm_above,
    )
    return ClaimExtractor(
        options.model,
        client,
        sample=SampleAnswers(options.samples) if options.samples else None,
        features=[steps[name]() for name in options.features] or None,
        confirm=(lambda estimate: True) if options.yes else None,
        verbose=True,
    )


def _read(path):
    """Each answer with its group; ValueError names the line that holds none."""
    file = source(path)
    with file if hasattr(file, "read") else open(file, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _answer(line, f"{path}, line {number}")


def _answer(line, place):
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("answer"), str):
        raise ValueError(f'{place}: an object with a text called "answer" is expected')
    group = record.pop("group", None)
    return record, group
