"""Metadata about individual claims and about the text between them."""

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

from numpy.typing import NDArray

from .layout import cut_layout, is_layout

#: Metadata key for sentences in the answer that are not claims. Each sentence is stored with the
#: number of preceding claims.
WITHOUT_CLAIM = "sentences_without_claim"
#: Metadata key for the text between the sentences of an answer. The value is a list of the text
#: before each sentence, followed by the text after the last sentence. The entry for a sentence
#: with line breaks other than "\n" is a list, which also contains these line breaks.
LAYOUT = "sentence_layout"
#: Pattern for a heading or an announcement, which belongs to the next claim. Before other claims,
#: it would change what they say, as "Exclusions:" would.
_INTRODUCES = re.compile(r"(?s)[#*]|.*[:\uff1a]\W*\Z")


def cut_metadata(metadata: Any, mask: NDArray[Any]) -> Any:
    """Return a problem's metadata, restricted to the claims for which ``mask`` is True.

    Parameters
    ----------
    metadata : dict or None
        Metadata of the whole problem.
    mask : ndarray of bool of shape (n_claims,)
        Mask that is True for the claims to keep.

    Returns
    -------
    restricted_metadata : dict or None
        The restricted metadata. The original dict is not modified.
    """
    if not metadata:
        return metadata
    changed: dict[str, Any] = {}
    sentences = sentences_without_claim(metadata, len(mask))
    kept_sentences = [
        mask[_first_beside(n_before, text, len(mask)) : n_before + 1].any()
        for n_before, text in sentences
    ]
    if sentences:
        changed[WITHOUT_CLAIM] = [
            [int(mask[:n_before].sum()), text]
            for n_before, text in compress(sentences, kept_sentences)
        ]
    if layout := read_layout(metadata, len(mask)):
        kept = in_order(mask.tolist(), metadata, kept_sentences)
        changed[LAYOUT] = cut_layout(layout, kept)
    return metadata | changed


def _first_beside(n_before, text, n_claims):
    """Return the first claim next to a sentence. A heading is only next to the claim after it."""
    is_heading = n_before < n_claims and _INTRODUCES.match(text)
    return n_before if is_heading else max(n_before - 1, 0)


def without_positions(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the metadata that does not refer to individual claims.

    Parameters
    ----------
    metadata : dict or None
        Metadata of a problem whose claims were changed.

    Returns
    -------
    remaining_metadata : dict or None
        The metadata that does not refer to individual claims.
    """
    of_claims = {WITHOUT_CLAIM, LAYOUT}
    return metadata and {k: v for k, v in metadata.items() if k not in of_claims}


def sentences_without_claim(
    metadata: Mapping[str, Any] | None, n_claims: int
) -> list[tuple[int, str]]:
    """Return the sentences of an answer that contain no claims.

    Parameters
    ----------
    metadata : dict or None
        Metadata of the problem.
    n_claims : int
        Number of claims in the problem.

    Returns
    -------
    sentences : list of (int, str)
        For each sentence, the number of preceding claims and the text of the sentence. The list
        is empty if the stored sentences have an unexpected format.
    """
    listed: Any = (metadata or {}).get(WITHOUT_CLAIM)
    if not isinstance(listed, (list, tuple)):
        return []
    pairs = [tuple(pair) for pair in listed if isinstance(pair, (list, tuple))]
    fits = len(pairs) == len(listed) and all(
        len(pair) == 2
        and type(pair[0]) is int
        and 0 <= pair[0] <= n_claims
        and isinstance(pair[1], str)
        for pair in pairs
    )
    return pairs if fits else []


def read_layout(metadata: Mapping[str, Any] | None, n_claims: int) -> list[Any]:
    """Return the text between the sentences of an answer.

    Parameters
    ----------
    metadata : dict or None
        Metadata of the problem.
    n_claims : int
        Number of claims in the problem.

    Returns
    -------
    layout : list of (str or list of str)
        The stored layout, as described in `LAYOUT`. The list is empty if no layout is stored, if
        the layout does not match the number of sentences, or if it contains other text.
    """
    listed: Any = (metadata or {}).get(LAYOUT)
    n_sentences = n_claims + len(sentences_without_claim(metadata, n_claims))
    return list(listed) if is_layout(listed, n_sentences) else []


def in_order(
    of_claims: Sequence[Any],
    metadata: Mapping[str, Any] | None,
    of_others: Sequence[Any],
) -> list[Any]:
    """Return the values of all sentences of an answer, in the order of the answer.

    Parameters
    ----------
    of_claims : sequence
        A value for each claim.
    metadata : dict or None
        Metadata of the problem.
    of_others : sequence
        A value for each sentence that contains no claim.

    Returns
    -------
    values : list
        The values.
    """
    values = list(of_claims)
    sentences = sentences_without_claim(metadata, len(values))
    places = [n_before for n_before, _ in sentences]
    for n_before, value in reversed([*zip(places, of_others, strict=True)]):
        values.insert(n_before, value)
    return values
