"""All methods that need no frequency on PERL, gsm8k and math.

    python benchmarks/perl_results.py [--jobs N] [--splits N] [--output DIR] [--resume]

Random halves that keep the solutions of one question together: one half trains, the
other is evaluated leave-one-out. Then one source trains and the other is evaluated.
"""

import numpy as np
from methods import learned
from saving import options, run

from skdcf.datasets import fetch_perl
from skdcf.features import reasoning_features

LEVELS = [0.02, 0.05, 0.1, 0.2]


def main(chosen):
    """Run and save the three comparisons."""
    data = fetch_perl(["gsm8k", "math"])
    X = reasoning_features().fit_transform(data.graphs)
    filters = learned("math", LEVELS)
    common = {"protocol": "leave-one-out", "groups": data.groups}
    title = "PERL gsm8k and math, grouped halves"
    run("perl-halves", filters, X, data.labels, LEVELS, chosen, title=title, **common)
    math = np.array(["/math" in name for name in data.graphs.ids])
    sources = {"gsm8k": np.flatnonzero(~math), "math": np.flatnonzero(math)}
    for train, test in (("gsm8k", "math"), ("math", "gsm8k")):
        run(
            f"perl-{train}-{test}",
            filters,
            X,
            data.labels,
            LEVELS,
            chosen,
            title=f"PERL, trained on {train}, evaluated on {test}",
            cv=[(sources[train], sources[test])],
            **common,
        )


if __name__ == "__main__":
    main(options(__doc__))
