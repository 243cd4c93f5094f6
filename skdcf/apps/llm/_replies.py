"""Parse the replies of models, and read verdicts and their log odds.

The content of a reply is treated as data, not as instructions. A reply may quote the input, which
may also contain JSON. Therefore, the last object in a reply is used, and a reply with two
different objects is rejected. Mathematical text contains many backslashes, which models often
fail to escape. The resulting JSON is either invalid or has a different meaning. For example,
``\\frac`` begins with the escape sequence of a form feed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

import numpy as np

from ..._checks import import_extra
from ..text import pieces_of


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Parameters
    ----------
    text : str
        Reply text.
    finish_reason : str
        Reason why the reply ended. The value is "stop" for a complete reply, "length" for a
        truncated reply, and "content_filter" for a blocked reply.
    top_logprobs : list of dict
        Log-probabilities of the most likely tokens at each position. The list is empty if
        log-probabilities were not requested or cannot be read.
    prompt_tokens, completion_tokens : int
        Token counts reported by the endpoint, or 0 if the endpoint does not count tokens.
    tokens : list of str
        Tokens of the reply, one per entry of ``top_logprobs``. If the list is empty, the most
        likely token at each position is assumed to be the token of the reply.
    left_out : list of str
        Options that the endpoint does not accept for this model, or accepts only in another
        form.
    """

    text: str
    finish_reason: str = "stop"
    top_logprobs: list[dict[str, float]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass
class Usage:
    """Call and token counts of a run.

    Parameters
    ----------
    calls : int
        Number of replies from a model.
    cached : int
        Number of replies from the cache.
    retries : int
        Number of retries.
    prompt_tokens, completion_tokens : int
        Token counts of the calls, as reported by the endpoint.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, reply: Reply, *, cached: bool = False) -> None:
        """Add the tokens of a reply to the counts.

        Parameters
        ----------
        reply : Reply
            A model's reply.
        cached : bool, default=False
            Whether the reply comes from the cache.
        """
        if cached:
            self.cached += 1
        else:
            self.calls += 1
            self.prompt_tokens += reply.prompt_tokens
            self.completion_tokens += reply.completion_tokens

    def __iadd__(self, other):
        vars(self).update({n: v + getattr(self, n) for n, v in vars(other).items()})
        return self


_BACKSLASH = re.compile(r"(?s)\\(u[0-9a-fA-F]{4}|[a-zA-Z]+|.)")
_COMMAND = re.compile(r"\\([a-zA-Z]{2,})")
_ESCAPED_TWICE = re.compile(r"(?<!\\)\\\\u(?!00[01])[0-9a-fA-F]{4}")
_HALF_CHARACTER = re.compile(r"u[0-9a-fA-F]{4}")
_MOST_QUOTED = 3  # maximum number of JSON strings nested in each other
_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\(?:u00[01].|[bfrt])|[\x7f-\x9f])")


def texts_in(value: Any) -> Iterator[str]:
    """Yield all strings in the input of a model."""
    if isinstance(value, str):
        yield value
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence):
        for item in value:
            yield from texts_in(item)


def repair_json(text: str, shown: str) -> str:
    r"""Repair and return a reply that is expected to be JSON.

    If the reply is a JSON string that contains JSON, the content of the string is used. If
    characters were escaped twice (``\\u00e9``), one level of escaping is removed, unless the
    input of the model contains the same sequence. Literal backslashes are doubled by
    `repair_backslashes`.

    Parameters
    ----------
    text : str
        The reply.
    shown : str
        The texts in the input of the model.

    Returns
    -------
    reply : str
        The repaired reply.

    Examples
    --------
    >>> from skdcf.apps.llm._replies import repair_json
    >>> repair_json(r'"{\"text\": \"caf\\u00e9\"}"', "")
    '{"text": "caf\\u00e9"}'
    """
    for _ in range(_MOST_QUOTED):
        stripped = text.strip()
        if stripped.startswith('"') and stripped.endswith('"'):
            with suppress(ValueError):
                text = json.loads(stripped)

    def once(match):
        return match[0] if match[0][1:] in shown else match[0][1:]

    return repair_backslashes(_ESCAPED_TWICE.sub(once, text), shown)


def repair_backslashes(text: str, shown: str) -> str:
    r"""Return a reply with its literal backslashes doubled.

    A backslash is doubled if it does not begin a JSON escape sequence, or if it is followed by b
    or f and another letter. A backslash before n, r or t is doubled if the same LaTeX command
    occurs in the input of the model.

    Parameters
    ----------
    text : str
        The reply.
    shown : str
        The texts in the input of the model.

    Returns
    -------
    reply : str
        The reply, with its literal backslashes doubled.

    Examples
    --------
    >>> from skdcf.apps.llm._replies import repair_backslashes
    >>> print(repair_backslashes(r'{"text": "\frac12 \times x\nSo"}', r"\frac12 \times x"))
    {"text": "\\frac12 \\times x\nSo"}
    """
    commands = set(_COMMAND.findall(shown))

    def repaired(match):
        if match[1] == "/":  # "\/" and "/" have the same meaning.
            return "/"
        return match[0] if _is_escape(match[1], commands) else "\\" + match[0]

    return _BACKSLASH.sub(repaired, text)


def _is_escape(word, commands):
    """Return whether a backslash and the following letters are probably an escape sequence."""
    first = word[0]
    if first == "u":
        return _HALF_CHARACTER.fullmatch(word) is not None
    if first in "bf":
        return len(word) == 1
    if first in "nrt":
        return word not in commands
    return first in "\\\"'"


def clean_json(text: str) -> str:
    """In JSON, replace each escape sequence of a control character with a space."""
    return _CONTROL.sub(r"\1 ", text)


CERTAIN = 14.0  # Log odds beyond 14 differ only by rounding errors.
_AROUND = " .!*_`'\""  # characters that may surround a verdict word
#: Pairs of words that mean "true" and "false".
_PAIRS = (
    ("true", "false"),
    ("yes", "no"),
    ("correct", "incorrect"),
    ("right", "wrong"),
    ("valid", "invalid"),
    ("accurate", "inaccurate"),
)
_SYNONYMS = {true: "true" for true, _ in _PAIRS} | {
    false: "false" for _, false in _PAIRS
}
_SYNONYMS |= dict.fromkeys(("unknown", "uncertain", "unclear", "not sure"), "unsure")
_SYNONYMS |= dict.fromkeys(("support", "supported"), "supports")
_SYNONYMS |= dict.fromkeys(("contradict", "contradicted"), "contradicts")
_SYNONYMS |= {"neutral": "silent", "not_entailed": "not entailed"}

_WORDS = "|".join(word for pair in _PAIRS for word in pair)
IN_OBJECT = re.compile(rf"""(?i)["']verdict["']\s*:\s*\W*({_WORDS})\b""")
_WORD = re.compile(rf"(?i)\b({_WORDS})\b")
#: Pattern for a reply that begins with a verdict. Replies such as "The correct value ..." do not
#: match.
_STARTS = re.compile(rf"(?i)\W*((?:true|false)\b|(?:{_WORDS})\b(?!\s*\w))")
#: Words that indicate a verdict even within a sentence. Other verdict words often have another
#: meaning within a sentence.
_DECIDING = re.compile(r"(?i)\b(true|false|correct|incorrect)\b")
#: Pattern for a sentence that ends with a verdict or with a reason for it.
_STATES = re.compile(
    r"""(?ix)(?:\b(?:is|are|so|thus|hence|therefore|verdict|answer|conclusion)\b|:)
    [\W_]* (?:\w+ly[\W_]+)? (true|false|correct|incorrect) [\W_]*
    (?:$|(?:because|since|as)\b)"""
)
_NOT = re.compile(
    r"(?i)(?:\b(?:not|never|hardly|neither|nor|without|cannot)\b|n['\u2019]t\b)"
    r"(?:[^\w,;:]+\w+){0,6}?[^\w,;:]+(?:true|false|correct|incorrect)\b"
)
_PERHAPS = re.compile(r"(?i)\?|\b(?:if|whether|or|would|were|could|might|may|unless)\b")
_QUOTED = re.compile(
    "\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb|(?<!\\w)'[^']*'(?!\\w)"
)


def plain_word(word: str) -> str:
    """Return the standard form of a verdict, in lower case."""
    lowered = word.strip().lower()
    return _SYNONYMS.get(lowered.strip(_AROUND), lowered)


def read_prose(sentences: Sequence[str], shown: str) -> str | None:
    """Return the verdict ("true" or "false") in prose, or None if the verdict is ambiguous.

    A verdict is unambiguous if it begins the reply and no other verdict is mentioned. A verdict
    is also unambiguous if the last sentence states it with a single word and no earlier sentence
    contradicts it. Quotations, questions, negations and suppositions are not verdicts.

    Parameters
    ----------
    sentences : sequence of str
        The sentences of the reply, without the preceding reasoning of the model.
    shown : str
        The texts in the model's input. The reply may repeat these texts.

    Returns
    -------
    verdict : str or None
        The verdict, which is "true" or "false", or None if the verdict is ambiguous.
    """
    if not sentences or _NOT.search(" ".join(sentences)):
        return None
    if begun := _STARTS.match(sentences[0]):
        words = _DECIDING.findall(" ".join(sentences))
        return _agreed([begun[1], *words])
    unquoted = [_QUOTED.sub(" ", s) for s in sentences if s.strip() not in shown]
    stated = [_DECIDING.findall(s) for s in unquoted if not _PERHAPS.search(s)]
    last = unquoted[-1] if unquoted else ""
    if len(_DECIDING.findall(last)) != 1 or '"' in last or _PERHAPS.search(last):
        return None
    if _STATES.search(last) is None:
        return None
    return _agreed([word for words in stated for word in words])


def _agreed(words):
    """Return the verdict expressed by all words, or None if the words disagree."""
    verdicts = {plain_word(word) for word in words}
    return verdicts.pop() if len(verdicts) == 1 else None


def log_odds(reply: Reply, verdicts: Sequence[str]) -> list[float]:
    """Return the log odds of "true" for each verdict in a reply, in order of appearance.

    The log odds are computed at the position of the verdict, because the preceding reasoning may
    also contain the words "true" and "false". If this position is not found, or if the log odds
    contradict the verdict, +1 is used for "true" and -1 for "false". If the reply has no
    log-probabilities, the log odds are NaN.
    """
    rows = reply.top_logprobs
    if not rows:
        return [math.nan] * len(verdicts)
    tokens = reply.tokens or [max(row, key=row.__getitem__, default="") for row in rows]
    reply_text = "".join(tokens)
    matches = (
        list(IN_OBJECT.finditer(reply_text)) or list(_WORD.finditer(reply_text))[-1:]
    )
    matches = matches[-len(verdicts) :] if len(matches) >= len(verdicts) else []
    ends = np.cumsum([len(token) for token in tokens])
    out = [1.0 if verdict == "true" else -1.0 for verdict in verdicts]
    for i, match in enumerate(matches):
        row = rows[np.searchsorted(ends, match.start(1), side="right")]
        odds = _odds(row, match[1].lower())
        if plain_word(match[1]) == verdicts[i] and odds * out[i] > 0:
            out[i] = odds
    return out


def _odds(row, verdict):
    """Return the log odds of "true" at a position, or 0 if "true" and "false" are both unlikely."""
    pair = next(pair for pair in _PAIRS if verdict in pair)
    sides = dict.fromkeys(pair, 0.0)
    for token, logprob in row.items():
        word = re.sub(r"\W", "", token).lower()
        for side in sides:
            if word and (side.startswith(word) or word.startswith(side)):
                sides[side] += math.exp(min(logprob, 0.0))
    true, false = (math.log(max(p, 1e-300)) for p in sides.values())
    return min(max(true - false, -CERTAIN), CERTAIN)


#: Pattern for the beginning of an object in a reply that is not valid JSON.
_BEGINS = re.compile(r"""\{\s*["'\w\u201c]""")
#: Values that models return if a claim has no premises.
_NO_PREMISES = (None, 0, "", "none", "None", [None])
# maximum number of characters to read from a reply that is not valid JSON
_LONGEST_REPAIRED = 100_000
_LONGEST = 400_000  # maximum number of characters to read from a reply
_MOST_STARTS = 200  # maximum number of positions to try as the beginning of an object
# Some servers leave the model's reasoning in the reply, before the tag </think>.
_THOUGHT = "</think>"
_KINDS = {str: "string", int: "integer", float: "number"}
_FENCED = re.compile(r"(?s)```[a-zA-Z]*\n(.*?)```")


def _object(**columns):
    """Return a reply type with the given fields, some of which have default values."""
    defaults = {"why": ("",), "span": ("",), "claim": (None,)}
    fields = [(name, kind, *defaults.get(name, ())) for name, kind in columns.items()]
    rules = {"__pydantic_config__": {"str_strip_whitespace": True}}
    return make_dataclass("Reply", fields, kw_only=len(fields) > 1, namespace=rules)


def rows_of(name, **columns):
    """Return a reply type whose only field is a list of rows with the given columns."""
    row: Any = _object(**columns)
    return _object(**{name: list[row]})


def verdicts_of(*words: str) -> Any:
    """Return a reply type that assigns one of the given verdicts to each claim."""
    return rows_of("verdicts", claim=int | None, why=str, verdict=Literal[words])


Claims = _object(claims=list[_object(span=str, text=str) | str])  # type: ignore[misc]
Premises = rows_of("premises", claim=int | None, builds_on=list[int])
Verdict = _object(why=str, verdict=Literal["true", "false"])
BareVerdict = _object(verdict=Literal["true", "false"])


def read_object(text, kind):
    """Parse a reply as the given type, or raise a ValueError that describes the fault."""
    name = list(kind.__dataclass_fields__)[-1]
    try:
        # A judge may quote a verdict, so all objects in the reply must agree. For extracted
        # claims, a later object in the reply may correct an earlier one.
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
        fields = {name: verdicts}
    if isinstance(rows := fields[name], list):
        rows = [_row_of(row.items()) if isinstance(row, dict) else row for row in rows]
        fields = {name: rows}
    try:  # Control characters and unpaired surrogates cannot be written to files.
        raw = clean_json(json.dumps(fields, ensure_ascii=False))
        return _adapter(kind).validate_json(raw.encode("utf-8", "replace"))
    except ValueError as error:
        # `error` is a pydantic ValidationError, which lists all errors.
        faults: Any = error
        first, *more_errors = faults.errors(include_url=False, include_input=False)
    more_problems = f", and {len(more_errors)} more" if more_errors else ""
    raise ValueError(
        f'"{".".join(map(str, first["loc"]))}": {first["msg"]}{more_problems}'
    )


def _read_list(text):
    """Return the rows of a reply that consists of a list, possibly in a fenced code block."""
    conclusion = text[:_LONGEST].rpartition(_THOUGHT)[2]
    fenced = _FENCED.findall(conclusion)
    body = (fenced[0] if len(fenced) == 1 else conclusion).strip()
    if not (body.startswith("[") and body.endswith("]")):
        return []
    try:
        rows = _repair(body)
    except (ValueError, RecursionError):
        return []
    return rows if isinstance(rows, list) else []


@cache
def _adapter(kind):
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a reply.

    Parameters
    ----------
    kind : type
        Type of the reply.

    Returns
    -------
    schema : dict
        JSON schema of the reply.
    """
    if kind in _KINDS:
        return {"type": _KINDS[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": schema_of(get_args(kind)[0])}
    # A reply may list rows or plain strings, but the schema only allows rows.
    if kinds := get_args(kind):
        return schema_of(kinds[0])
    properties = {field.name: schema_of(field.type) for field in fields(kind)}
    required = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **required}


def parse_object(text: str, key: str, *, corrected: bool = False) -> dict[str, Any]:
    """Return the last JSON object with the given key in a string.

    If ``corrected`` is False, all objects with this key must be equal. If ``corrected`` is True,
    a later object replaces the earlier objects.
    """
    text = text[:_LONGEST]
    objects = list(_objects(text))
    cut = _end_of_thought(text, objects)
    good = [(end, value) for start, end, value in objects if start >= cut]
    good = [(end, value) for end, value in good if key in value]
    if not good:
        return _repaired(text[cut:].removeprefix(_THOUGHT), key)
    end, last = good[-1]
    # An invalid object after the last valid one is assumed to be the intended answer.
    opened = re.compile(rf"""\{{[^{{}}"']*["']{re.escape(key)}["']\s*:""")
    if broken := opened.search(text, end):
        return _repaired(text[broken.start() :], key)
    if not corrected and any(value != last for _, value in good):
        raise ValueError(
            f'the reply contains several different objects with the key "{key}"'
        )
    return last


def _objects(text) -> Iterator[tuple[int, int, dict]]:
    """Yield the start, end and value of each top-level JSON object in a string."""
    # `int` raises an error for NaN and Infinity. With strict=False, strings may contain line
    # breaks.
    decoder = json.JSONDecoder(
        parse_constant=int, object_pairs_hook=_row_of, strict=False
    )
    end = 0
    for _ in range(_MOST_STARTS):
        if (start := text.find("{", end)) < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
            yield start, end, value
        except (ValueError, RecursionError):
            end = start + 1


def _repaired(text, key):
    """Extract the object from invalid JSON, or raise ValueError if the object is ambiguous.

    The text must contain a single, complete object. A text with different verdicts is rejected,
    because one of the verdicts may be a quotation.
    """
    begin = _BEGINS.search(text)
    candidate, _, rest = text[begin.start() if begin else 0 :].rpartition("}")
    try:
        value = None if key in rest else _repair(candidate + "}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or key not in value:
        raise ValueError(
            f'the reply does not contain a readable JSON object with the key "{key}"'
        )
    words = {plain_word(match[1]) for match in IN_OBJECT.finditer(candidate)}
    if key == "verdict" and len(words) > 1:
        raise ValueError(
            'the reply contains several different objects with the key "verdict"'
        )
    return _row_of(value.items())


def _repair(text):
    """Parse invalid JSON, or raise ValueError if the JSON is incomplete."""
    json_repair = import_extra("json_repair", "apps")
    value, repairs = json_repair.loads(
        text[:_LONGEST_REPAIRED], skip_json_loads=True, strict=True, logging=True
    )
    if any("missed the closing" in repair["text"] for repair in repairs):
        raise ValueError("the reply is incomplete")
    return value


def _row_of(pairs):
    """Return a row with a standardised verdict, without reasons or quotations of the wrong type.

    Raise ValueError if the row contains two different verdicts.
    """
    row: dict[str, Any] = {}
    for name, value in pairs:
        if name == "verdict" and isinstance(value, str | bool):
            value = plain_word(str(value))
            if row.get(name, value) != value:
                raise ValueError(
                    "the reply must contain a single verdict, but it contains two"
                )
        row[name] = value
    for name in ("why", "span"):  # A value that is not a string is ignored.
        if not isinstance(row.get(name, ""), str):
            del row[name]
    if row.get("builds_on", []) in _NO_PREMISES:
        row["builds_on"] = []
    return row


def _end_of_thought(text, found):
    """Return the last position of "</think>" outside all JSON objects, or 0 if there is none."""
    place = text.rfind(_THOUGHT)
    while place >= 0 and any(start < place < end for start, end, _ in found):
        place = text.rfind(_THOUGHT, 0, place)
    return max(place, 0)


def read_verdict(reply: Reply, shown: str = "") -> str:
    """Return the verdict ("true" or "false") in the JSON object or in the prose of a reply."""
    text = reply.text
    try:
        return read_object(text, Verdict).verdict
    except ValueError as error:
        conclusion = text.rpartition(_THOUGHT)[2].strip()
        sentences = list(filter(None, map(str.strip, pieces_of(conclusion))))
        verdict = read_prose(sentences, shown)
        is_draft = "<think>" in conclusion or reply.finish_reason == "length"
        if verdict is None or "{" in text or is_draft:
            beginning = text.strip()[:50]
            raise ValueError(
                f"the reply must state whether the claim is true or false, got {beginning!r}"
            ) from error
        return verdict


def number_rows(rows: Sequence[Any], n: int) -> list[Any]:
    """Return one row for each of the claims 1 to n, in order.

    Rows that are numbered from 0 are shifted by one. Rows without numbers are numbered in
    order.
    """
    if any(row.claim is None for row in rows):
        if len(rows) != n or any(row.claim is not None for row in rows):
            raise ValueError(
                f"the reply must contain one row for each of the {n} claims, got {len(rows)} "
                "rows, some of which have no claim number"
            )
        for v, row in enumerate(rows, 1):
            row.claim = v
    if n and sorted(row.claim for row in rows) == list(range(n)):
        for row in rows:
            row.claim += 1
            row.builds_on = [u + 1 for u in getattr(row, "builds_on", ())]
    out = {row.claim: row for row in rows}
    if wrong := [v for v in out if not 1 <= v <= n]:
        raise ValueError(f'"claim" must be a number from 1 to {n}, got {wrong[0]}')
    if len(out) < len(rows):
        raise ValueError(
            "the reply must contain each claim exactly once, but a claim is repeated"
        )
    if missing := [v for v in range(1, n + 1) if v not in out]:
        raise ValueError(
            f"the reply must contain claim {missing[0]}, but it is missing"
        )
    return [out[v] for v in range(1, n + 1)]


def read_texts(values: Sequence[str]) -> list[str]:
    """Return the texts, or raise ValueError if they are empty or contain only punctuation."""
    if not all(values):
        raise ValueError("the reply must not contain empty texts")
    if values and not any(c.isalnum() for value in values for c in value):
        # A model may copy the "..." from an example in the prompt.
        raise ValueError(
            "the texts in the reply must contain at least one letter or digit"
        )
    return list(values)


#: Zero-width characters and characters that change the text direction.
_UNSEEN = re.compile(
    "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Return a text without invisible characters, which could be used to hide content."""
    return _UNSEEN.sub("", text)
