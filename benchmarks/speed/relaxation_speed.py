"""Compare the time of loss and gradient of both relaxations with loops on one core.

The loops over problems are the references of the tests, which were written in plain autograd from
the algorithms of the paper. Each ratio is measured in a single run, so it does not depend on the
machine. Processor time is measured, so other processes have little influence.
"""

import argparse
import resource
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from autograd import value_and_grad

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import reference_grid
import reference_path
from random_graphs import Problems, ancestors_by_walking, chain

from benchmarks.data import fetch_perl
from skdcf.datasets import make_reasoning_graphs
from skdcf.labels import pack_labels
from skdcf.ops.conformal import conformal_rank
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import LinearModel
from skdcf.training import LBFGS, SoftTraining
from skdcf.training.loop import train

ALPHA = 0.1
PATH = {"T_m": 0.0, "T_s": 0.3, "T_q": 0.3}
GRID = {
    "T_p": 0.1,
    "gamma": 1.0,
    "lambda": 1.5,
    "tau_s": 0.3,
    "beta": 20.0,
    "tau_z": 0.02,
    "rho": 10.0,
    "m": 1.0,
}


def seconds(function, repeats):
    """(result, the shortest of so many runs)."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        out = function()
        times.append(time.process_time() - start)
    return out, min(times)


def step(relaxation, batch, labels, risk):
    """A function without arguments that gives loss and gradient, as training does."""
    plan = relaxation.plan(batch, labels)
    both = value_and_grad(lambda r: -relaxation.retention(r, plan, ALPHA))
    return lambda: both(risk)


def ratios():
    """Both relaxations on PERL, gsm8k and math."""
    batch, y = fetch_perl(return_X_y=True)
    labels = pack_labels(y, batch)
    risk = np.random.RandomState(0).normal(size=batch.n_claims)
    ancestors = [ancestors_by_walking(g.n_claims, g.edges.tolist()) for g in batch]
    targets = [x.astype(float) for x in batch.split(labels)]
    rank = conformal_rank(len(batch), ALPHA)
    print(f"PERL, {len(batch)} problems, {batch.n_claims} claims: loss and gradient")
    for relaxation, module, level, setting, bound in (
        (GridRelaxation(), reference_grid, rank, GRID, 100),
        (PathRelaxation(), reference_path, ALPHA, PATH, 250),
    ):

        def loop(risk, module=module, level=level, setting=setting):
            parts = [
                risk[a:b]
                for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
            ]
            return module.loss(parts, ancestors, targets, level, setting)

        (slow, slow_slope), long = seconds(lambda f=loop: value_and_grad(f)(risk), 2)
        (fast, slope), short = seconds(step(relaxation, batch, labels, risk), 20)
        assert abs(slow - fast) < 1e-9 and np.abs(slope - slow_slope).max() < 1e-9
        print(
            f"  {type(relaxation).__name__}: {short * 1e3:.2f} ms, loop "
            f"{long * 1e3:.0f} ms, {long / short:.0f} times (bound {bound})"
        )


def growth(relaxation, sizes):
    """Time of plan and step for more and more problems."""
    name, shortest = type(relaxation).__name__, []
    for n in sizes:
        batch, y = make_reasoning_graphs(n, random_state=0, return_X_y=True)
        data = batch, pack_labels(y, batch)
        risk = np.random.RandomState(0).normal(size=batch.n_claims)
        batch.__dict__.pop("closure", None)  # found by the generator
        both, planning = seconds(partial(step, relaxation, *data, risk), 1)
        _, short = seconds(both, 5)
        shortest.append(short)
        print(
            f"  {name}, {n:,} problems: plan {planning:.2f} s once, loss and gradient "
            f"{short:.3f} s, {short / n * 1e6:.1f} us a problem; peak {peak():.0f} MB"
        )
    exponent = np.polyfit(np.log(sizes), np.log(shortest), 1)[0]
    print(f"  {name}: time grows with problems to the {exponent:.2f} (bound 1.0)")


def train_once(relaxation, training, batch, labels):
    """One training run of the linear model, for one level."""
    rng = np.random.RandomState(0)
    setting = LinearModel(), relaxation, training
    return train(*setting, batch, labels, [ALPHA], rng=rng)[0]


def one_fit():
    """A whole training run of the default recipe."""
    batch, y = make_reasoning_graphs(230, random_state=0, return_X_y=True)
    labels = pack_labels(y, batch)

    def fit():
        batch.__dict__.pop("closure", None)  # a fresh fit finds them itself
        return train_once(PathRelaxation(), SoftTraining(), batch, labels)

    result, short = seconds(fit, 15)
    print(
        f"one fit, path, 230 problems, {batch.n_features} features: {short * 1e3:.0f} ms, "
        f"{len(result.loss_curve)} iterations (bound 60 ms)"
    )


def one_large_problem():
    """1,000 claims in a chain, with ten small problems beside it."""
    sizes = [1000] + [5] * 10
    rng = np.random.RandomState(0)
    batch, labels, _ = Problems.packed_only([chain(n) for n in sizes], sizes, rng)
    short_training = SoftTraining(LBFGS(max_iter=5))
    for relaxation in (PathRelaxation(), GridRelaxation()):
        result, short = seconds(
            lambda r=relaxation: train_once(r, short_training, batch, labels), 1
        )
        print(
            f"  {type(relaxation).__name__}, 1,000 claims in one problem: "
            f"{len(result.loss_curve)} iterations in {short:.1f} s; peak {peak():.0f} MB "
            "(bound 2000)"
        )


def peak():
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(path_sizes, grid_sizes):
    """Print the tables."""
    ratios()
    one_fit()
    one_large_problem()
    growth(GridRelaxation(), grid_sizes)
    growth(PathRelaxation(), path_sizes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = {"type": int, "nargs": "+"}
    parser.add_argument("--path", default=[1_000, 10_000, 100_000], **numbers)
    parser.add_argument("--grid", default=[200, 2_000, 20_000], **numbers)
    options = parser.parse_args()
    main(options.path, options.grid)
