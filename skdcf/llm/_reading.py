"""Replies of models: which JSON they hold, whether it is what was asked for, how sure.

What a reply says is data. It may quote the texts that it was asked about, and these may
hold JSON of their own: so the last object counts, and two that differ are refused.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, make_dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Literal, get_args, get_origin

import numpy as np

from ._calls import EndpointError, PassingError, Reply, UnreadableError

#: Errors that a value of an unexpected kind raises, wherever it is looked into.
ODD = ValueError, LookupError, TypeError, AttributeError, RecursionError
_FENCE = re.compile(r"```[a-zA-Z]*\n?")
_TRAILING_COMMA = re.compile(r",\s*(?=[}\]])")
_LONGEST = 400_000  # characters of a reply that are read
_MOST_STARTS = 200  # places where an object may begin
_THOUGHT = "</think>"  # ends what some servers leave in the reply
_SHORT = 300  # characters of a server's message that are shown
_PASSING = (408, 409, 425, 429)  # and all from 500 on
_HOPELESS = (401, 402, 403, 404)
_FINISHED = ("stop", "length", "content_filter")
_CERTAIN = 14.0  # log odds beyond which probabilities are rounding
_KINDS = {str: "string", int: "integer", float: "number"}
_VERDICT = re.compile(r'"verdict"\s*:\s*"\W*(true|false)\b', re.IGNORECASE)
_WORD = re.compile(r"\b(true|false)\b", re.IGNORECASE)


def rows_of(name: str, **columns: Any) -> Any:
    """The type of a reply whose one field lists rows with these columns."""
    row: Any = make_dataclass("Row", columns.items())
    return make_dataclass("Reply", [(name, list[row])])


def verdicts_of(*words: str) -> Any:
    """The type of a reply that gives each claim one of several words."""
    return rows_of("verdicts", claim=int, why=str, verdict=Literal[words])


_WORDS = Literal["true", "false"]
Claims = rows_of("claims", span=str, text=str)
Premises = rows_of("premises", claim=int, builds_on=list[int])
Text = make_dataclass("Text", [("text", str)])
Verdict = make_dataclass("Verdict", [("why", str), ("verdict", _WORDS)])


def read_object(text: str, kind: Any, read: Callable[[Any], Any] | None = None) -> Any:
    """The reply as the type that was asked for, or what ``read`` makes of it.

    A ValueError says what is wrong with it; it keeps the object that was found as ``data``.
    """
    data = parse_object(text, list(kind.__dataclass_fields__)[-1])
    try:
        reply = _check(data, kind)
        return reply if read is None else read(reply)
    except ValueError as error:
        vars(error)["data"] = data
        raise


def _check(data, kind):
    try:
        return _adapter(kind).validate_json(json.dumps(_completed(data)))
    except ValueError as error:  # pydantic lists what is wrong
        first, *more = error.errors(include_url=False, include_input=False)
    others = f", and {len(more)} more" if more else ""
    raise ValueError(f'"{".".join(map(str, first["loc"]))}": {first["msg"]}{others}')


def _completed(value):
    """Clean texts, words in lower case, and a "why" or "span" that may be missing."""
    if isinstance(value, str):  # half characters and zeros fit into no file
        value = value.encode("utf-8", "replace").decode("utf-8")
        return value.replace("\0", "").strip()
    if isinstance(value, list):
        return [_completed(v) for v in value]
    if not isinstance(value, dict):
        return value
    out = {k: _completed(v) for k, v in value.items()}
    if isinstance(rows := out.get("claims"), list):
        rows = [row if isinstance(row, dict) else {"text": row} for row in rows]
        out["claims"] = [{"span": "", **row} for row in rows]
    if isinstance(word := out.get("verdict"), str | bool):
        out["verdict"] = str(word).lower()
    return {"why": "", **out} if "verdict" in out else out


@cache
def _adapter(kind):
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@cache
def reply_schema(kind: Any, n: int | None = None) -> str:
    """JSON schema of a reply, as JSON; ``n`` is the number of rows that are wanted."""
    return json.dumps(_schema(kind, n))


def _schema(kind, n=None):
    if kind in _KINDS:
        return {"type": _KINDS[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        size = {} if n is None else {"minItems": n, "maxItems": n}
        return {"type": "array", "items": _schema(*get_args(kind)), **size}
    parts = {field.name: _schema(field.type, n) for field in fields(kind)}
    required = {"required": list(parts), "additionalProperties": False}
    return {"type": "object", "properties": parts, **required}


def parse_object(text: str, key: str) -> dict[str, Any]:
    """The last object with that key in a text; ValueError if it is not the only answer."""
    text = text[:_LONGEST]
    for candidate in (text, _TRAILING_COMMA.sub("", _FENCE.sub("", text))):
        found = list(_objects(candidate))
        cut = _end_of_thought(candidate, found)
        good = [f for f in found if f[0] >= cut and key in f[2]]
        opened = re.compile(r'\{[^{}"]*"' + re.escape(key) + r'"\s*:')
        # A broken object after the last whole one was to be the answer: mend it, or refuse.
        if good and not opened.search(candidate, good[-1][1]):
            break
    else:
        raise ValueError(f'it holds no JSON object with "{key}" that can be read')
    if any(value != good[-1][2] for _, _, value in good):
        raise ValueError(f'it holds two objects with "{key}" that differ')
    return good[-1][2]


def _objects(text) -> Iterator[tuple[int, int, dict]]:
    """Start, end and value of the objects in a text, not those inside of others."""
    decoder = json.JSONDecoder(parse_constant=int)  # it refuses NaN and Infinity
    place = text.find("{")
    for _ in range(_MOST_STARTS):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text, place)
            yield place, end, value
        except (ValueError, RecursionError):
            end = place + 1
        place = text.find("{", end)


def _end_of_thought(text, found):
    """Where the model's thinking ends: not at a "</think>" that an object quotes."""
    place = text.rfind(_THOUGHT)
    while place >= 0 and any(start < place < end for start, end, _ in found):
        place = text.rfind(_THOUGHT, 0, place)
    return max(place, 0)


def read_verdict(text: str) -> str:
    """ "true" or "false": the verdict of an object, or one word that is not contradicted."""
    try:
        return read_object(text, Verdict).verdict
    except ValueError as error:
        said = text.rpartition(_THOUGHT)[2]
        words, first = [w.lower() for w in _WORD.findall(said)], re.search(r"\w+", said)
        said = first is not None and _WORD.fullmatch(first[0])
        if "{" in text or not said or len(set(words)) != 1:
            shown = text.strip()[:50]
            raise ValueError(f"it is neither true nor false: {shown!r}") from error
        return words[0]


def number_rows(rows: Sequence[Any], n: int) -> list[Any]:
    """The rows about claims 1 to n, in order; rows that count from 0 are moved by one."""
    if n and sorted(row.claim for row in rows) == list(range(n)):
        for row in rows:
            row.claim += 1
            if hasattr(row, "builds_on"):
                row.builds_on = [u + 1 for u in row.builds_on]
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


def log_odds(reply: Reply, verdicts: Sequence[str]) -> list[float | None]:
    """Log odds of true for each verdict of a reply, in the order of its text.

    They are read where the verdict stands: what is said before it, in thinking or as a
    reason, speaks of true and false as well. Where that place is not found, or the odds
    say the opposite of the verdict, there are none.
    """
    rows = reply.top_logprobs
    tokens = reply.tokens or [max(row, key=row.__getitem__, default="") for row in rows]
    said = "".join(tokens)
    found = list(_VERDICT.finditer(said)) or list(_WORD.finditer(said))[-1:]
    found = found[-len(verdicts) :] if len(found) >= len(verdicts) else []
    ends, out = np.cumsum([len(token) for token in tokens]), []
    for match, verdict in zip(found, verdicts, strict=False):
        odds = _odds(rows[np.searchsorted(ends, match.start(1), side="right")])
        agrees = odds is not None and (odds > 0) == (verdict == "true")
        out.append(odds if agrees and match[1].lower() == verdict else None)
    return out or [None] * len(verdicts)


def _odds(row):
    sides = {"true": 0.0, "false": 0.0}
    for token, logprob in row.items():
        word = re.sub(r"\W", "", token).lower()
        for side in sides:
            if word and (side.startswith(word) or word.startswith(side)):
                sides[side] += math.exp(min(logprob, 0.0))
    if not any(sides.values()):
        return None
    true, false = (math.log(max(p, 1e-300)) for p in sides.values())
    return min(max(true - false, -_CERTAIN), _CERTAIN)


def read_reply(body: bytes) -> Reply:
    """The reply in the body of a response; a fault that may pass where it has none.

    Its text is all that it needs: what is odd about the rest of a reply that was paid for
    is no reason to ask again.
    """
    try:
        data = json.loads(body)
        if isinstance(data, dict) and data.get("error") and not data.get("choices"):
            error = data["error"]
            code = error.get("code") if isinstance(error, dict) else None
            raise fault_of(code if isinstance(code, int) else 400, str(error), {})
        choice = data["choices"][0]
        text = _joined(choice["message"].get("content"))
    except ODD as error:
        problem = f"{type(error).__name__}: {error}"[:_SHORT]
        raise PassingError(f"the response is no chat completion ({problem})") from None
    reason = choice.get("finish_reason")
    reason = reason if reason in _FINISHED else "stop"
    tokens, tops = _logprobs(choice.get("logprobs"))
    usage = data.get("usage")
    sent, said = (_count(usage, f"{name}_tokens") for name in ("prompt", "completion"))
    return Reply(text, reason, tops, sent, said, tokens)


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


def fault_of(status: int, message: str, headers: dict) -> Exception:
    """The error that a response stands for."""
    said, lowered = f"status {status}: {message[:_SHORT]}", message.lower()
    wait = read_retry_after(headers)
    if 300 <= status < 400:
        why = "redirects are not followed, since texts and keys would go elsewhere"
        return EndpointError(f"status {status}: {why}. Change base_url instead")
    empty = "quota" in lowered and wait is None and "per minute" not in lowered
    spent = status == 429 and (empty or "insufficient_quota" in lowered)
    if status in _HOPELESS or spent:
        return EndpointError(said)
    if status in _PASSING or status >= 500:
        return PassingError(said, wait)
    return UnreadableError(said)


def read_retry_after(headers: dict) -> float | None:
    """Seconds that a server asks to wait for, None where it does not say.

    Names of headers are in lower case, as httpx gives them.
    """
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            wait = float(headers.get(name, "")) / per_second
            if 0 <= wait < float("inf"):
                return wait
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(date.timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
