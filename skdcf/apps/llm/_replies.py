"""Parse the replies of models, and read verdicts and their log odds.

The content of a reply is treated as data, not as instructions. A reply may quote the input, which
may also contain JSON. Therefore, the last object in a reply is used, and a reply with two
different verdicts is rejected. Mathematical text contains many backslashes, which models often
fail to escape. The resulting JSON is either invalid or has a different meaning. For example,
``\\frac`` begins with the escape sequence of a form feed.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from ..._checks import import_extra
from ...datasets.thoughts import without_thoughts

_WORDS = "true|false|yes|no|correct|incorrect"  # words for a verdict
#: Exceptions raised when a value has an unexpected type.
ODD = ValueError, LookupError, TypeError, AttributeError, RecursionError


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
        Options of the request that the endpoint does not accept for this model.
    """

    text: str
    finish_reason: str = "stop"
    top_logprobs: list[dict[str, float]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def read_reply(body):
    """Return the reply in a response body, or raise one of the exceptions `ODD`."""
    response = json.loads(body)
    choice = response["choices"][0]
    message = choice["message"]
    # Some servers return all text as reasoning, in parts, or as the arguments of a call.
    calls = message.get("tool_calls")
    text = message.get("content") or message.get("reasoning_content") or ""
    if calls and not message.get("content"):
        text = calls[0]["function"]["arguments"]
    if isinstance(text, list):
        text = "".join(part["text"] for part in text if part["type"] == "text")
    if not isinstance(text, str):
        raise TypeError("the content of the message must be a string")
    rows = (choice.get("logprobs") or {}).get("content") or []
    tops = [
        {
            top["token"]: top["logprob"]
            for top in row["top_logprobs"]
            if top["logprob"]
            >= -100  # A number such as -9999 means that it is unknown.
        }
        for row in rows
    ]
    usage = response.get("usage") or {}
    return Reply(
        text,
        finish_reason=choice.get("finish_reason") or "stop",
        top_logprobs=tops if any(tops) else [],
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        tokens=[row["token"] for row in rows],
    )


def object_of(**properties):
    """Return the JSON schema of an object. Its properties are schemas, or names of types."""
    forms = {
        key: {"type": form} if isinstance(form, str) else form
        for key, form in properties.items()
    }
    return {
        "type": "object",
        "properties": forms,
        "required": [*forms],
        "additionalProperties": False,
    }


def rows_of(name, **columns):
    """Return the JSON schema of an object that contains a list of rows."""
    return object_of(**{name: {"type": "array", "items": object_of(**columns)}})


def bounded(schema, question):
    """Return a schema with bounds, within which a model cannot repeat itself without end.

    A list has one row for each claim of the question, or at most one for every four characters of
    its answer, but up to 20 rows are always possible. A text has at most 100 characters more than
    the answer or the question. Some servers refuse bounds of 2,000 or more.
    """
    n = len(question.get("claims", ()))
    size = len(question.get("answer", str(question)))
    most = n or min(max(20, size // 4), 1000)
    text = json.dumps(schema)
    if size < 1500:
        text = text.replace('"string"', f'"string", "maxLength": {100 + size}')
    text = text.replace('"array"', f'"array", "maxItems": {most}')
    return json.loads(text.replace('"maxItems"', f'"minItems": {n}, "maxItems"', 1))


def verdicts_of(*words):
    """Return the JSON schema of a reply that assigns one of the given words to each claim."""
    return rows_of(
        "verdicts",
        claim="integer",
        why="string",
        verdict={"type": "string", "enum": [*words]},
    )


def visible(text):
    """Return a text without invisible characters, which could be used to hide content.

    These are control and zero-width characters, and characters that change the text direction.
    """
    return re.sub(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
        "\u2066-\u2069\ufeff]",
        "",
        text,
    )


def _number_of(number, type, minimum=-math.inf, maximum=math.inf):
    """Return a number that fits a JSON schema, or raise ValueError, for `conform` to report."""
    if not minimum <= number <= maximum or (type == "integer" and number % 1):
        raise ValueError
    return int(number) if type == "integer" else number


def conform(value, schema, name="the reply"):
    """Return the parts of a value that a JSON schema names, or raise ValueError.

    A row may also be given by its last property alone. Missing texts are empty.
    """
    match schema:
        case {"properties": properties}:
            *_, last = properties
            if isinstance(value, str | bool):
                value = {last: value}
            if isinstance(value, dict):
                value = {key: value.get(key) for key in properties}
                # A claim without a number is numbered later.
                return {
                    key: item
                    if key == "claim" and item is None
                    else conform(item, properties[key], f'"{key}"')
                    for key, item in value.items()
                }
        case {"items": items}:
            if value in (None, 0, "", "none", "None", [None]):  # no premises
                value = []
            if isinstance(value, list):
                return [conform(item, items, name) for item in value]
        case {"enum": words}:
            if (word := plain_word(str(value))) in words:
                return word
        case {"type": "string"}:
            # Unpaired surrogates cannot be written to files.
            text = value if isinstance(value, str) else ""
            return visible(text.encode("utf-8", "replace").decode()).strip()
        case _:
            with suppress(TypeError, ValueError):
                return _number_of(float(value), **schema)
    raise ValueError(f"{name} must be like {json.dumps(schema)}, got {value!r:.60}")


def repair_json(text, shown):
    r"""Repair and return a reply that is expected to be JSON.

    If the reply is a JSON string that contains JSON, the content of the string is used. If
    characters were escaped twice (``\\u00e9``), one level of escaping is removed, unless the
    input of the model contains the same sequence.

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
        The repaired reply.

    Examples
    --------
    >>> from skdcf.apps.llm._replies import repair_json
    >>> repair_json(r'"{\"text\": \"caf\\u00e9\"}"', "")
    '{"text": "caf\\u00e9"}'
    >>> print(repair_json(r'{"text": "\frac12 \times x\nSo"}', r"\frac12 \times x"))
    {"text": "\\frac12 \\times x\nSo"}
    """
    for _ in range(3):
        stripped = text.strip()
        if stripped.startswith('"') and stripped.endswith('"'):
            with suppress(ValueError):
                text = json.loads(stripped)

    def once(match):
        return match[0] if match[0][1:] in shown else match[0][1:]

    text = re.sub(r"(?<!\\)\\\\u(?!00[01])[0-9a-fA-F]{4}", once, text)
    commands = set(re.findall(r"\\([a-zA-Z]{2,})", shown))

    def repaired(match):
        word = match[1]
        if word == "/":  # "\/" and "/" have the same meaning.
            return "/"
        is_escape = (
            word in ("b", "f", "\\", '"', "'")
            or (word[0] in "nrt" and word not in commands)
            or re.fullmatch("u[0-9a-fA-F]{4}", word)
        )
        return match[0] if is_escape else "\\" + match[0]

    return re.sub(r"(?s)\\(u[0-9a-fA-F]{4}|[a-zA-Z]+|.)", repaired, text)


def plain_word(word):
    """Return the standard form of a verdict, in lower case."""
    meanings = dict.fromkeys(("true", "yes", "correct"), "true")
    meanings |= dict.fromkeys(("false", "no", "incorrect"), "false")
    lowered = word.strip().lower()
    return meanings.get(lowered.strip(" .!*_`'\""), lowered)


def read_prose(text):
    """Return the verdict ("true" or "false") in prose, or None if the verdict is ambiguous.

    A verdict is unambiguous if it is the whole reply. A verdict is also unambiguous if the last
    sentence states it, and the reply mentions no other verdict. Quotations, questions, negations
    and suppositions are not verdicts.

    Parameters
    ----------
    text : str
        The reply, without the preceding reasoning of the model.

    Returns
    -------
    verdict : str or None
        The verdict, which is "true" or "false", or None if the verdict is ambiguous.
    """
    if bare := re.fullmatch(rf"(?i)\W*({_WORDS})\W*", text):
        return plain_word(bare[1])
    last = re.split(r"(?<=[.!?])\s+", text.strip())[-1]
    # The last sentence ends with a verdict, or with a reason for it.
    stated = re.fullmatch(
        r"""(?isx)(?:.*(?:\b(?:is|are|so|thus|hence|therefore|verdict|answer|conclusion)\b|:)
        [\W_]* (?:\w+ly[\W_]+)?)? [\W_]* (true|false|correct|incorrect) [\W_]*
        (?:(?:because|since|as)\b.*)?""",
        last,
    )
    # These words are a verdict even within a sentence, or at the beginning of a reply.
    deciding = re.findall(
        r"(?i)\b(?:true|false|correct|incorrect)\b|\A\W*(?:yes|no)\b", text
    )
    negated = re.search(
        r"(?i)(?:\b(?:not|never|hardly|neither|nor|without|cannot)\b|n['\u2019]t\b)"
        r"(?:[^\w,;:]+\w+){0,6}?[^\w,;:]+(?:true|false|correct|incorrect)\b",
        text,
    )
    # suppositions, questions, quotations, objects and unfinished reasoning
    unclear = re.search(
        r"""(?i)[?"\u201c\u00ab{<]|\b(?:if|whether|or|would|were|could|might|may|unless|but)\b""",
        last,
    )
    if stated is None or negated or unclear:
        return None
    return plain_word(stated[1]) if len({*map(plain_word, deciding)}) == 1 else None


def _find_verdicts(text):
    """Return a match for each verdict under the key "verdict"."""
    pattern = rf"""(?i)["']verdict["']\s*:\s*\W*({_WORDS})\b"""
    return list(re.finditer(pattern, text))


def log_odds(reply, verdict):
    """Return the log odds of "true" at the position of the verdict in a reply.

    The reasoning before this position may also contain the words "true" and "false". If the
    position or its log-probabilities are unknown, or if the log odds contradict the verdict, +1 is
    used for "true" and -1 for "false".
    """
    sign = 1.0 if verdict == "true" else -1.0
    rows = reply.top_logprobs
    tokens = reply.tokens or [max(row, key=row.__getitem__, default="") for row in rows]
    text = "".join(tokens)
    found = _find_verdicts(text) or [*re.finditer(rf"(?i)\b({_WORDS})\b", text)]
    if not (rows and found):
        return sign
    place = found[-1]
    ends = np.cumsum([len(token) for token in tokens])
    row = rows[np.searchsorted(ends, place.start(1), side="right")]
    odds = _odds(row, place[1].lower())
    return odds if plain_word(place[1]) == verdict and odds * sign > 0 else sign


def _odds(row, verdict):
    """Return the log odds of "true" at a position, or 0 if "true" and "false" are both unlikely."""
    pairs = (("true", "false"), ("yes", "no"), ("correct", "incorrect"))
    sides = dict.fromkeys(next(pair for pair in pairs if verdict in pair), 0.0)
    for token, logprob in row.items():
        word = re.sub(r"\W", "", token).lower()
        for side in sides:
            if word and (side.startswith(word) or word.startswith(side)):
                sides[side] += math.exp(min(logprob, 0.0))
    true, false = (math.log(max(p, 1e-300)) for p in sides.values())
    # Log odds beyond 14 differ only by rounding errors.
    return min(max(true - false, -14.0), 14.0)


def read_object(text, schema):
    """Return the last JSON object in a reply that has the last key of a schema.

    A model may correct its claims and premises, but a judge may quote a verdict, so all verdicts
    in the reply must agree. If the reply does not conform to the schema, a ValueError describes the
    fault.
    """
    *_, key = schema["properties"]
    text = without_thoughts(text[:400_000])
    verdicts = {plain_word(match[1]) for match in _find_verdicts(text)}
    if key == "verdict" and len(verdicts) > 1:
        raise ValueError("the reply must contain a single verdict, but it contains two")
    decoder = json.JSONDecoder(strict=False)  # Strings may contain line breaks.
    objects = []
    last_end = end = 0
    for _ in range(200):
        start = text.find("{", end)
        if start < 0:
            break
        end = start + 1
        with suppress(ValueError, RecursionError):
            value, end = decoder.raw_decode(text, start)
            value = value.get("reply", value)
            if key in value:
                objects.append(value)
                last_end = end
    # An invalid object after the last valid one may be the intended answer.
    rest = text[last_end:]
    if not objects or re.search(rf"[\"']{key}[\"']", rest):
        objects.append(_repaired(rest, key))
    if key.startswith("verdict") and any(value != objects[-1] for value in objects):
        raise ValueError(
            f'the reply contains several different objects with the key "{key}"'
        )
    return conform(objects[-1], schema)


def _repaired(text, key):
    """Return the object in invalid JSON, or the rows of a list, or raise ValueError."""
    json_repair = import_extra("json_repair", "apps")
    fenced = re.findall(r"(?s)```[a-zA-Z]*\n(.*?)```", text)
    body = (fenced[0] if len(fenced) == 1 else text).strip()
    if not (body.startswith("[") and body.endswith("]")):
        begin = re.search(r"""\{\s*["'\w\u201c]""", body)
        body = body[begin.start() if begin else 0 :].rpartition("}")[0] + "}"
    value = None
    repairs = []
    with suppress(ValueError, RecursionError):
        value, repairs = json_repair.loads(
            body[:100_000], skip_json_loads=True, strict=True, logging=True
        )
    if isinstance(value, list):
        value = {key: value}
    is_cut = any("missed the closing" in repair["text"] for repair in repairs)
    if is_cut or not isinstance(value, dict) or key not in value:
        raise ValueError(
            f'the reply does not contain a readable JSON object with the key "{key}"'
        )
    return value


def read_verdict(reply, schema):
    """Return the verdict ("true" or "false") in the JSON object or in the prose of a reply."""
    try:
        return read_object(reply.text, schema)["verdict"]
    except ValueError as error:
        verdict = read_prose(without_thoughts(reply.text))
        if verdict is None or "{" in reply.text or reply.finish_reason == "length":
            raise ValueError(
                "the reply must state whether the claim is true or false, got "
                f"{reply.text.strip()[:50]!r}"
            ) from error
        return verdict


def number_rows(rows, n):
    """Return one row for each of the claims 1 to n, in order.

    Rows that are numbered from 0 are shifted by one. Rows without numbers are numbered in
    order.
    """
    claims = [row["claim"] for row in rows]
    if all(claim is None for claim in claims):
        claims = [*range(1, len(rows) + 1)]
    first = 0 if 0 in claims else 1
    if len(rows) != n or {*claims} != {*range(first, first + n)}:
        raise ValueError(
            f"the reply must contain each claim from 1 to {n} exactly once, got {claims}"
        )
    for claim, row in zip(claims, rows, strict=True):
        row["claim"] = claim + 1 - first
        row["builds_on"] = [u + 1 - first for u in row.get("builds_on", ())]
    return sorted(rows, key=itemgetter("claim"))
