"""Features from the log-probabilities that a model returned with its answer.

The columns are the same as those of `Surprisal`, but no second model is required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any

import numpy as np

from .._checks import is_number, printable
from ..graphs import ReasoningGraph
from ._surprisal import NAMES, check_log_probabilities, has_digit, summarise

_SHOWN = 20  # maximum number of characters from a text to show in a message


def add_surprisal(
    graph: ReasoningGraph, logprobs: Sequence[Sequence[Mapping[str, Any]]]
) -> ReasoningGraph:
    """Add the columns of `Surprisal`, given the log-probabilities returned with the answer.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem. The existing columns of the problem precede the new columns.
    logprobs : sequence of sequences of dict
        One list of tokens per claim. Each token is a dict with ``token`` and ``logprob``, as in
        the response of a chat completion API. `logprobs_of_claims` assigns the tokens of an
        answer to its claims.

    Returns
    -------
    problem : ReasoningGraph
        The problem with four new columns: the mean, the sum and the maximum of -log p over the
        tokens of a claim, and the maximum over its tokens that contain a digit. A column is 0 if
        there are no tokens to compute it from.

    Raises
    ------
    ValueError
        If the number of lists differs from the number of claims, if a token has no text or no
        log-probability, or if a log-probability is positive or not finite.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import add_surprisal
    >>> graph = ReasoningGraph(claims=["It is 3"])
    >>> tokens = [{"token": "It", "logprob": -1}, {"token": " is 3", "logprob": -2}]
    >>> add_surprisal(graph, [tokens]).features
    array([[1.5, 3. , 2. , 2. ]])
    """
    if not isinstance(logprobs, list | tuple):
        raise ValueError(
            f"logprobs must contain one list of tokens per claim, got {logprobs!r:.60}"
        )
    if len(logprobs) != graph.n_claims:
        raise ValueError(
            f"logprobs must contain one list of tokens for each of the {graph.n_claims} "
            f"claims, got {len(logprobs)}"
        )
    table = np.zeros((graph.n_claims, len(NAMES)))
    for v, tokens in enumerate(logprobs):
        name = f"logprobs of claim {v}"
        texts, numbers = _read_tokens(tokens, name)
        with_digit = np.array([has_digit(text) for text in texts], dtype=bool)
        table[v] = summarise(check_log_probabilities(numbers, name), with_digit)
    names: tuple[str, ...] | None = NAMES
    if graph.features is not None:
        table = np.hstack([graph.features, table])
        names = graph.feature_names and (*graph.feature_names, *NAMES)
    return graph.replace(features=table, feature_names=names)


def logprobs_of_claims(
    logprobs: Any, answer: str, claims: Iterable[str]
) -> list[list[Mapping[str, Any]]]:
    """Return the tokens of the answer that contain the words of each claim.

    Parameters
    ----------
    logprobs : dict or list
        The ``logprobs`` of a chat completion, or the list under its key ``content``. Each entry
        contains ``token``, ``logprob`` and, if the token is only part of a character, ``bytes``.
    answer : str
        Answer text.
    claims : iterable of str
        For each claim, the words of the answer that state the claim. Differences in whitespace
        are ignored.

    Returns
    -------
    tokens : list of lists of dict
        One list of tokens per claim. A claim that is not found in the answer is assigned all
        tokens of the answer.

    Raises
    ------
    ValueError
        If the tokens do not match the answer, or if the format of the log-probabilities is not
        supported.

    Examples
    --------
    >>> from skdcf.features import logprobs_of_claims
    >>> tokens = [{"token": t, "logprob": -1.0} for t in ["It", " is", " 3.", " So", " 4."]]
    >>> rows = logprobs_of_claims({"content": tokens}, "It is 3. So 4.", ["It is 3.", "So 4."])
    >>> [[token["token"] for token in row] for row in rows]
    [['It', ' is', ' 3.'], [' So', ' 4.']]
    """
    tokens: Any = logprobs
    if isinstance(logprobs, Mapping):
        tokens = logprobs.get("content")
    _read_tokens(tokens, "logprobs")
    encoded = [_bytes_of(token) for token in tokens]
    written = b"".join(encoded)
    answer = answer.strip()
    begin = written.rfind(_encode(answer))
    if begin < 0:
        raise ValueError(_say_other_text(written, answer))
    ends = [end - begin for end in accumulate(map(len, encoded))]
    starts = [
        end - len(token.lstrip()) for end, token in zip(ends, encoded, strict=True)
    ]
    rows = []
    for first, last in _places(answer, claims):
        inside = [
            tokens[i]
            for i, (start, end) in enumerate(zip(starts, ends, strict=True))
            if start < last and end > first
        ]
        rows.append(inside)
    return rows


def _read_tokens(tokens, name):
    """Return the texts and the log-probabilities of tokens, or raise ValueError."""
    if not isinstance(tokens, (list, tuple)):
        raise ValueError(
            f"{name} must be a list of tokens, for example "
            f'[{{"token": "So", "logprob": -0.1}}], got {tokens!r:.60}'
        )
    for i, token in enumerate(tokens):
        fits = isinstance(token, Mapping) and isinstance(token.get("token"), str)
        if not fits or not is_number(token.get("logprob")):
            raise ValueError(
                f'{name}: token {i} must be a dict with the keys "token" and "logprob", got '
                f"{token!r:.60}"
            )
    return [token["token"] for token in tokens], [t["logprob"] for t in tokens]


def _bytes_of(token):
    """Return the UTF-8 bytes of a token, which may be only part of a character."""
    given = token.get("bytes")
    if isinstance(given, list | tuple) and all(
        type(byte) is int and 0 <= byte < 256 for byte in given
    ):
        return bytes(given)
    return _encode(token["token"])


def _encode(text):
    return text.encode("utf-8", "replace")  # Texts may contain unpaired surrogates.


def _places(answer, claims):
    """Return the byte offsets of the beginning and the end of each claim in the answer.

    Each claim is first searched for in the text after the previous claim, because sentences may
    be repeated.
    """
    places = []
    position = 0
    for claim in claims:
        words = re.compile(r"\s+".join(map(re.escape, claim.split())))
        match = words.search(answer, position) or words.search(answer)
        first, last = match.span() if match else (0, len(answer))
        if match:
            position = max(position, last)
        places.append((len(_encode(answer[:first])), len(_encode(answer[:last]))))
    return places


def _say_other_text(written, answer):
    """Return an error message with the position at which the tokens and the answer differ."""
    text = written.decode("utf-8", "replace").strip()
    pairs = zip(text, answer, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    theirs = printable(text[same : same + _SHOWN])
    ours = printable(answer[same : same + _SHOWN])
    hint = (
        '. Pass the "bytes" of tokens that are parts of characters'
        if "\ufffd" in theirs
        else ""
    )
    return (
        f"the tokens of logprobs must be those of the answer, but after {same} characters "
        f"they continue with {theirs!r}, and the answer continues with {ours!r}{hint}"
    )
