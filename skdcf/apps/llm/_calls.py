"""Define model calls with their prompts and schemas, and parse the replies.

The content of a reply is treated as data, not as instructions. A reply may quote the input, which
may also contain JSON. Therefore, the last object in a reply is used, and a reply with two
different objects is rejected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from ..._checks import import_extra
from ..text import pieces_of
from ._decoding import clean_json
from ._reply import Reply
from ._verdicts import IN_OBJECT, plain_word, read_prose
from ._verdicts import log_odds as log_odds

_FILES = files("skdcf.apps.llm").joinpath("prompts").iterdir()
_TEXTS = {path.name.removesuffix(".txt"): path.read_text("utf-8") for path in _FILES}
_FOUND = (full.rpartition("-") for full in _TEXTS)
#: Newest version of each prompt, which is used by default.
VERSIONS = {name: n for n, name in sorted((int(v), name) for name, _, v in _FOUND)}


class Prompt(NamedTuple):
    """Instructions to a model for one task.

    Parameters
    ----------
    name : str
        Name and version of a built-in prompt, or name and digest of a prompt defined by the
        caller.
    text : str
        Text of the instructions.
    """

    name: str
    text: str


def load_prompt(name: str, own: str | Path | None = None) -> Prompt:
    """Return the newest version of a built-in prompt, or a prompt defined by the caller.

    The prompt is part of the call and of the cache key, so replies to different prompts are
    cached separately. The input (questions, answers, claims) is never inserted into a prompt. The
    input follows the prompt as a JSON object.

    Parameters
    ----------
    name : str
        Name of the prompt, which is "answer", "decompose", "frequency", "graph", "labels",
        "semantic", "verdict", "verify" or "verify_all".
    own : str or Path, optional
        Text of a prompt to use instead of the built-in prompt, or the path of a file that
        contains the text.

    Returns
    -------
    prompt : Prompt
        Name and text of the prompt.

    Examples
    --------
    >>> from skdcf.apps.llm._calls import load_prompt
    >>> load_prompt("decompose").name
    'decompose-3'
    """
    full = f"{name}-{VERSIONS[name]}"
    if own is None:
        return Prompt(full, _TEXTS[full].strip())
    text = (own.read_text("utf-8") if isinstance(own, Path) else own).strip()
    if not text:
        raise ValueError(f"the prompt for {name!r} must not be empty")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Prompt(f"{name}-own-{digest}", text)


@dataclass(frozen=True)
class Call:
    """One request to a model.

    Attributes
    ----------
    model : str
        Model name.
    messages : tuple of (role, text)
        Messages to the model.
    schema : str or None
        JSON schema of the reply, serialised as JSON.
    temperature : float
        Sampling temperature.
    seed : int
        Seed sent to the endpoint.
    max_tokens : int or None
        Maximum length of the reply in tokens. If None, the endpoint's limit applies.
    structured : bool
        Whether the endpoint is asked to enforce the schema.
    logprobs : bool
        Whether to request log-probabilities of the tokens.
    prompt : str
        Name and version of the prompt.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    schema: str | None = None
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = None
    logprobs: bool = False
    prompt: str = ""
    structured: bool = True

    def key(self, endpoint: Any) -> str:
        """Return the cache key, a digest of everything that affects the reply.

        Parameters
        ----------
        endpoint : JSON value
            Address of the endpoint and the extra parameters that are sent with each call.

        Returns
        -------
        key : str
            The digest as a hexadecimal string.
        """
        content = json.dumps([endpoint, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


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
