"""A hundred labelled problems: what the size of the calibration part is worth.

    python benchmarks/small_samples.py [--draws 40]

Draws of 100 problems, generated ones and PERL's (where ``SKDCF_DATA`` has them), fitted with
three tenths held out and with the default, which wastes no calibration problem; evaluated on
all others. Errors are over draws.
"""

import argparse

import numpy as np

from skdcf import CoherentConformalFilter
from skdcf.datasets import fetch_perl, make_reasoning_graphs
from skdcf.features import reasoning_features
from skdcf.metrics import coverage_score, retention_score

ALPHAS = (0.05, 0.1)


def sources():
    """Name, problems, labels and groups of each data set that is there."""
    data = make_reasoning_graphs(1600, random_state=1)
    yield "generated", data.graphs, data.labels, None
    try:
        data = fetch_perl(label="any", download_if_missing=False)
    except FileNotFoundError as error:
        print(f"without PERL: {error}")
        return
    graphs = reasoning_features().fit_transform(data.graphs)
    yield "PERL", graphs, data.labels, data.groups


def outcome(draw, size, alpha, graphs, labels, groups):
    """Retention and coverage of one draw."""
    order = np.random.RandomState(draw).permutation(len(graphs))
    known, new = order[:100], order[100:]
    cf = CoherentConformalFilter(alpha=alpha, calibration_size=size, random_state=draw)
    given = None if groups is None else groups[known]
    cf.fit(graphs[known], [labels[i] for i in known], given)
    kept, truth = cf.predict(graphs[new]), [labels[i] for i in new]
    return retention_score(truth, kept), coverage_score(truth, kept)


def main():
    """Print one line per data set, level and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=40)
    draws = range(parser.parse_args().draws)
    print("data       alpha  held out  true claims kept  coverage")
    for name, *data in sources():
        for alpha in ALPHAS:
            for size in (0.3, None):
                rows = np.array([outcome(d, size, alpha, *data) for d in draws])
                (kept, covered), error = rows.mean(0), rows.std(0) / len(draws) ** 0.5
                print(
                    f"{name:9}  {alpha:5.2f}  {size or 'default':>8}  "
                    f"{kept:7.3f} +- {error[0]:.3f}  {covered:.3f} +- {error[1]:.3f}"
                )


if __name__ == "__main__":
    main()
