"""The command ``extract``: from answers as text to problems with claims and graphs."""

import json

from .._checks import printable
from ..datasets import format_jsonl
from ._files import (
    add_output,
    check_folder,
    inform,
    source,
    write_lines,
)

_STEPS = ("frequency", "semantic", "domains", "verify")


def add_to(commands):
    """Add the command to the program."""
    parser = commands.add_parser(
        "extract",
        help="cut answers into claims and graphs, with a language model",
        description='Each line of the input is an object with "answer", and, if known, '
        '"problem", "id", "group", "alternatives" and "metadata". Keys are read '
        "from the environment.",
    )
    parser.add_argument(
        "answers", metavar="ANSWERS.jsonl", help='answers ("-" is standard input)'
    )
    add_output(parser, "where to write the problems")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument(
        "--base-url", help="address of the endpoint (default: OpenAI's)"
    )
    parser.add_argument(
        "--key-variable",
        default="OPENAI_API_KEY",
        help="environment variable that holds the key (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        help="file that keeps all replies (default: the output's name with .cache)",
    )
    parser.add_argument(
        "--samples", type=int, default=0, metavar="N", help="other answers to draw"
    )
    parser.add_argument(
        "--features",
        nargs="+",
        choices=_STEPS,
        default=[],
        help="columns that the model judges",
    )
    parser.add_argument("--in-flight", type=int, default=8, help="most calls at once")
    parser.add_argument(
        "--prices",
        type=float,
        nargs=2,
        metavar=("IN", "OUT"),
        help="of a million tokens of prompts and of replies",
    )
    parser.add_argument(
        "--confirm-above", type=float, help="cost, or tokens, above which to ask"
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask, whatever it costs"
    )
    parser.set_defaults(run=extract)


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
