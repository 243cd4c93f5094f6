"""How surprising a language model finds the words of each claim."""

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

#: Tokens of a text, and the log-probability of each; None for a first token.
Tokens = tuple[Sequence[str], Sequence[float | None]]
_NAMES = ("surprisal_mean", "surprisal_sum", "surprisal_max", "surprisal_digits")
_BROKEN = "\ufffd"  # a server shows this for a part of a character
_WIDEST = 4  # characters that tokens with parts of characters may stand for


@settings
class Surprisal(AnswerColumns):
    """Four columns from the log-probabilities that a language model gives to each claim.

    One pass over the passages, the question and the claims in their order gives -log p of each
    token. The columns are the mean, the sum and the maximum over the tokens of a claim, and the
    maximum over those of its tokens that contain a digit.

    Parameters
    ----------
    source : str or callable
        The address of a server that returns log-probabilities of a prompt, such as
        "http://localhost:8000/v1/completions" of vLLM. The servers of llama.cpp and Ollama do
        not. Or ``source(text)``, which returns the tokens of the text and the log-probability
        of each given those before it, None for the first.
    model : str, optional
        Name of the model, passed on to the server. A reply by another model is refused.
    timeout : float, default=60.0
        Seconds that a request may take.

    Raises
    ------
    ValueError
        If there are fewer log-probabilities than tokens, one is not a finite number of at most
        0, or the tokens are those of another text.
    ConnectionError
        If the server cannot be reached or refuses. What it answered before is kept, so calling
        again asks for the rest only.

    Notes
    -----
    Nothing behind a claim is read, so ``online=True`` takes these columns. The columns of a
    claim without tokens, or without digits, are 0.

    Expect gains on calculations, and none on passages, news and science (:doc:`/guide/features`).

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
        return _NAMES

    def _key(self, graph):
        return graph.context, graph.problem, graph.claims

    def _measure(self, graph: ReasoningGraph, name: str) -> NDArray[np.float64]:
        """The columns of one answer."""
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
            with_digit = [any(c.isdigit() for c in tokens[i]) for i in inside]
            rows.append(summarise(values, np.array(with_digit, dtype=bool)))
        return np.array(rows)

    def _request(self, text: str, name: str) -> Tokens:
        """Ask a server for the tokens of a text and their log-probabilities."""
        assert isinstance(self.source, str)
        body = {"prompt": text, "echo": True, "logprobs": 1, "max_tokens": 0}
        if self.model is not None:
            body["model"] = self.model
        whose = f"{name}: the language model"
        content = post(self.source, body, self.timeout, whose)
        try:
            reply: dict[str, Any] = json.loads(content)
            found = reply["choices"][0]["logprobs"]
            tokens, numbers = found["tokens"], found["token_logprobs"]
        except (ValueError, LookupError, TypeError):
            raise ValueError(
                f"{whose} at {self.source} replied "
                f"{printable(content[:80].decode(errors='replace'))!r}, but "
                '{"choices": [{"logprobs": {"tokens": [...], "token_logprobs": [...]}}]} is '
                "needed, as vLLM's /v1/completions replies to echo and logprobs"
            ) from None
        if self.model is not None and reply.get("model", self.model) != self.model:
            raise ValueError(
                f"{whose} at {self.source} is {reply['model']!r}, but model is {self.model!r}"
            )
        return tokens, numbers


def lay_out(graph: ReasoningGraph) -> tuple[str, list[tuple[int, int]]]:
    """Write passages, question and claims below each other, and say where each claim stands.

    Parameters
    ----------
    graph : ReasoningGraph
        One answer.

    Returns
    -------
    text : str
        Each claim ends with a line end, so that the claims behind it change no token.
    spans : list of (int, int)
        Where each claim begins and ends.
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
    """Say where the first letter of each token stands in the text.

    Parameters
    ----------
    tokens : sequence of str
        In their order.
    text : str
        What they are the tokens of.
    name : str
        The problem, for messages.

    Returns
    -------
    list of int
        -1 for a mark of the model's own in front of the text.

    Raises
    ------
    ValueError
        If they are the tokens of another text.
    """
    starts = []
    position = gap = 0
    for i, token in enumerate(tokens):
        if _BROKEN in token:  # its place is known from the next one
            starts.append(position)
            gap = _WIDEST * (1 + gap // _WIDEST)
            continue
        place = text.find(token, position, position + gap + len(token))
        if place < 0 and i == 0:
            starts.append(-1)
            continue
        if place < 0 and position < len(text):
            expected = text[position : position + 20]
            raise ValueError(
                f"{name}: the log-probabilities are those of another text. Token {i} is "
                f"{printable(token[:40])!r}, and the text goes on with {printable(expected)!r}"
            )
        if place < 0:
            break  # what a model wrote behind the text
        blank = len(token) - len(token.lstrip())
        starts.append(place + (blank if token.strip() else 0))
        position, gap = place + len(token), 0
    if position + gap < len(text.rstrip()):
        raise ValueError(
            f"{name}: the tokens end after {position} of {len(text)} characters. A server may "
            "have cut the text: does the model take so many tokens?"
        )
    return starts


def _check_numbers(tokens, log_probabilities, name):
    """The surprisal of each token, or ValueError."""
    if len(log_probabilities) < len(tokens):
        raise ValueError(
            f"{name}: {len(log_probabilities)} log-probabilities for {len(tokens)} tokens of the "
            "prompt. Every token needs one: does the server return those of the prompt?"
        )
    given = list(log_probabilities[: len(tokens)])
    if given[:1] == [None]:
        given[0] = 0.0  # nothing precedes the first token
    missing = [i for i, value in enumerate(given) if value is None]
    if missing:
        raise ValueError(
            f"{name}: {len(missing)} of {len(tokens)} tokens, token {missing[0]} first, have no "
            "log-probability. Every token of the prompt but the first needs one"
        )
    values = np.asarray(given, dtype=np.float64)
    wrong = ~(np.isfinite(values) & (values <= 1e-6))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"{name}: the log-probability of token {i} is {values[i]}, but must be a finite "
            "number of at most 0"
        )
    return np.maximum(-values, 0.0)


def summarise(
    surprisal: NDArray[np.float64], with_digit: NDArray[np.bool_]
) -> list[float]:
    """The four columns of one claim.

    Parameters
    ----------
    surprisal : ndarray of shape (n_tokens,)
        -log p of the tokens of the claim.
    with_digit : ndarray of bool, shape (n_tokens,)
        Which tokens contain a digit.

    Returns
    -------
    list of float
        Mean, sum, maximum, and maximum over tokens with a digit; 0 if there are none.
    """
    if not len(surprisal):
        return [0.0] * len(_NAMES)
    return [
        float(surprisal.mean()),
        float(surprisal.sum()),
        float(surprisal.max()),
        float(surprisal[with_digit].max(initial=0.0)),
    ]
