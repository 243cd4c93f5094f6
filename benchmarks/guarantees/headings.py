"""How often a kept claim stands under the heading of another list, with and without edges.

Each answer has a list of four claims under each of two headings. In the first case, the headings
make no claim ("**Pros:**"). In the others, they are claims that end in a colon. Printed are the
share of new answers in which a kept claim of the second list stands under the first heading, and
the number of kept claims of the lists. Run in two checkouts to compare them::

    PYTHONPATH=CHECKOUT python benchmarks/guarantees/headings.py --draws 20
"""

import argparse
import warnings

import numpy as np

from skdcf import HardCF
from skdcf.apps.text import AnswerSplitter, kept_text
from skdcf.edges import heading_edges

ALPHA = 0.1
N_NEW = 400
HEADINGS = {
    True: ("The policy covers:", "It does not cover:"),
    False: ("**Pros:**", "**Cons:**"),
}


def draw(rng, n, rule, is_claim):
    """Return answers with a score for each claim, and their labels."""
    graphs, labels = [], []
    for i in range(n):
        items = [
            [f"- Item {i} of list {k}, number {v}." for v in range(4)] for k in range(2)
        ]
        lists = zip(HEADINGS[is_claim], items, strict=True)
        answer = "\n\n".join("\n".join([heading, *texts]) for heading, texts in lists)
        line = {"answer": answer, "problem": f"Question {i}?"}
        graph = AnswerSplitter().split(line)
        truth = rng.uniform(size=graph.n_claims) < 0.85
        score = truth + rng.normal(0, 0.8, graph.n_claims)
        edges = rule(graph.claims)
        graphs.append(graph.replace(features=score[:, None], edges=edges))
        # An item is false if its heading is.
        for parent, child in edges:
            truth[child] &= truth[parent]
        labels.append(truth.astype(int))
    return graphs, labels


def is_misplaced(text, is_claim):
    """Return whether an item of the second list stands under the first heading."""
    first, second = HEADINGS[is_claim]
    below = text.partition(second)[0]
    return first in below and "list 1" in below


def main():
    """Print the rates of each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    n_draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    for name, is_claim in (
        ("no edges", False),
        ("no edges", True),
        ("heading_edges", True),
    ):
        rule = heading_edges if name == "heading_edges" else lambda claims: []
        wrong, kept = [], []
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            filter = HardCF(0, alpha=ALPHA).fit(
                *draw(rng, 300, rule, is_claim), groups=False
            )
            new, _ = draw(rng, N_NEW, rule, is_claim)
            texts = [
                kept_text(*pair) for pair in zip(new, filter.predict(new), strict=True)
            ]
            wrong.append(np.mean([is_misplaced(text, is_claim) for text in texts]))
            kept.append(np.mean([text.count("Item") for text in texts]))
        print(
            f"{HEADINGS[is_claim][0]:20} {name:14} misplaced {np.mean(wrong):.3f} "
            f"± {np.std(wrong) / n_draws**0.5:.3f}, kept {np.mean(kept):.2f} of 8 items"
        )


if __name__ == "__main__":
    main()
