"""All methods that need no frequency on PERL, gsm8k and math.

    python benchmarks/perl_results.py [--jobs N] [--splits N] [--output DIR] [--resume]

Random halves that keep the solutions of one question together: one half trains, the
other is evaluated leave-one-out. Then one source trains and the other is evaluated.

A claim is true here if nothing is wrong with it *and* nothing that it builds on is wrong
(``label="any"``). With ``label="native"``, where a claim that builds on an error can be
true, filters without a graph get credit for keeping claims whose premises they
drop; the halves are evaluated that way too.
"""

import numpy as np
from methods import learned
from saving import options, run

from skdcf.datasets import fetch_perl
from skdcf.features import reasoning_features

LEVELS = [0.02, 0.05, 0.1, 0.2]


def main(chosen):
    """Run and save the four comparisons."""
    data = fetch_perl(["gsm8k", "math"], label="any")
    native = fetch_perl(["gsm8k", "math"], label="native").labels
    X = reasoning_features().fit_transform(data.graphs)
    math = np.array(["/math" in name for name in data.graphs.ids])
    sources = {"gsm8k": np.flatnonzero(~math), "math": np.flatnonzero(math)}
    title = "PERL gsm8k and math, grouped halves"
    experiments = [
        ("halves", title, data.labels, None),
        ("native", f"{title}, errors in the claim itself only", native, None),
    ]
    for train, test in (("gsm8k", "math"), ("math", "gsm8k")):
        cv = [(sources[train], sources[test])]
        title = f"PERL, trained on {train}, evaluated on {test}"
        experiments.append((f"{train}-{test}", title, data.labels, cv))
    for name, title, labels, cv in experiments:
        run(
            f"perl-{name}",
            learned("math", LEVELS),
            X,
            labels,
            LEVELS,
            chosen,
            title=title,
            protocol="leave-one-out",
            groups=data.groups,
            cv=cv,
        )


if __name__ == "__main__":
    main(options(__doc__))
