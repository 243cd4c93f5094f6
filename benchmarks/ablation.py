"""One feature at a time against all together, on generated problems.

    python benchmarks/ablation.py [--jobs N] [--splits N] [--output DIR] [--resume]

Each single feature is mixed with that of the claims below, the share chosen by
cross-validation on the training problems, as in the paper's ablation.
"""

from main_results import draws
from methods import AUTO, LINEAR, TIES, single_feature
from paper import ALPHAS
from saving import options, run

from skdcf import CoherentConformalFilter

FEATURES = {
    "reachability": "nx_reachability",
    "claim index": "claim_index",
    "frequency": "frequency-score",
}


def main(chosen):
    """Run and save the two comparisons."""
    filters = {name: single_feature(feature) for name, feature in FEATURES.items()}
    filters[LINEAR] = CoherentConformalFilter("linear", **TIES)
    filters[AUTO] = CoherentConformalFilter("auto", **TIES)
    for kind, alphas in ALPHAS.items():
        X, y, cv = draws(kind, 350, 350, seed=0)
        run(
            f"ablation-{kind}",
            filters,
            X,
            y,
            alphas,
            chosen,
            title=f"{kind.upper()}-like, single features",
            protocol="leave-one-out",
            cv=cv[:10],
        )


if __name__ == "__main__":
    main(options(__doc__))
