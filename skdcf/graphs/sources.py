"""Who said that a claim is true, kept in the metadata of a problem, one entry a claim."""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any

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
    changed = {}
    number = mask.cumsum() - 1
    for key in (*NEVER_KEPT, UNSURE):
        if is_list_of_claims(metadata.get(key), len(mask)):
            changed[key] = [int(number[v]) for v in metadata[key] if mask[v]]
    rows = metadata.get(SOURCES)
    if isinstance(rows, list) and len(rows) == len(mask):
        changed[SOURCES] = list(compress(rows, mask))
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


def unsure_claims(metadata: Mapping[str, Any] | None, n_claims: int) -> list[int]:
    """The claims that somebody looked at and could not call true or false.

    Parameters
    ----------
    metadata : dict or None
        Of the problem.
    n_claims : int
        Number of claims of the problem.

    Returns
    -------
    list of int
        Their positions; none where the metadata say something else under that key.
    """
    listed: Any = (metadata or {}).get(UNSURE)
    return list(listed) if is_list_of_claims(listed, n_claims) else []


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
