"""Random problems for the differentiable part, with ancestors found by walking."""

import networkx as nx
import numpy as np

from skdcf import GraphBatch


def ancestors_by_walking(n, edges):
    """For each claim the sorted list of its proper ancestors."""
    digraph = nx.DiGraph(edges)
    digraph.add_nodes_from(range(n))
    return [sorted(nx.ancestors(digraph, v)) for v in range(n)]


def random_edges(rng, n, density):
    """Edges in a random order of the claims, so that parents may have higher numbers."""
    order = rng.permutation(n)
    return [
        (int(order[i]), int(order[j]))
        for j in range(n)
        for i in range(j)
        if rng.uniform() < density
    ]


def chain(n):
    return [(i, i + 1) for i in range(n - 1)]


class Problems:
    """Some problems in both forms: packed, and as lists with one entry per problem."""

    def __init__(self, rng, edges, sizes, labels=None, features=None, share_false=0.35):
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        flat = [
            (u + o, v + o)
            for o, some in zip(offsets[:-1], edges, strict=True)
            for u, v in some
        ]
        n = int(offsets[-1])
        if features is None:
            features = rng.normal(size=(n, 4))
        self.batch = GraphBatch.from_arrays(features, offsets, flat)
        if labels is None:
            labels = rng.uniform(size=n) > share_false
            labels[: sizes[0]] = True  # one problem without errors at least
        self.labels, self.offsets = labels, offsets
        self.ancestors = [
            ancestors_by_walking(m, e) for m, e in zip(sizes, edges, strict=True)
        ]
        self.label_lists = self.lists(labels.astype(float))

    def lists(self, flat):
        """One slice of ``flat`` per problem; autograd may look."""
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return [flat[a:b] for a, b in bounds]


def random_problems(seed, n_problems=8, largest=7, density=0.4, **more):
    rng = np.random.RandomState(seed)
    sizes = rng.randint(1, largest + 1, n_problems)
    edges = [random_edges(rng, n, density) for n in sizes]
    return Problems(rng, edges, sizes, **more)


def spaced_risks(rng, offsets, gap):
    """Risks at random, any two of one problem at least ``gap`` apart."""
    parts = [
        gap * (1.5 * rng.permutation(n) + rng.uniform(0, 0.5, n))
        for n in np.diff(offsets)
    ]
    return np.concatenate(parts)
