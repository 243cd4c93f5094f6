"""Calls of a model and their replies: what is asked, what comes back, what can go wrong.

What a reply says is data. It may quote the texts that it was asked about, and these may
hold JSON of their own: so the last object counts, and two that differ are refused.
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
from ._decoding import clean_json
from ._reply import Reply
from ._sentences import pieces_of
from ._verdicts import IN_OBJECT, plain_word, read_prose
from ._verdicts import log_odds as log_odds

_FILES = files("skdcf.apps.llm").joinpath("prompts").iterdir()
_TEXTS = {path.name.removesuffix(".txt"): path.read_text("utf-8") for path in _FILES}
_FOUND = (full.rpartition("-") for full in _TEXTS)
#: Version of each prompt that is used by default: the newest.
VERSIONS = {name: n for n, name in sorted((int(v), name) for name, _, v in _FOUND)}


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
        "labels", "merge", "reword", "semantic", "verdict", "verify" or "verify_all".
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
    structured : bool
        Whether the endpoint is asked to keep to the schema.
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
    structured: bool = True

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


#: What may begin an object that is not quite JSON.
_BEGINS = re.compile(r"""\{\s*["'\w\u201c]""")
#: What models write for a claim that builds on nothing.
_NO_PREMISES = (None, 0, "", "none", "None", [None])
_LONGEST_REPAIRED = (
    100_000  # characters of a reply that are read if it is not quite JSON
)
_LONGEST_WHY = 600  # characters of a reason
_LONGEST = 400_000  # characters of a reply that are read
_MOST_STARTS = 200  # places of a reply that are tried as the beginning of an object
_THOUGHT = "</think>"  # ends the thoughts that some servers leave in the reply
_KINDS = {str: "string", int: "integer", float: "number"}
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
Rewordings = rows_of("rewordings", claim=int | None, vaguer=list[str])
Text = _object(text=str)
Verdict = _object(why=str, verdict=Literal["true", "false"])
BareVerdict = _object(verdict=Literal["true", "false"])


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
        fields = {name: verdicts}
    if isinstance(rows := fields[name], list):
        rows = [_row_of(row.items()) if isinstance(row, dict) else row for row in rows]
        fields = {name: rows}
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


def schema_of(
    kind: Any,
    *,
    n_rows: int | None = None,
    most_rows: int | None = None,
    longest: int = _LONGEST_WHY,
) -> dict[str, Any]:
    """JSON schema of a reply.

    Parameters
    ----------
    kind : type
        Of the reply.
    n_rows : int, optional
        How many rows are wanted.
    most_rows : int, optional
        How many there may be, if their number is not known.
    longest : int
        Most characters of a text.

    Returns
    -------
    dict
    """
    most_rows = n_rows or most_rows
    bounds: dict[str, Any] = {"most_rows": most_rows, "longest": longest}
    if kind is str:
        return {"type": "string", "maxLength": longest}
    if kind in _KINDS:
        return {"type": _KINDS[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        most = {"maxItems": most_rows} if most_rows else {}
        least = {"minItems": n_rows} if n_rows else {}
        items = schema_of(get_args(kind)[0], **bounds)
        return {"type": "array", "items": items, **most, **least}
    if kinds := get_args(kind):  # a row, or a text alone, which is not asked for
        return schema_of(kinds[0], **bounds)
    properties = {
        field.name: schema_of(field.type, n_rows=n_rows, **bounds)
        for field in fields(kind)
    }
    required = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **required}


def parse_object(text: str, key: str, *, corrected: bool = False) -> dict[str, Any]:
    """The last object with that key in a text; ValueError if it is not the only answer.

    With ``corrected``, an object that differs from one before it takes its place.
    """
    text = text[:_LONGEST]
    objects = list(_objects(text, key))
    cut = _end_of_thought(text, objects)
    good = [(end, value) for start, end, value in objects if start >= cut]
    good = [(end, value) for end, value in good if key in value]
    if not good:
        return _repaired(text[cut:].removeprefix(_THOUGHT), key)
    end, last = good[-1]
    # What is broken after the last object was to be the answer.
    opened = re.compile(rf"""\{{[^{{}}"']*["']{re.escape(key)}["']\s*:""")
    if broken := opened.search(text, end):
        return _repaired(text[broken.start() :], key)
    if not corrected and any(value != last for _, value in good):
        raise ValueError(f'it holds several objects with "{key}" that differ')
    return last


def _objects(text, key) -> Iterator[tuple[int, int, dict]]:
    """Start, end and value of the objects of JSON in a text, not those inside of others."""
    # int takes neither NaN nor Infinity; line breaks within texts are read.
    decoder = json.JSONDecoder(
        parse_constant=int, object_pairs_hook=_row_of, strict=False
    )
    end = 0
    for _ in range(_MOST_STARTS):
        if (start := text.find("{", end)) < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
            yield start, end, _unwrapped(value, key)
        except (ValueError, RecursionError):
            end = start + 1


def _unwrapped(value, key):
    """An object, without one around it that has the name of the schema or of a call."""
    inner = [v for v in value.values() if isinstance(v, dict) and key in v]
    is_wrapped = len(value) == 1 or isinstance(value.get("name"), str)
    return inner[0] if len(inner) == 1 and is_wrapped else value


def _repaired(text, key):
    """The object in a text that is not quite JSON; ValueError if it may be another one.

    It has to be whole, and the only one. Of verdicts that differ in a text, one may be
    quoted, so none is taken.
    """
    begin = _BEGINS.search(text)
    candidate, _, rest = text[begin.start() if begin else 0 :].rpartition("}")
    try:
        value = None if key in rest else _repair(candidate + "}")
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        value = _unwrapped(value, key)
    if not isinstance(value, dict) or key not in value:
        raise ValueError(f'it holds no JSON object with "{key}" that can be read')
    words = {plain_word(match[1]) for match in IN_OBJECT.finditer(candidate)}
    if key == "verdict" and len(words) > 1:
        raise ValueError('it holds several objects with "verdict" that differ')
    return _row_of(value.items())


def _repair(text):
    """What a text says that is not quite JSON; ValueError if its end is missing."""
    json_repair = import_extra("json_repair", "apps")
    value, repairs = json_repair.loads(
        text[:_LONGEST_REPAIRED], skip_json_loads=True, strict=True, logging=True
    )
    if any("missed the closing" in repair["text"] for repair in repairs):
        raise ValueError("it is cut off")
    return value


def _row_of(pairs):
    """An object with its verdict as the word that was asked for, and its reasons as texts.

    ValueError if it gives two verdicts.
    """
    row: dict[str, Any] = {}
    for name, value in pairs:
        if name == "verdict" and isinstance(value, str | bool):
            value = plain_word(str(value))
            if row.get(name, value) != value:
                raise ValueError("it gives two verdicts")
        row[name] = value
    for name in ("why", "span"):  # which are left out if they are no text
        if not isinstance(row.get(name, ""), str):
            del row[name]
    if row.get("builds_on", []) in _NO_PREMISES:
        row["builds_on"] = []
    return row


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
        sentences = list(filter(None, map(str.strip, pieces_of(conclusion))))
        verdict = read_prose(sentences, shown)
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
