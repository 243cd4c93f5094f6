"""How problems are divided: (train, calibration, test), or (train, test)."""

from numbers import Integral

import numpy as np

FOLDS, LEAVE_ONE_OUT = "folds", "leave-one-out"
SHARES = {FOLDS: (0.70, 0.15, 0.15), LEAVE_ONE_OUT: (0.5, 0.5)}
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
        splits = [
            given(split, questions, shares, rng) for split in listed(cv, questions)
        ]
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


def listed(cv, questions):
    """The splits of a splitter, or of an iterable, as a list."""
    if not hasattr(cv, "split"):
        return list(cv)
    n = len(questions)
    several = questions.max() + 1 < n
    more = {"groups": questions} if several else {}
    return list(cv.split(np.zeros(n), **more))


def given(split, codes, shares, rng):
    """The caller's parts; where calibration is missing, it is cut from training."""
    n = len(codes)
    parts = [positions(part, n) for part in split]
    if len(parts) == 2 and len(shares) == 3:
        parts = [*cut(parts[0], codes, shares[:2], rng), parts[1]]
    if len(parts) != len(shares):
        raise ValueError(
            f"a split has {len(parts)} parts, but {len(shares)} are needed: "
            + ("train, calibration, test" if len(shares) == 3 else "train, test")
        )
    return tuple(parts)


def positions(part, n):
    """Sorted problem numbers from an index array or a mask."""
    part = np.asarray(part)
    if part.dtype == bool and part.shape == (n,):
        return np.flatnonzero(part)
    if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
        raise ValueError("a part of a split must be a 1-D array of problem numbers")
    part = np.sort(part.astype(np.int64))
    if part.size and not (part[0] >= 0 and part[-1] < n):
        wrong = part[-1] if part[-1] >= n else part[0]
        raise ValueError(f"a split names problem {wrong}, but there are {n} problems")
    return part


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
