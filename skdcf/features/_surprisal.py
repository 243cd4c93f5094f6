"""Features from the log-probabilities that a language model assigns to an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import accumulate
from os.path import commonprefix
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import is_number, printable

#: Names of the columns that `surprisal` returns.
SURPRISAL = ("surprisal_mean", "surprisal_sum", "surprisal_max", "surprisal_digits")


def surprisal(logprobs: Any, answer: str, claims: Iterable[str]) -> NDArray[np.float64]:
    """Return the surprisal of each claim, given the log-probabilities of an answer.

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
    columns : ndarray of shape (n_claims, 4)
        The mean, the sum and the maximum of -log p over the tokens of a claim, and the maximum
        over its tokens that contain a digit. A number is 0 if there are no tokens to compute it
        from. A claim that is not found in the answer is assigned all tokens of the answer.

    Raises
    ------
    ValueError
        If the tokens do not match the answer, if a token has no text or no log-probability, or if
        a log-probability is positive or not finite.

    Examples
    --------
    >>> from skdcf.features import surprisal
    >>> tokens = [{"token": t, "logprob": -1.0} for t in ["It", " is", " 3.", " So", " 4."]]
    >>> surprisal({"content": tokens}, "It is 3. So 4.", ["It is 3.", "So 4."])
    array([[1., 3., 1., 1.],
           [1., 2., 1., 1.]])
    """
    tokens: Any = logprobs
    if isinstance(logprobs, Mapping):
        tokens = logprobs.get("content")
    texts, values = _read_tokens(tokens)
    with_digit = np.array([any(map(str.isdigit, text)) for text in texts], dtype=bool)
    encoded = [_bytes_of(token) for token in tokens]
    written = b"".join(encoded)
    answer = answer.strip()
    begin = written.rfind(_encode(answer))
    if begin < 0:
        text = written.decode("utf-8", "replace").strip()
        same = len(commonprefix([text, answer]))  # noqa: RUF071
        raise ValueError(
            f"the tokens of logprobs must be those of the answer, but after {same} "
            f"characters they continue with {printable(text[same : same + 20])!r}, and the "
            f'answer with {printable(answer[same : same + 20])!r}. Pass the "bytes" of '
            "tokens that are parts of characters"
        )
    ends = np.fromiter(accumulate(map(len, encoded)), int, len(encoded)) - begin
    starts = ends - np.array([len(token.lstrip()) for token in encoded], dtype=int)
    rows = []
    for first, last in _places(answer, claims):
        inside = (starts < last) & (ends > first) & (values <= 100)
        own = values[inside]
        digits = own[with_digit[inside]]
        mean = own.mean() if len(own) else 0.0
        rows.append((mean, own.sum(), own.max(initial=0.0), digits.max(initial=0.0)))
    return np.array(rows, dtype=float).reshape(-1, len(SURPRISAL))


def _read_tokens(tokens):
    """Return the texts of tokens and the surprisal (-log p) of each, or raise ValueError."""
    if not isinstance(tokens, (list, tuple)):
        raise ValueError(
            "logprobs must be a list of tokens, for example "
            f'[{{"token": "So", "logprob": -0.1}}], got {tokens!r:.60}'
        )
    for i, token in enumerate(tokens):
        fits = isinstance(token, Mapping) and isinstance(token.get("token"), str)
        if not fits or not is_number(token.get("logprob")):
            raise ValueError(
                f'logprobs: token {i} must be a dict with the keys "token" and "logprob", got '
                f"{token!r:.60}"
            )
    values = np.array([token["logprob"] for token in tokens], dtype=np.float64)
    for place in np.flatnonzero(~(np.isfinite(values) & (values <= 1e-6))):
        raise ValueError(
            f"logprobs: the log-probability of token {place} must be finite and at most 0, got "
            f"{values[place]}"
        )
    return [token["token"] for token in tokens], np.maximum(-values, 0.0)


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
