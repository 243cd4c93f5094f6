"""Sources of labels, and other metadata about individual claims."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import cut_layout, is_layout

#: Metadata key for the sources of labels. The value is a list with one entry per claim, which is
#: None or a dict with the keys ``kind``, ``by``, ``when`` and ``version``.
SOURCES = "label_sources"
#: Kinds of sources: a person, a language model, or a rule that derives labels from other
#: data.
KINDS = ("human", "model", "derived")
#: Metadata keys for the positions, starting at 0, of claims without a verdict and of claims that
#: may misrepresent the answer.
NO_VERDICT = "no_verdict"
FLAGGED = "flagged_claims"
#: Metadata keys for claims that filters always drop, together with all descendants of the claims.
NEVER_KEPT = (NO_VERDICT, FLAGGED)
#: Metadata key for claims with label 0 that a person examined but could not judge as true or
#: false.
UNSURE = "unsure_claims"
#: Metadata key for claims with label 1 that a person marked as not stating a fact.
NO_CLAIM = "makes_no_claim"
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
#: Metadata keys for claims whose label in a file is one of these words.
MARKED_WORDS = {"unsure": UNSURE, "no claim": NO_CLAIM}


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
    number = mask.cumsum() - 1
    for key in (*NEVER_KEPT, *MARKED_WORDS.values()):
        if is_list_of_claims(metadata.get(key), len(mask)):
            changed[key] = [int(number[v]) for v in metadata[key] if mask[v]]
    rows = metadata.get(SOURCES)
    if isinstance(rows, list) and len(rows) == len(mask):
        changed[SOURCES] = list(compress(rows, mask))
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
    of_claims = {*NEVER_KEPT, *MARKED_WORDS.values(), SOURCES, WITHOUT_CLAIM, LAYOUT}
    return metadata and {k: v for k, v in metadata.items() if k not in of_claims}


def never_kept(metadata: Mapping[str, Any] | None) -> list[int]:
    """Return a problem's claims that filters never keep, regardless of their scores.

    Parameters
    ----------
    metadata : dict or None
        Metadata of the problem.

    Returns
    -------
    claims : list of int
        Sorted indices of the claims that are never kept.
    """
    rows = metadata or {}
    return sorted({v for key in NEVER_KEPT for v in rows.get(key) or ()})


def is_list_of_claims(value: Any, n_claims: float) -> bool:
    """Return whether a value is a list of claim indices.

    Parameters
    ----------
    value : object
        Value from the metadata.
    n_claims : int
        Number of claims in the problem, or infinity if the number is unknown.

    Returns
    -------
    is_list : bool
        True if the value is a list of integers from 0 to ``n_claims - 1``.
    """
    return isinstance(value, (list, tuple)) and all(
        type(v) is int and 0 <= v < n_claims for v in value
    )


def marked_claims(
    metadata: Mapping[str, Any] | None, key: str, n_claims: int
) -> list[int]:
    """Return the claims that are listed under a metadata key, such as `UNSURE` or `NO_CLAIM`.

    Parameters
    ----------
    metadata : dict or None
        Metadata of the problem.
    key : str
        The metadata key.
    n_claims : int
        Number of claims in the problem.

    Returns
    -------
    claims : list of int
        Indices of the listed claims. The list is empty if the value of the key is not a list of
        claim indices.
    """
    listed: Any = (metadata or {}).get(key)
    return list(listed) if is_list_of_claims(listed, n_claims) else []


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


def makes_claim(batch: Any) -> NDArray[np.bool_]:
    """Return a mask of the claims that state a fact.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    mask : ndarray of bool of shape (n_claims,)
        False for claims that are listed under `NO_CLAIM`, and True for all other claims.
    """
    out = np.ones(batch.n_claims, dtype=bool)
    for i, row in enumerate(batch.metadata_rows):
        if not row.get(NO_CLAIM):
            continue
        listed = marked_claims(row, NO_CLAIM, int(batch.sizes[i]))
        out[[int(batch.offsets[i]) + v for v in listed]] = False
    return out


def read_sources(metadata: Mapping[str, Any] | None, n_claims: int) -> list[Any]:
    """Return the source of each label in a problem, or None for labels with an unknown source.

    Parameters
    ----------
    metadata : dict or None
        Metadata of the problem.
    n_claims : int
        Number of claims in the problem.

    Returns
    -------
    sources : list of (dict or None)
        Sources of the labels. All sources are None if the stored list does not match the claims,
        for example after the graph has been filtered by other software.
    """
    rows = (metadata or {}).get(SOURCES)
    if not isinstance(rows, list) or len(rows) != n_claims:
        return [None] * n_claims
    return [
        row if isinstance(row, Mapping) and row.get("kind") in KINDS else None
        for row in rows
    ]


def iterate_sources(batch: Any) -> Iterator[Any]:
    """Yield the source of each label in a batch, in the order of the claims.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Yields
    ------
    source : dict or None
        Source of a label, or None if the source is unknown.
    """
    for i, size in enumerate(batch.sizes):
        metadata = None if batch.metadata is None else batch.metadata[i]
        yield from read_sources(metadata, int(size))
