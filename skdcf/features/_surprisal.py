"""Features from the log-probabilities that a language model assigns to each claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import printable
from .._parameters import positive, settings
from ..graphs import ReasoningGraph
from ._models import AnswerColumns, post

#: Tokens and log-probabilities of a text. The first token has no log-probability.
Tokens = tuple[Sequence[str], Sequence[float | None]]
NAMES = ("surprisal_mean", "surprisal_sum", "surprisal_max", "surprisal_digits")
_BROKEN = "\ufffd"  # Servers return the replacement character U+FFFD for an incomplete character.
_WIDEST = 4  # maximum number of characters in tokens with incomplete characters


@settings
class Surprisal(AnswerColumns):
    """Four features from the log-probabilities that a language model assigns to each claim.

    The language model computes -log p of each token in one pass over the passages, the question
    and the claims, in this order. The features are the mean, the sum and the maximum of -log p
    over the tokens of a claim, and the maximum over its tokens that contain a digit.

    Parameters
    ----------
    source : str or callable
        The URL of a server that returns the log-probabilities of a prompt, such as
        "http://localhost:8000/v1/completions" of vLLM. The servers of llama.cpp and Ollama do not
        return the log-probabilities of a prompt. A function ``source(text)`` may be passed
        instead. The function must return the tokens of the text and the log-probability of each
        token given the previous tokens, with None for the first token.
    model : str, optional
        Model name, which is sent to the server. A reply from another model raises an error.
    timeout : float, default=60.0
        Time limit for a request, in seconds.

    Raises
    ------
    ValueError
        If there are fewer log-probabilities than tokens, if a log-probability is positive or
        not finite, or if the tokens do not match the text.
    ConnectionError
        If the server cannot be reached or refuses the request. Earlier replies are cached, so a
        second call requests only the missing replies.

    Notes
    -----
    The features of a claim do not depend on later claims, so they can be used with
    ``online=True``. The features are 0 for a claim without tokens, and the fourth is 0 for a
    claim without digits.

    The features are useful for answers with calculations, but make little difference for other
    answers (:doc:`/guide/features`).

    Examples
    --------
    >>> import re
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import Surprisal
    >>> def source(text):  # a model in its place, which finds digits surprising
    ...     tokens = re.findall(r"\\s*\\S+|\\s+$", text)
    ...     return tokens, [-2.0 if re.search(r"\\d", token) else -0.5 for token in tokens]
    >>> graph = ReasoningGraph(None, claims=["Half is 3"], problem="Half of 6?")
    >>> Surprisal(source).fit_transform([graph]).features
    array([[1., 3., 2., 2.]])
    """

    reads_edges = False
    _parameter_constraints = {
        "source": [str, callable],
        "model": [str, None],
        "timeout": [positive()],
    }

    source: str | Callable[[str], Tokens]
    _: KW_ONLY
    model: str | None = None
    timeout: float = 60.0

    def own_names(self) -> tuple[str, ...]:
        return NAMES

    def _key(self, graph):
        return graph.context, graph.problem, graph.claims

    def _measure(self, graph: ReasoningGraph, name: str) -> NDArray[np.float64]:
        """Compute the features of one answer."""
        text, spans = lay_out(graph)
        if isinstance(self.source, str):
            tokens, log_probabilities = self._request(text, name)
        else:
            tokens, log_probabilities = self.source(text)
        surprisals = _check_numbers(tokens, log_probabilities, name)
        starts = find_tokens(tokens, text, name)
        rows = []
        for first, last in spans:
            inside = [i for i, start in enumerate(starts) if first <= start < last]
            values = surprisals[inside]
            with_digit = [has_digit(tokens[i]) for i in inside]
            rows.append(summarise(values, np.array(with_digit, dtype=bool)))
        return np.array(rows)

    def _request(self, text: str, name: str) -> Tokens:
        """Request the tokens of a text and their log-probabilities from the server."""
        assert isinstance(self.source, str)
        body = {"prompt": text, "echo": True, "logprobs": 1, "max_tokens": 0}
        if self.model is not None:
            body["model"] = self.model
        content = post(self.source, body, self.timeout, f"{name}: the language model")
        try:
            reply: dict[str, Any] = json.loads(content)
            logprobs = reply["choices"][0]["logprobs"]
            tokens = logprobs["tokens"]
            numbers = logprobs["token_logprobs"]
        except (ValueError, LookupError, TypeError):
            raise ValueError(
                f'{name}: the language model at {self.source} must reply with {{"choices": '
                f'[{{"logprobs": {{"tokens": [...], "token_logprobs": [...]}}}}]}}, '
                "as the vLLM endpoint /v1/completions does with echo and logprobs, got "
                f"{printable(content[:80].decode(errors='replace'))}"
            ) from None
        if self.model is not None and reply.get("model", self.model) != self.model:
            raise ValueError(
                f"{name}: the server at {self.source} must use the language model "
                f"{self.model!r}, got a reply from {reply['model']!r}"
            )
        return tokens, numbers


def lay_out(graph: ReasoningGraph) -> tuple[str, list[tuple[int, int]]]:
    """Join the passages, question and claims into one text, and return the span of each claim.

    Parameters
    ----------
    graph : ReasoningGraph
        One answer.

    Returns
    -------
    text : str
        The text. Each claim ends with a line break, so later claims do not change its tokens.
    spans : list of (int, int)
        Start and end position of each claim in the text.
    """
    text = "".join(
        f"{part.strip()}\n" for part in (*(graph.context or ()), graph.problem or "")
    )
    text = text.lstrip("\n")
    spans = []
    for claim in graph.claims or ():
        stripped = claim.strip()
        spans.append((len(text), len(text) + len(stripped)))
        text += f"{stripped}\n"
    return text, spans


def find_tokens(tokens: Sequence[str], text: str, name: str) -> list[int]:
    """Return the position of each token in the text.

    Parameters
    ----------
    tokens : sequence of str
        The tokens, in order.
    text : str
        The text that was tokenized.
    name : str
        Problem name, for error messages.

    Returns
    -------
    starts : list of int
        Position of the first visible character of each token, or -1 for a special token before
        the text.

    Raises
    ------
    ValueError
        If the tokens do not match the text.
    """
    starts = []
    position = gap = 0
    for i, token in enumerate(tokens):
        # The end of an incomplete character is determined by the next token.
        if _BROKEN in token:
            whole = token[: token.index(_BROKEN)]
            after = position + bool(gap)
            place = text.find(whole, after, position + gap + len(whole))
            if whole and place >= 0:
                position = place + len(whole)
                gap = 0
            starts.append(position)
            gap += _WIDEST
            continue
        # Count an incomplete character as at least one character.
        after = position + bool(gap)
        place = text.find(token, after, position + gap + len(token))
        if place < 0 and i == 0:
            starts.append(-1)
            continue
        if place < 0 and position < len(text):
            expected = text[position : position + 20]
            raise ValueError(
                f"{name}: the tokens must match the text, but token {i} is "
                f"{printable(token[:40])!r} where the text contains {printable(expected)!r}"
            )
        if place < 0:
            break  # The remaining tokens follow the end of the text.
        blank = len(token) - len(token.lstrip())
        starts.append(place + (blank if token.strip() else 0))
        position = place + len(token)
        gap = 0
    if position + gap < len(text.rstrip()):
        raise ValueError(
            f"{name}: the tokens must cover all {len(text)} characters of the text, but "
            f"they only cover {position}. The server may have truncated the text, so "
            "check the context length of the model"
        )
    return starts


def _check_numbers(tokens, log_probabilities, name):
    """Return the surprisal of each token, or raise ValueError."""
    if len(log_probabilities) < len(tokens):
        raise ValueError(
            f"{name}: every token of the prompt must have a log-probability, got "
            f"{len(log_probabilities)} log-probabilities for {len(tokens)} tokens. Check "
            "that the server returns the log-probabilities of the prompt"
        )
    given = list(log_probabilities[: len(tokens)])
    if given[:1] == [None]:
        # The first token has no log-probability, because no token precedes it.
        given[0] = 0.0
    missing = [i for i, value in enumerate(given) if value is None]
    if missing:
        raise ValueError(
            f"{name}: every prompt token except the first must have a log-probability, "
            f"but {len(missing)} of {len(tokens)} tokens have none, starting with token "
            f"{missing[0]}"
        )
    return check_log_probabilities(given, name)


def has_digit(token: str) -> bool:
    """Return whether a token contains a digit.

    Parameters
    ----------
    token : str
        Token text.

    Returns
    -------
    has_digit : bool
        True if the token contains a digit.
    """
    return any(character.isdigit() for character in token)


def check_log_probabilities(
    log_probabilities: Sequence[float], name: str
) -> NDArray[np.float64]:
    """Return the surprisal of each token, or raise ValueError.

    Parameters
    ----------
    log_probabilities : sequence of float
        Log-probability of each token.
    name : str
        Beginning of the error message.

    Returns
    -------
    surprisal : ndarray of shape (n_tokens,)
        Surprisal (-log p) of each token.

    Raises
    ------
    ValueError
        If a log-probability is positive or not finite.
    """
    values = np.asarray(log_probabilities, dtype=np.float64)
    wrong = ~(np.isfinite(values) & (values <= 1e-6))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"{name}: the log-probability of token {i} must be finite and at most 0, got "
            f"{values[i]}"
        )
    return np.maximum(-values, 0.0)


def summarise(
    surprisal: NDArray[np.float64], with_digit: NDArray[np.bool_]
) -> list[float]:
    """Compute the four features of one claim from the surprisal of its tokens.

    Parameters
    ----------
    surprisal : ndarray of shape (n_tokens,)
        Surprisal (-log p) of each token in the claim.
    with_digit : ndarray of bool of shape (n_tokens,)
        Whether each token contains a digit.

    Returns
    -------
    features : list of float
        The mean, the sum and the maximum of the surprisal, and its maximum over the tokens with a
        digit. A value is 0 if there are no tokens to compute it from.
    """
    if not len(surprisal):
        return [0.0] * len(NAMES)
    return [
        float(surprisal.mean()),
        float(surprisal.sum()),
        float(surprisal.max()),
        float(surprisal[with_digit].max(initial=0.0)),
    ]
