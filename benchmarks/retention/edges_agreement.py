"""Measure the agreement of heuristic dependency graphs with the published graphs.

    python -m benchmarks.retention.edges_agreement [--data-home DIR]

The program prints the precision (proportion of heuristic edges that are in the published graph) and
the recall (proportion of published edges that the heuristic finds). It also prints both values for
ancestor pairs, which determine the decisions of a coherent filter. The tables in `skdcf.edges`
contain these results.
"""

import argparse

import numpy as np

from skdcf import GraphBatch
from skdcf.datasets import fetch_coherent_math, fetch_perl
from skdcf.edges import chain_edges, number_flow_edges


def pairs(batch, ancestors):
    """Edges, or pairs of claim and ancestor, as one number each."""
    parent, child = batch.edges.T
    if ancestors:
        indptr, parent = batch.closure
        child = np.repeat(np.arange(batch.n_claims), np.diff(indptr))
        parent, child = parent[parent != child], child[parent != child]
    return parent * batch.n_claims + child


def agreement(guessed, published, ancestors):
    """Precision and recall of the guessed graphs."""
    ours, theirs = (pairs(batch, ancestors) for batch in (guessed, published))
    shared = np.isin(ours, theirs).sum()
    return shared / len(ours), shared / len(theirs)


def guess(batch, edges):
    """The same problems with guessed graphs."""
    return GraphBatch.from_graphs(
        [g.replace(edges=edges(g.claims, g.problem)) for g in batch]
    )


def main(data_home=None):
    """Print the table."""
    sets = {
        "PERL gsm8k": fetch_perl("gsm8k", data_home=data_home).graphs,
        "PERL math": fetch_perl("math", data_home=data_home).graphs,
        "coherent factuality": fetch_coherent_math(data_home=data_home).graphs,
    }
    print(f"{'':20} {'':18} {'edges':>13} {'ancestors':>13}")
    for name, batch in sets.items():
        for edges in (number_flow_edges, chain_edges):
            guessed = guess(batch, edges)
            rows = [agreement(guessed, batch, kind) for kind in (False, True)]
            cells = " ".join(f"{p:6.2f} /{r:5.2f}" for p, r in rows)
            print(f"{name:20} {edges.__name__:18} {cells}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-home")
    main(parser.parse_args().data_home)
