"""Who said that a claim is true, kept in the metadata of a problem, one entry a claim."""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The key of the metadata. Its value is a list with an entry for each claim: None, or a
#: dictionary with ``kind``, ``by``, ``when`` and ``version``.
SOURCES = "label_sources"
#: A person, a language model, or a rule that made labels from something else.
KINDS = ("human", "model", "derived")
#: Keys of the metadata that list claims, counted from 0: those whose verdict is missing, and
#: those that may not say what the answer says.
NO_VERDICT = "no_verdict"
FLAGGED = "flagged_claims"
#: Filters keep no claim that is listed under one of these, and nothing that builds on it.
NEVER_KEPT = (NO_VERDICT, FLAGGED)
#: The claims that somebody looked at and could not call true or false. Their label is 0.
UNSURE = "unsure_claims"
#: The claims of which somebody said that they claim nothing. Their label is 1.
NO_CLAIM = "makes_no_claim"
#: Sentences of the answer that are not claims, each with the number of claims before it.
WITHOUT_CLAIM = "sentences_without_claim"
#: Words that stand for a label in files, by the key that marks the claim in the metadata.
MARKED_WORDS = {"unsure": UNSURE, "no claim": NO_CLAIM}


def cut_metadata(metadata: Any, mask: NDArray[Any]) -> Any:
    """The metadata for the claims where ``mask`` is true.

    Parameters
    ----------
    metadata : dict or None
        Of the whole problem.
    mask : ndarray of bool, shape (n_claims,)
        True for the claims that stay.

    Returns
    -------
    dict or None
        A copy where something changed.
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
    if sentences := sentences_without_claim(metadata, len(mask)):
        changed[WITHOUT_CLAIM] = [
            [int(mask[:before].sum()), text]
            for before, text in sentences
            if mask[max(before - 1, 0) : before + 1].any()
        ]
    return metadata | changed


def never_kept(metadata: Mapping[str, Any] | None) -> list[int]:
    """The claims of a problem that no filter keeps, whatever their scores are.

    Parameters
    ----------
    metadata : dict or None
        Of the problem.

    Returns
    -------
    list of int
        Their positions.
    """
    rows = metadata or {}
    return sorted({v for key in NEVER_KEPT for v in rows.get(key) or ()})


def is_list_of_claims(value: Any, n_claims: int) -> bool:
    """Whether something is a list of positions of claims.

    Parameters
    ----------
    value : object
        What stands in the metadata.
    n_claims : int
        Number of claims of the problem.

    Returns
    -------
    bool
        True for a list of whole numbers from 0 to ``n_claims - 1``.
    """
    return isinstance(value, (list, tuple)) and all(
        type(v) is int and 0 <= v < n_claims for v in value
    )


def marked_claims(
    metadata: Mapping[str, Any] | None, key: str, n_claims: int
) -> list[int]:
    """List the claims that are marked under a key, such as `UNSURE` or `NO_CLAIM`.

    Parameters
    ----------
    metadata : dict or None
        Of the problem.
    key : str
        The key of the mark.
    n_claims : int
        Number of claims of the problem.

    Returns
    -------
    list of int
        Their positions; none where the metadata say something else under that key.
    """
    listed: Any = (metadata or {}).get(key)
    return list(listed) if is_list_of_claims(listed, n_claims) else []


def sentences_without_claim(
    metadata: Mapping[str, Any] | None, n_claims: int
) -> list[tuple[int, str]]:
    """List the sentences of an answer that are not claims.

    Parameters
    ----------
    metadata : dict or None
        Of the problem.
    n_claims : int
        Number of claims of the problem.

    Returns
    -------
    list of (int, str)
        The number of claims before each sentence, and its text. Empty if the metadata say
        something else under that key.
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


def makes_claim(batch: Any) -> NDArray[np.bool_]:
    """Tell which claims of a batch claim something, as far as somebody said so.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of bool, shape (n_claims,)
        False for the claims that are marked under `NO_CLAIM`.
    """
    out = np.ones(batch.n_claims, dtype=bool)
    for i, row in enumerate(() if batch.metadata is None else batch.metadata):
        if not (row and row.get(NO_CLAIM)):
            continue
        listed = marked_claims(row, NO_CLAIM, int(batch.sizes[i]))
        out[[int(batch.offsets[i]) + v for v in listed]] = False
    return out


def read_sources(metadata: Mapping[str, Any] | None, n_claims: int) -> list[Any]:
    """The source of each label of one problem, None where it is not known.

    Parameters
    ----------
    metadata : dict or None
        Of the problem.
    n_claims : int
        Number of claims of the problem.

    Returns
    -------
    list of (dict or None)
        What does not fit the claims, such as those of a graph that was filtered since,
        is not known.
    """
    rows = (metadata or {}).get(SOURCES)
    if not isinstance(rows, list) or len(rows) != n_claims:
        return [None] * n_claims
    return [
        row if isinstance(row, Mapping) and row.get("kind") in KINDS else None
        for row in rows
    ]


def iterate_sources(batch: Any) -> Iterator[Any]:
    """The source of each label of a batch, in the order of its claims.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Yields
    ------
    dict or None
        The source of one label, or None where it is not known.
    """
    for i, size in enumerate(batch.sizes):
        metadata = None if batch.metadata is None else batch.metadata[i]
        yield from read_sources(metadata, int(size))
