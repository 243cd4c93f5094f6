"""Calls of a model and their replies: what is asked, what comes back, what can go wrong.

What a reply says is data. It may quote the texts that it was asked about, and these may
hold JSON of their own: so the last object counts, and two that differ are refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, make_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from ._decoding import clean_json, join_stream, read_literal
from ._reply import Reply
from ._verdicts import log_odds as log_odds
from ._verdicts import plain_word, read_prose

_FILES = files("skdcf.apps.llm").joinpath("prompts").iterdir()
_TEXTS = {path.name.removesuffix(".txt"): path.read_text("utf-8") for path in _FILES}
_FOUND = (full.rpartition("-") for full in _TEXTS)
#: Version of each prompt that is used by default: the newest.
VERSIONS = {name: n for n, name in sorted((int(v), name) for name, _, v in _FOUND)}


class CallError(RuntimeError):
    """Error: a call of a model brought no usable reply, however often it was tried."""


class EndpointError(CallError):
    """Error: no call can succeed, as with a wrong key or an endpoint that is down."""


class UnreadableError(CallError):
    """Error: the endpoint answers, but not with what was asked for.

    ``text`` is the last reply.
    """

    def __init__(self, message: str, text: str = ""):
        super().__init__(message)
        self.text = text


class PassingError(Exception):
    """A fault that may be gone next time: what it is, and seconds a server asks for."""


class RefusedError(PassingError):
    """A rate limit, which holds for all calls: what it is, and seconds or None."""


class Prompt(NamedTuple):
    """A prompt, which tells a model what to do.

    Parameters
    ----------
    name : str
        Name and version, or a digest where the caller wrote it.
    text : str
    """

    name: str
    text: str


def load_prompt(name: str, own: str | Path | None = None) -> Prompt:
    """Read a prompt of the package, in its newest version, or one of the caller.

    A prompt is part of the call, and so of the name under which a reply is kept: another
    prompt, another reply. What is asked about (questions, answers, claims) is never
    written into a prompt. It follows as one JSON object.

    Parameters
    ----------
    name : str
        "answer", "decompose", "entailment", "frequency", "graph",
        "labels", "merge", "semantic", "verdict", "verify" or "verify_all".
    own : str or Path, optional
        The caller's own prompt for the same: a text, or the path of a file.

    Returns
    -------
    Prompt

    Examples
    --------
    >>> from skdcf.apps.llm._calls import load_prompt
    >>> load_prompt("merge").name
    'merge-3'
    """
    full = f"{name}-{VERSIONS[name]}"
    if own is None:
        return Prompt(full, _TEXTS[full].strip())
    text = (own.read_text("utf-8") if isinstance(own, Path) else own).strip()
    if not text:
        raise ValueError(f"the prompt for {name!r} is empty")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Prompt(f"{name}-own-{digest}", text)


@dataclass(frozen=True)
class Call:
    """One request to a model.

    Attributes
    ----------
    model : str
    messages : tuple of (role, text)
    schema : str or None
        JSON schema that the reply is to have, as JSON.
    temperature : float
    seed : int or None
        Passed on to the model.
    max_tokens : int or None
        Of the reply; None leaves it to the endpoint.
    logprobs : bool
        Whether the reply has to say how probable its words are.
    prompt : str
        Name and version of the prompt.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    schema: str | None = None
    temperature: float = 0.0
    seed: int | None = 0
    max_tokens: int | None = None
    logprobs: bool = False
    prompt: str = ""

    def key(self, endpoint: Any) -> str:
        """Name of the reply in a cache: a digest of all that the reply depends on.

        Parameters
        ----------
        endpoint : JSON value
            Address of the model, and what is sent there beside the call.

        Returns
        -------
        str
        """
        content = json.dumps([endpoint, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


#: What a value of an unexpected kind raises, wherever it is looked into.
ODD = ValueError, LookupError, TypeError, AttributeError, RecursionError
_FENCE = re.compile(r"```[a-zA-Z]*\n?")
_TRAILING_COMMA = re.compile(r",\s*(?=[}\]])")
_LONGEST = 400_000  # characters of a reply that are read
_MOST_STARTS = 200  # places of a reply that are tried as the beginning of an object
_THOUGHT = "</think>"  # ends the thoughts that some servers leave in the reply
SHORT = 300  # characters of a server's message that are shown
# Statuses of a limit or of too much load, which hold for all calls.
_REFUSED = (
    429,
    529,
)
_PASSING = (408, 409, 425)  # statuses of faults that may pass; so may all from 500 on
_HOPELESS = (401, 402, 403, 404)
_FINISHED = ("stop", "length", "content_filter")
_KINDS = {str: "string", int: "integer", float: "number"}
#: Sentences and lines of a text, each with the white space that follows.
SENTENCE = re.compile(r"(?s).+?(?:\n\s*|(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\Z)")
_FENCED = re.compile(r"(?s)```[a-zA-Z]*\n(.*?)```")


def _object(**columns):
    """The type of an object with these columns; some of them may be missing."""
    defaults = {"why": ("",), "span": ("",), "claim": (None,)}
    fields = [(name, kind, *defaults.get(name, ())) for name, kind in columns.items()]
    rules = {"__pydantic_config__": {"str_strip_whitespace": True}}
    return make_dataclass("Reply", fields, kw_only=len(fields) > 1, namespace=rules)


def rows_of(name, **columns):
    """The type of a reply whose one field lists rows with these columns."""
    row: Any = _object(**columns)
    return _object(**{name: list[row]})


def verdicts_of(*words: str) -> Any:
    """The type of a reply that gives each claim one of several words."""
    return rows_of("verdicts", claim=int | None, why=str, verdict=Literal[words])


Claims = _object(claims=list[_object(span=str, text=str) | str])  # type: ignore[misc]
Premises = rows_of("premises", claim=int | None, builds_on=list[int])
Text = _object(text=str)
Verdict = _object(why=str, verdict=Literal["true", "false"])


def read_object(text, kind):
    """The reply as the type that was asked for; ValueError says what is wrong with it."""
    name = list(kind.__dataclass_fields__)[-1]
    try:
        # A judge may quote a verdict. What was cut up may be corrected, and the last counts.
        fields = parse_object(text, name, corrected=kind in (Claims, Premises))
    except ValueError:
        rows = (
            _read_list(text) if get_origin(kind.__annotations__[name]) is list else []
        )
        if not rows:
            raise
        fields = {name: rows}
    if name == "verdicts" and isinstance(rows := fields[name], list):
        verdicts = [{"verdict": r} if isinstance(r, str | bool) else r for r in rows]
        fields = {name: list(map(_plain_row, verdicts))}
    try:  # since no file can hold control characters and half ones
        raw = clean_json(json.dumps(fields, ensure_ascii=False))
        return _adapter(kind).validate_json(raw.encode("utf-8", "replace"))
    except ValueError as error:
        faults: Any = error  # an error of pydantic, which lists what is wrong
        first, *more_errors = faults.errors(include_url=False, include_input=False)
    more_problems = f", and {len(more_errors)} more" if more_errors else ""
    raise ValueError(
        f'"{".".join(map(str, first["loc"]))}": {first["msg"]}{more_problems}'
    )


def _read_list(text):
    """The rows of a reply that is nothing but a list, alone or in one fence."""
    conclusion = text[:_LONGEST].rpartition(_THOUGHT)[2]
    fenced = _FENCED.findall(conclusion)
    body = fenced[0] if len(fenced) == 1 else conclusion
    with suppress(ValueError, RecursionError):
        rows = json.loads(_TRAILING_COMMA.sub("", body), object_hook=_plain_row)
        return rows if isinstance(rows, list) else []
    return []


@cache
def _adapter(kind):
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def schema_of(kind: Any, n: int | None = None) -> dict[str, Any]:
    """JSON schema of a reply; ``n`` is the number of rows that are wanted."""
    if kind in _KINDS:
        return {"type": _KINDS[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        size = {} if n is None else {"minItems": n, "maxItems": n}
        return {"type": "array", "items": schema_of(get_args(kind)[0]), **size}
    if rows := get_args(kind):  # a row, or a text alone, which is not asked for
        return schema_of(rows[0])
    properties = {field.name: schema_of(field.type, n) for field in fields(kind)}
    required = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **required}


def parse_object(text: str, key: str, *, corrected: bool = False) -> dict[str, Any]:
    """The last object with that key in a text; ValueError if it is not the only answer.

    With ``corrected``, an object that differs from one before it takes its place.
    """
    text = text[:_LONGEST]
    mended = _TRAILING_COMMA.sub("", _FENCE.sub("", text))
    opened = re.compile(rf"""\{{[^{{}}"']*["']{re.escape(key)}["']\s*:""")
    ways = (text, _read_json), (mended, _read_json), (text, read_literal)
    for candidate, read in ways:
        objects = list(_objects(candidate, read))
        cut = _end_of_thought(candidate, objects)
        good = [f for f in objects if f[0] >= cut and key in f[2]]
        # What is broken after the last object was to be the answer: mend it, or refuse.
        if good and not opened.search(candidate, good[-1][1]):
            break
    else:
        raise ValueError(f'it holds no JSON object with "{key}" that can be read')
    if not corrected and any(value != good[-1][2] for _, _, value in good):
        raise ValueError(f'it holds two objects with "{key}" that differ')
    return good[-1][2]


def _objects(text, read) -> Iterator[tuple[int, int, dict]]:
    """Start, end and value of the objects in a text, not those inside of others."""
    end = 0
    for _ in range(_MOST_STARTS):
        if (opening := _OPENING[read].search(text, end)) is None:
            return
        start = opening.start()
        try:
            value, end = read(text, start)
            yield start, end, _plain_row(value)
        except (ValueError, RecursionError):
            end = start + 1


def _read_json(text, start):
    # int takes neither NaN nor Infinity; line breaks within texts are read.
    decoder = json.JSONDecoder(parse_constant=int, object_hook=_plain_row, strict=False)
    return decoder.raw_decode(text, start)


def _plain_row(row):
    """An object with its verdict as the word that was asked for, and its reasons as texts."""
    if not isinstance(row, dict):
        return row
    if isinstance(word := row.get("verdict"), str | bool):
        row["verdict"] = plain_word(str(word))
    for name in ("why", "span"):  # which are left out where they are no text
        if not isinstance(row.get(name, ""), str):
            del row[name]
    return row


#: Where what is read in either way may begin.
_OPENING = {_read_json: re.compile(r"\{"), read_literal: re.compile(r"\{\s*[\"']")}


def _end_of_thought(text, found):
    """Where the model's thinking ends: not at a "</think>" that an object quotes."""
    place = text.rfind(_THOUGHT)
    while place >= 0 and any(start < place < end for start, end, _ in found):
        place = text.rfind(_THOUGHT, 0, place)
    return max(place, 0)


def read_verdict(reply: Reply, shown: str = "") -> str:
    """ "true" or "false": the verdict of an object, or what the sentences of a reply say."""
    text = reply.text
    try:
        return read_object(text, Verdict).verdict
    except ValueError as error:
        conclusion = text.rpartition(_THOUGHT)[2].strip()
        sentences = [sentence.strip() for sentence in SENTENCE.findall(conclusion)]
        verdict = read_prose(list(filter(None, sentences)), shown)
        is_draft = "<think>" in conclusion or reply.finish_reason == "length"
        if verdict is None or "{" in text or is_draft:
            beginning = text.strip()[:50]
            raise ValueError(f"it is neither true nor false: {beginning!r}") from error
        return verdict


def number_rows(rows: Sequence[Any], n: int) -> list[Any]:
    """The rows about claims 1 to n, in order.

    Rows that count from 0 are moved by one, and rows without numbers are counted.
    """
    if any(row.claim is None for row in rows):
        if len(rows) != n or any(row.claim is not None for row in rows):
            raise ValueError(
                f"rows do not say which claim they are about, and there are not {n} of them"
            )
        for v, row in enumerate(rows, 1):
            row.claim = v
    if n and sorted(row.claim for row in rows) == list(range(n)):
        for row in rows:
            row.claim += 1
            row.builds_on = [u + 1 for u in getattr(row, "builds_on", ())]
    out = {row.claim: row for row in rows}
    if wrong := [v for v in out if not 1 <= v <= n]:
        raise ValueError(f'"claim" is {wrong[0]}, but they are numbered from 1 to {n}')
    if len(out) < len(rows):
        raise ValueError("it speaks of a claim twice")
    if missing := [v for v in range(1, n + 1) if v not in out]:
        raise ValueError(f"it says nothing of claim {missing[0]}")
    return [out[v] for v in range(1, n + 1)]


def read_texts(values: Sequence[str]) -> list[str]:
    """Texts that are not blank, of which one at least says something."""
    if not all(values):
        raise ValueError("one of its texts is empty")
    if values and not any(c.isalnum() for value in values for c in value):
        raise ValueError("its texts say nothing")  # such as the "..." of an example
    return list(values)


def read_reply(body: bytes) -> Reply:
    """The reply in the body of a response; a fault that may pass where it has none.

    Its text is all that it needs: what is odd about the rest of a reply that was paid for
    is no reason to ask again.
    """
    try:
        is_stream = body.lstrip().startswith((b"data:", b"event:", b"id:", b":"))
        reply = join_stream(body) if is_stream else json.loads(body)
        if isinstance(reply, dict) and reply.get("error") and not reply.get("choices"):
            error = reply["error"]
            code = error.get("code") if isinstance(error, dict) else None
            raise fault_of(code if isinstance(code, int) else 400, str(error))
        choice = reply["choices"][0]
        text = _joined(choice["message"].get("content"))
    except ODD as error:
        problem = f"{type(error).__name__}: {error}"[:SHORT]
        raise PassingError(f"the response is no chat completion ({problem})") from None
    reason = choice.get("finish_reason")
    reason = reason if reason in _FINISHED else "stop"
    tokens, tops = _logprobs(choice.get("logprobs"))
    usage = reply.get("usage")
    return Reply(
        text,
        finish_reason=reason,
        top_logprobs=tops,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        tokens=tokens,
    )


def _joined(content):
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        content = "".join(p["text"] for p in content if p.get("type", "text") == "text")
    if not isinstance(content, str | None):
        raise TypeError("content is no text")
    return content or ""


def _count(usage, name):
    value = usage.get(name) if isinstance(usage, dict) else 0
    return value if isinstance(value, int) and value >= 0 else 0


def _logprobs(logprobs):
    """Words and likeliest words of a reply; none where they cannot be read."""
    try:
        rows = logprobs["content"]
        tops = [row["top_logprobs"] for row in rows]
        tops = [{str(t["token"]): float(t["logprob"]) for t in top} for top in tops]
        tokens = [str(row["token"]) for row in rows if "token" in row]
    except ODD:
        return [], []
    return (tokens if len(tokens) == len(tops) else []), tops


def fault_of(status: int, message: str, wait: float | None = None) -> Exception:
    """The error that a response stands for; ``wait`` is how long its server asks for."""
    fault = f"status {status}: {message[:SHORT]}"
    lowered = message.lower()
    if 300 <= status < 400:
        why = "redirects are not followed, since texts and keys would go elsewhere"
        return EndpointError(f"status {status}: {why}. Change base_url instead")
    empty = "quota" in lowered and wait is None and "per minute" not in lowered
    spent = status == 429 and (empty or "insufficient_quota" in lowered)
    if status in _HOPELESS or spent:
        return EndpointError(fault)
    if status in _REFUSED:
        return RefusedError(fault, wait)
    if status in _PASSING or status >= 500:
        return PassingError(fault, wait)
    return UnreadableError(fault)
