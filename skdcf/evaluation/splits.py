"""How problems are divided: (train, calibration, test), or (train, test).

Finished splits are kept in a file, from which an interrupted comparison goes on.
"""

import json
from numbers import Integral
from pathlib import Path

import numpy as np
from joblib import hash as digest
from sklearn.base import clone

from .. import __version__
from .._files import open_journal

FOLDS, LEAVE_ONE_OUT = "folds", "leave-one-out"
SHARES = {FOLDS: (0.70, 0.15, 0.15), LEAVE_ONE_OUT: (0.5, 0.5)}
BEGIN = b'{"key": '  # of each line of a file of results
REPEATS = {FOLDS: 20, LEAVE_ONE_OUT: 40}


def make_splits(cv, questions, protocol, rng):
    """List of tuples of sorted positions: one tuple per split, one entry per part.

    Parameters
    ----------
    cv : int, splitter, iterable of tuples of index arrays, or None
    questions : ndarray of int, shape (n,)
        The question that each problem answers, by its number from 0 on.
    protocol : {"folds", "leave-one-out"}
    rng : RandomState
    """
    shares, n = SHARES[protocol], len(questions)
    if cv is None or isinstance(cv, Integral):
        repeats = REPEATS[protocol] if cv is None else int(cv)
        if repeats < 1:
            raise ValueError(f"cv is {cv}: the number of splits must be at least 1")
        rows = np.arange(n)
        splits = [cut(rows, questions, shares, rng) for _ in range(repeats)]
    else:
        if hasattr(cv, "split"):
            several = {"groups": questions} if questions.max() + 1 < n else {}
            cv = cv.split(np.zeros(n), **several)
        splits = [given(split, questions, shares, rng) for split in cv]
        if not splits:
            raise ValueError("cv gives no splits")
    for number, parts in enumerate(splits):
        check(parts, number, questions, protocol)
    return splits


def cut(rows, codes, shares, rng):
    """Random parts of about these shares of the problems; no question is divided."""
    found, inverse = np.unique(codes[rows], return_inverse=True)
    order = rng.permutation(len(found))
    sizes = np.bincount(inverse)[order]
    middle = np.cumsum(sizes) - sizes / 2
    bounds = len(rows) * np.cumsum(shares)[:-1] / np.sum(shares)
    part = np.empty(len(found), dtype=int)
    part[order] = np.searchsorted(bounds, middle)
    return tuple(rows[part[inverse] == p] for p in range(len(shares)))


def given(split, codes, shares, rng):
    """The caller's parts; where calibration is missing, it is cut from training."""
    rows = np.arange(len(codes))
    try:
        parts = [np.sort(rows[np.asarray(part)].ravel()) for part in split]
    except IndexError as error:
        raise ValueError(
            f"a part of a split must be numbers of the {len(rows)} problems: {error}"
        ) from None
    if len(parts) == 2 and len(shares) == 3:
        parts = [*cut(parts[0], codes, shares[:2], rng), parts[1]]
    if len(parts) != len(shares):
        raise ValueError(
            f"a split has {len(parts)} parts, but {len(shares)} are needed: "
            + ("train, calibration, test" if len(shares) == 3 else "train, test")
        )
    return tuple(parts)


def check(parts, number, codes, protocol):
    """ValueError if a part of a split is too small, or shares a problem or a question."""
    least = 2 if protocol == LEAVE_ONE_OUT else 1
    if any(len(part) < least for part in parts):
        sizes = "/".join(str(len(part)) for part in parts)
        raise ValueError(
            f"split {number} has parts of {sizes} problems, but each needs at least "
            f"{least}: pass more problems, or more questions with fewer answers"
        )
    members = np.concatenate([np.unique(codes[part]) for part in parts])
    if len(np.unique(np.concatenate(parts))) < sum(map(len, parts)):
        raise ValueError(f"split {number}: a problem is in two parts, or twice in one")
    if len(np.unique(members)) < len(members):
        raise ValueError(
            f"split {number}: answers to one question are in two parts. Leave cv to its "
            "default or use a splitter that keeps groups together, such as "
            "GroupShuffleSplit"
        )


def seeded(filter, seed):
    """A clone in which every ``random_state`` that was None is ``seed``."""
    if isinstance(filter, dict):
        return {alpha: seeded(one, seed) for alpha, one in filter.items()}
    fresh = clone(filter)
    unset = [k for k, v in fresh.get_params().items() if v is None]
    return fresh.set_params(**{k: seed for k in unset if k.endswith("random_state")})


def key_of(filters, batch, labels, questions, *settings):
    """A digest of all inputs of a comparison, the same in another session."""
    names = ("features", "feature_names", "offsets", "edges", "claims", "problems")
    names += ("metadata", "alternatives", "context", "edges_known")
    table = [getattr(batch, name) for name in names]
    try:
        return digest([filters, table, [*labels], questions, settings, __version__])
    except Exception as error:
        raise ValueError(
            f"resume needs inputs that can be pickled: {error}. Use a named function "
            "instead of a lambda"
        ) from error


def finished_splits(path, key):
    """Results by split number in a file that grows by a line with each split.

    A line that was cut off, by what ended the process, is passed over: its split is run
    again.
    """
    found, path = {}, Path(path)
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for line in filter(None, lines):
        try:
            entry = json.loads(line)
            number, result, its_key = int(entry["split"]), entry["result"], entry["key"]
        except (ValueError, TypeError, KeyError) as error:
            if isinstance(error, json.JSONDecodeError) and BEGIN.startswith(line[:8]):
                continue
            raise ValueError(
                f"{path} exists, but is no file of a comparison"
            ) from error
        if its_key != key:
            raise ValueError(
                f"{path} belongs to a comparison with other inputs. Pass the same ones to "
                "go on, or another path"
            )
        found[number] = result
    open_journal(path)  # it is made, and a line that was cut off is ended
    return found
