"""The command ``extract``, which calls a language model."""

from __future__ import annotations

import json
import tomllib
from contextlib import contextmanager
from pathlib import Path

from ..._checks import printable
from ...datasets import records
from ...datasets.jsonl import format_jsonl
from ._files import (
    answer_reader,
    check_folder,
    inform,
    read_records,
    write_lines,
)


def extract(options):
    """Extract claims, write the problems, and print the calls and the flagged problems."""
    check_folder(options.output)
    read_config(options)
    rows = list(read_records(options, _answer_reader(options)))
    extractor = _extractor(options)
    with _errors_of_calls():
        done = extractor.extract(rows)
    lines = format_jsonl(e.graph for e in done)
    write_lines(options.output, lines)
    odd = [e for e in done if e.flags]
    for e in odd:
        inform(f'problem "{printable(e.graph.id)}": {"; ".join(e.flags)}')
    usage = extractor.usage_
    n_claims = sum(e.graph.n_claims for e in done)
    n_flagged = sum(len(e.flagged) for e in done)
    inform(
        f"{len(odd)} of {len(done)} problems were flagged",
        f"{usage.calls} calls were made. {usage.cached} replies came from the cache, and "
        f"{usage.retries} requests were repeated. The calls used {usage.prompt_tokens} "
        f"prompt tokens and {usage.completion_tokens} completion tokens",
        f"{n_flagged} of {n_claims} claims ({n_flagged / max(n_claims, 1):.0%}) may differ "
        'from the answer, and have the value 1 in the column "flagged"',
    )


@contextmanager
def _errors_of_calls():
    """Convert model endpoint errors to ValueError."""
    from ..llm import CallError

    try:
        yield
    except CallError as error:
        raise ValueError(str(error)) from error


def make_client(options, cache):
    """Return a chat client configured with the options of a command."""
    from ..llm import ChatClient

    return ChatClient(
        options.base_url,
        key_variable=options.key_variable or None,
        headers=_headers(options),
        extra=_extra(options),
        cache=cache,
        in_flight=options.in_flight,
        timeout=options.timeout,
        max_retries=options.max_retries,
        max_tokens=options.max_tokens,
        max_calls=options.max_calls,
    )


def _headers(options):
    """Return a mapping from header names to the environment variables that contain their values."""
    if isinstance(options.header, dict):
        return options.header
    headers = {}
    for pair in options.header:
        name, _, variable = pair.partition("=")
        if not name.strip() or not variable.strip():
            raise ValueError(
                "--header must have the form HEADER=ENVIRONMENT_VARIABLE, for example "
                f"api-key=AZURE_KEY, got {pair!r}"
            )
        headers[name.strip()] = variable.strip()
    return headers or None


def _extra(options):
    """Return the fields to add to each request, given as JSON or as a TOML table."""
    extra = options.extra
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except ValueError:
            extra = None
    if isinstance(extra, dict) or options.extra is None:
        return extra
    raise ValueError(
        f"--extra must be a JSON object, for example '{{\"top_k\": 1}}', got "
        f"{options.extra!r}"
    )


def _extractor(options):
    from .. import llm

    judge = {"model": options.judge} if options.judge else {}
    steps = {
        "frequency": lambda: llm.Frequency(**judge),
        "semantic": lambda: llm.SemanticJudge(**judge),
        "verify": lambda: llm.Verify(
            per=options.per, log_odds=not options.no_log_odds, **judge
        ),
    }
    cache = options.cache
    if cache is None and options.output != "-":
        cache = f"{options.output}.cache"
    return llm.ClaimExtractor(
        options.model,
        make_client(options, cache),
        sample=llm.SampleAnswers(options.samples) if options.samples else None,
        features=[steps[name]() for name in options.features] or None,
        on_failure=options.on_failure,
        verbose=True,
    )


def read_config(options):
    """Read options from a TOML file whose keys are the names of command-line options."""
    text = Path(options.config).read_text("utf-8") if options.config else ""
    for name, value in tomllib.loads(text).items():
        key = name.replace("-", "_")
        if not hasattr(options, key) or key in ("config", "run", "command"):
            raise ValueError(
                f'{options.config}: the option "--{name}" does not exist. Correct or remove '
                "this option"
            )
        setattr(options, key, value)


def _answer_reader(options):
    """Return a function that converts the JSON object in a line to an input for the extractor."""
    read_answer = answer_reader(options)

    def read(record):
        answer, logprobs, problem = read_answer(record)
        metadata = dict(problem.metadata or {})
        # Remove the original "answer", because the extractor writes the same key.
        if "answer" in metadata.get(records.OWN, ()):
            del metadata["answer"]
            metadata[records.OWN] = [k for k in metadata[records.OWN] if k != "answer"]
        return {
            "problem": problem.graph.problem,
            "answer": answer,
            "id": problem.graph.id,
            "alternatives": problem.graph.alternatives,
            "metadata": metadata,
            "context": problem.graph.context,
            "logprobs": logprobs,
        }

    return read
