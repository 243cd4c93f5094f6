"""Ancestors of the claims in a single large problem, stored as rows of bits.

A list of all claim-ancestor pairs would contain up to n^2 / 2 entries for n claims. If claims
have many parents, merging the lists of the parents would require up to n^3 steps for n claims.
Rows of bits require only one bit per claim-ancestor pair. For a problem with n claims, blocks of
8,192 ancestors require n^2 / 8 steps in total and 1 KB of memory per claim.

Claims are numbered by *rank*. Every parent has a lower rank than its children.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192  # number of ancestors per block, which must be a multiple of 8
_ROWS = 1024  # number of claims processed together when the bits are read


class Lineage:
    """Edges of a single problem, expressed as ranks.

    Parameters
    ----------
    edges : ndarray of shape (n_edges, 2)
        Edges (parent, child) as claim indices, starting at 0.
    rank : ndarray of shape (n_claims,)
        Rank of each claim. The ranks are a permutation, and they increase along every edge.
    pairs : tuple of ndarray, optional
        Arrays (claim, member) that pair each claim with itself and its ancestors, if the pairs
        are already known.

    Attributes
    ----------
    ends : tuple of ndarray
        Parents and children of the edges, as ranks, sorted by child. The parents and children are
        stored in a single attribute, so concurrent threads never read a mixture of old and new
        values.
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
        # The original edges are used, because the summation order must never change.
        self._n_parents = np.bincount(self.ends[1], minlength=self.n_claims)

    def reversed(self) -> Any:
        """Return the lineage with all edges reversed."""
        number = np.argsort(self.rank)
        edges = number[np.stack(self.ends[::-1], axis=1)]
        return Lineage(edges, self.n_claims - 1 - self.rank)

    def needed(self) -> NDArray[Any]:
        """Return the edges as claim indices, without edges that are implied by other edges.

        All edges from claims without parents are kept, even if they are implied by other edges.
        """
        for _ in self.blocks():
            pass
        return np.argsort(self.rank)[np.stack(self.ends, axis=1)]

    def blocks(self) -> Any:
        """Yield (start, rows) for each block of ancestors, starting with the last block.

        ``rows[v - start]`` contains the bits of the claim with rank v. Bit k represents the claim
        with rank start + k. The row of each claim includes the claim itself, and there are no
        rows for ranks below ``start``.

        A parent is redundant if it is also an ancestor of another parent. Parents are processed
        from the last to the first. If the bit of a parent is already set, the parent is skipped
        in the current block and in all following blocks, so each edge of a complete graph is
        processed only once. Only the necessary edges remain at the end.
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
            # The row of a root contains only the root itself.
            direct = inside & root[parent]
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
        """Return a single block of rows for claim-ancestor pairs that are already known."""
        claim, member = (self.rank[ends] for ends in self._pairs)
        rows = np.zeros((self.n_claims, (self.n_claims + 7) // 8), dtype=np.uint8)
        _set_bits(rows, claim, member)
        return rows

    def sums(self, values: NDArray[Any]) -> Any:
        """For each claim, return the sum of ``values`` over the claim and its ancestors.

        The sums over all subsets of eight adjacent claims are computed first, so each byte of a
        row requires only one table lookup.
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
        """Return all claim-ancestor pairs as two arrays of indices."""
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
    """Return the edges sorted by child, then by parent."""
    key = child * np.int64(n_claims) + parent
    if (key[1:] < key[:-1]).any():
        key.sort()
        child, parent = np.divmod(key, n_claims)
    return parent, child


def _unite(rows, start, parent, child, kept):
    """Merge the rows of parents into the rows of their children, and record necessary parents.

    The arguments ``parent`` and ``child`` contain the edges from claims in the block, sorted by
    child. The necessary parents in the block are added to ``kept``, which already contains the
    necessary parents in later blocks.
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
    """Merge the rows of parents that are not yet ancestors, and return these parents."""
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
    """Add the parent's sum to the sum of each claim that has exactly one parent."""
    single = n_parents[child] == 1
    sums = total.tolist()
    for u, v in zip(parent[single].tolist(), child[single].tolist(), strict=True):
        sums[v] += sums[u]
    return np.array(sums, dtype=total.dtype)


def _set_bits(rows, row, bit):
    flat = row * rows.shape[1] + (bit >> 3)
    np.bitwise_or.at(rows.reshape(-1), flat, (1 << (bit & 7)).astype(np.uint8))


def _tabulate(values, n_bytes):
    """Return the sums over all 256 subsets of every eight adjacent values."""
    padded = np.zeros(8 * n_bytes, dtype=values.dtype)
    padded[: len(values)] = values
    table = np.zeros((n_bytes, 256), dtype=values.dtype)
    for bit, row in enumerate(padded.reshape(n_bytes, 8).T):
        table[:, 1 << bit : 2 << bit] = table[:, : 1 << bit] + row[:, None]
    return table.reshape(-1)
