"""Ancestors of the claims of one large problem as rows of bits.

A list of all pairs of claim and ancestor takes up to n^2 / 2 numbers, and to unite the
parents' lists takes n^3 steps where claims have many parents. Rows of bits take one bit
a pair, for a block of 8,192 ancestors at a time: n^2 / 8 steps, 1 KB a claim.

Claims are numbered such that parents come first (their *ranks*).
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192  # ancestors in a block, a multiple of 8
_ROWS = 1024  # claims worked on together when bits are read


class Lineage:
    """The edges of one problem, in ranks.

    Parameters
    ----------
    edges : ndarray of shape (n_edges, 2)
        (parent, child), as numbers from 0.
    rank : ndarray of shape (n_claims,)
        A permutation that grows along every edge.
    pairs : tuple of ndarray, optional
        Each claim with its ancestors, (claim, member), if they have been listed.

    Attributes
    ----------
    ends : tuple of ndarray
        Parents and children of the edges, in ranks, sorted by child. One attribute, so
        that threads see both or neither.
    """

    def __init__(
        self, edges: NDArray[Any], rank: NDArray[Any], pairs: Any = None
    ) -> None:
        self.rank = rank
        self._pairs = pairs
        self.n_claims: int = len(rank)
        parent, child = rank[edges.T]
        self.ends: tuple[NDArray[Any], NDArray[Any]] = _sort(
            parent, child, self.n_claims
        )
        # The edges as they were given: how sums are added up must not change later.
        self._n_parents = np.bincount(self.ends[1], minlength=self.n_claims)

    def reversed(self) -> Any:
        """The same claims with all edges reversed."""
        number = np.argsort(self.rank)
        edges = number[np.stack(self.ends[::-1], axis=1)]
        return Lineage(edges, self.n_claims - 1 - self.rank)

    def needed(self) -> NDArray[Any]:
        """Edges without those to an ancestor of another parent, in numbers.

        Edges from claims without a parent all stay.
        """
        for _ in self.blocks():
            pass
        return np.argsort(self.rank)[np.stack(self.ends, axis=1)]

    def blocks(self) -> Any:
        """(start, rows) for one block of ancestors after the other, from the last.

        ``rows[v - start]`` are the bits of the claim of rank v: bit k stands for the
        one of rank start + k, v is one of its own, and ranks below ``start`` have none.

        A parent that is an ancestor of another parent adds nothing. Parents are tried
        from the last, and one whose bit is there already is passed over for good, in
        this block and in all before it: a complete graph costs a look at each edge. At
        the end only the edges that were of use are left.
        """
        if self._pairs is not None:
            yield 0, self._listed_rows()
            return
        (parent, child), n = self.ends, self.n_claims
        kept: dict[int, list[int]] = {}
        roots = []
        root = np.bincount(child, minlength=n) == 0
        for start in range((n - 1) // BLOCK * BLOCK, -1, -BLOCK):
            stop = min(start + BLOCK, n)
            rows = np.zeros((n - start, (stop - start + 7) // 8), dtype=np.uint8)
            sources = np.arange(start, stop)
            _set_bits(rows, sources - start, sources - start)
            inside = (start <= parent) & (parent < stop)
            direct = inside & root[parent]  # these have only their own bits
            roots.append(np.stack([parent[direct], child[direct]]))
            _set_bits(rows, child[direct] - start, parent[direct] - start)
            rest = np.flatnonzero(inside & ~direct)
            _unite(rows, start, parent=parent[rest], child=child[rest], kept=kept)
            yield start, rows
        pairs = [(u, v) for v, above in kept.items() for u in above]
        pairs_left = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        parent, child = np.hstack([*roots, pairs_left])
        self.ends = _sort(parent, child, n)

    def _listed_rows(self):
        """Set the bits of pairs that are known, in one block."""
        claim, member = (self.rank[ends] for ends in self._pairs)
        rows = np.zeros((self.n_claims, (self.n_claims + 7) // 8), dtype=np.uint8)
        _set_bits(rows, claim, member)
        return rows

    def sums(self, values: NDArray[Any]) -> Any:
        """Sum of ``values`` over each claim and its ancestors, shape (n_claims,).

        The sums of all sets of eight neighbours are made beforehand, so that a byte of a
        row is one look into a table.
        """
        ordered = np.empty(self.n_claims, dtype=values.dtype)
        ordered[self.rank] = values
        (parent, child), total = self.ends, ordered.copy()
        lower = np.flatnonzero(self._n_parents > 1)
        total[lower] = 0
        for start, rows in self.blocks():
            table = _tabulate(ordered[start : start + BLOCK], rows.shape[1])
            place = 256 * np.arange(rows.shape[1])
            reached = lower[lower >= start]
            for a in range(0, len(reached), _ROWS):
                block = reached[a : a + _ROWS]
                total[block] += table[rows[block - start] + place].sum(axis=1)
        return _add_below(total, parent, child, self._n_parents)[self.rank]

    def pairs(self) -> Any:
        """Each claim with its ancestors, in numbers: two arrays, (claim, member)."""
        number = np.empty(self.n_claims, dtype=np.int64)
        number[self.rank] = np.arange(self.n_claims)
        keys = [np.empty(0, dtype=np.int64)]
        for start, rows in self.blocks():
            row, byte = np.nonzero(rows)
            bits = np.unpackbits(rows[row, byte][:, None], axis=1, bitorder="little")
            place, bit = np.nonzero(bits)
            member = number[start + 8 * byte[place] + bit]
            keys.append(number[start + row[place]] * np.int64(self.n_claims) + member)
        key = np.concatenate(keys)
        key.sort()
        return np.divmod(key, self.n_claims)


def _sort(parent, child, n_claims):
    """Edges in the order of their children, and of the parents of each."""
    key = child * np.int64(n_claims) + parent
    if (key[1:] < key[:-1]).any():
        key.sort()
        child, parent = np.divmod(key, n_claims)
    return parent, child


def _unite(rows, start, parent, child, kept):
    """Join the parents' rows to their children's; ``kept`` are the parents of use.

    ``parent`` and ``child`` are the edges from this block, sorted by child; ``kept``
    has the parents behind it of which another block found that they are needed.
    """
    children, first = np.unique(child, return_index=True)
    bounds = pairwise(np.append(first, len(child)).tolist())
    inside = [parent[a:b] - start for a, b in bounds]
    above = dict(zip(children.tolist(), inside, strict=True))
    for v in sorted(above.keys() | kept.keys()):
        row = rows[v - start]
        used = kept.get(v, [])
        for u in used:
            row |= rows[u - start]
        inside = above.get(v, ())
        if len(inside):
            kept[v] = used + [start + u for u in _take_needed(row, rows, inside)]


def _take_needed(row, rows, inside):
    """Join the rows of the parents that are not there yet; return which these were."""
    needed = []
    while len(inside):
        u = int(inside[-1])
        inside = inside[:-1]
        if not row[u >> 3] >> (u & 7) & 1:
            row |= rows[u]
            needed.append(u)
            inside = inside[(row[inside >> 3] >> (inside & 7)) & 1 == 0]
    return needed


def _add_below(total, parent, child, n_parents):
    """Sums of the claims with one parent, from that of the parent."""
    single = n_parents[child] == 1
    sums = total.tolist()
    for u, v in zip(parent[single].tolist(), child[single].tolist(), strict=True):
        sums[v] += sums[u]
    return np.array(sums, dtype=total.dtype)


def _set_bits(rows, row, bit):
    flat = row * rows.shape[1] + (bit >> 3)
    np.bitwise_or.at(rows.reshape(-1), flat, (1 << (bit & 7)).astype(np.uint8))


def _tabulate(values, n_bytes):
    """The sums of all sets of eight neighbours, 256 for each byte."""
    padded = np.zeros(8 * n_bytes, dtype=values.dtype)
    padded[: len(values)] = values
    table = np.zeros((n_bytes, 256), dtype=values.dtype)
    for bit, row in enumerate(padded.reshape(n_bytes, 8).T):
        table[:, 1 << bit : 2 << bit] = table[:, : 1 << bit] + row[:, None]
    return table.reshape(-1)
