"""Compare the estimated error probabilities of texts with the observed error rates.

    python -m benchmarks.guarantees.chances [--splits N] [--jobs N] [--sets NAME ...]

The program prints benchmarks/results/chances.txt and, with all sets, writes
docs/guide/figures/chances.svg.

The default filter is fitted on half of the questions of published answers and evaluated on the
other half. Then the halves are exchanged. The evaluated texts are those that `predict` keeps at
.05, .1 and .2, and the safest 70 % of each answer ("70 %"). The error probability of each text is
estimated in four ways: from the unchanged hazards, with an intercept and a slope of their log odds,
with isotonic regression, and with `error_probability`, which also includes a frailty of the
answers. The first three ways use out-of-fold hazards of the training claims.

"Brier" is the mean squared error minus that of the best constant, times 1,000, with its standard
error over the answers. "ECE" is the mean difference between predicted and observed error rates over
tenths of the texts. "right" is the ECE that is expected by chance for correct probabilities, 0.8
sqrt(10 p (1 - p) / N) for N texts.
"""

import argparse
import warnings
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from benchmarks import GUIDE
from benchmarks.guarantees.reader import problems_of
from benchmarks.pages.figures import plt
from skdcf import CoherentConformalFilter
from skdcf.ops.chance import chance_of_error
from skdcf.ops.hard import below_true_claims, segment_sum
from skdcf.scorers import _hazards

FIGURE = GUIDE / "figures" / "chances.svg"
SETS = (
    "felm",
    "process-bench-math",
    "process-bench",
    "mr-ben",
    "perl",
    "refchecker",
    "qags-cnndm",
    "qags-xsum",
)
DRAWN = {
    "felm": "FELM",
    "process-bench-math": "ProcessBench math",
    "process-bench": "ProcessBench GSM8K",
    "refchecker": "RefChecker",
}
WAYS = ("as they stand", "two numbers", "isotonic", "with frailty")
ALPHAS = (0.05, 0.1, 0.2)
TEXTS = ("0.05", "0.1", "0.2", "70 %")
PULL = 5.0  # of the two numbers towards 0 and 1


def safest_claims(filter, graphs, batch, share):
    """Masks of a share of the claims of each answer, those with the smallest path risks."""
    masks = batch.split(np.zeros(batch.n_claims, dtype=bool))
    depths = batch.split(batch.depth)
    for mask, depth, risk in zip(masks, depths, filter.path_risk(graphs), strict=True):
        n_first = int(np.ceil(share * len(risk) - 1e-9))
        mask[np.lexsort((depth, risk))[:n_first]] = True
    return masks


def two_numbers(log_odds, false):
    """Intercept and slope by likelihood, with a pull towards the odds as they are."""

    def loss(numbers):
        odds = numbers[0] + numbers[1] * log_odds
        away = numbers - [0.0, 1.0]
        return np.logaddexp(0, odds).sum() - odds[false].sum() + PULL * away @ away

    return minimize(loss, [0.0, 1.0]).x


def maps_of(out_of_fold):
    """Functions from log odds of the filter's hazards to log odds."""
    log_odds, labels, batch, _ = out_of_fold
    at_risk = (labels >= 0) & below_true_claims(labels, batch)
    false = labels[at_risk] == 0
    intercept, slope = two_numbers(log_odds[at_risk], false)
    isotonic = IsotonicRegression(y_min=1e-3, y_max=1 - 1e-3, out_of_bounds="clip")
    isotonic.fit(log_odds[at_risk], false)

    def through_isotonic(odds):
        chance = isotonic.predict(odds)
        return np.log(chance) - np.log1p(-chance)

    return {
        "as they stand": lambda odds: odds,
        "two numbers": lambda odds: intercept + slope * odds,
        "isotonic": through_isotonic,
    }


def half(problems, train, test, seed):
    """Of each kind of texts: (answer, wrong, chance of each way) of those that are read."""
    graphs, labels, groups = problems
    filter = CoherentConformalFilter(random_state=seed)
    with mock.patch.object(
        _hazards, "fit_frailty", side_effect=_hazards.fit_frailty
    ) as fit:
        filter.fit(graphs[train], [labels[i] for i in train], groups=groups[train])
    maps = maps_of(fit.call_args.args)
    new = graphs[test]
    batch = filter.transform_features(new)
    log_odds = filter.scorer_.scorers_["neyman-pearson"].hazard(batch)
    false = np.concatenate([labels[i] for i in test]) != 1
    masks = {f"{alpha:g}": filter.predict(new, alpha) for alpha in ALPHAS}
    masks["70 %"] = safest_claims(filter, new, batch, 0.7)
    out = {}
    for name, rows in masks.items():
        kept = np.concatenate(rows).astype(bool)
        shown = segment_sum(kept, batch.offsets) > 0
        wrong = segment_sum(kept & false, batch.offsets) > 0
        stated = [chance_of_error(f(log_odds), kept, batch) for f in maps.values()]
        stated.append(np.nan_to_num(filter.error_probability(new, rows)))
        out[name] = test[shown], wrong[shown], np.array(stated)[:, shown]
    return out


def both_halves(problems, seed):
    """Each half is read once."""
    questions = np.random.default_rng(seed).permutation(np.unique(problems[2]))
    first = np.isin(problems[2], questions[: len(questions) // 2])
    one, other = np.flatnonzero(first), np.flatnonzero(~first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [half(problems, one, other, seed), half(problems, other, one, seed)]


def tenths(stated, wrong):
    """Stated, seen and their number, in ten parts of equal size by what is stated."""
    parts = np.array_split(np.argsort(stated, kind="stable"), 10)
    return np.array(
        [(stated[p].mean(), wrong[p].mean(), len(p)) for p in parts if len(p)]
    )


def row_of(answers, wrong, stated):
    """Brier score beside the best constant's, its error over answers, and ECE."""
    gain = (stated - wrong) ** 2 - (wrong.mean() - wrong) ** 2
    _, code = np.unique(answers, return_inverse=True)
    per_answer = np.bincount(code, gain - gain.mean())
    error = np.sqrt((per_answer**2).sum()) / len(gain)
    parts = tenths(stated, wrong)
    ece = np.average(abs(parts[:, 0] - parts[:, 1]), weights=parts[:, 2])
    return stated.mean(), 1000 * gain.mean(), 1000 * error, ece


def draw(curves):
    """Seen against stated, over tenths, a panel for each set."""
    figure, axes = plt.subplots(
        2, 2, figsize=(6.4, 6.2), layout="constrained", sharex=True, sharey=True
    )
    for ax, (name, title) in zip(axes.flat, DRAWN.items(), strict=True):
        ax.plot([0, 1], [0, 1], color="0.5", lw=1)
        for kind, colour, marker in (("0.1", "#0072b2", "o"), ("70 %", "#d55e00", "s")):
            stated, seen, n = tenths(*curves[name, kind]).T
            error = np.sqrt(seen * (1 - seen) / n)
            label = "kept at .1" if kind == "0.1" else "safest 70 %"
            style = {"fmt": marker, "color": colour, "ms": 5, "capsize": 2, "lw": 1}
            ax.errorbar(stated, seen, yerr=error, label=label, **style)
        ax.set_title(title, fontsize=10)
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=np.arange(0, 1, 0.2))
    axes[0, 0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.supxlabel("chance that is stated", fontsize=10)
    figure.supylabel("share of these texts with a false claim", fontsize=10)
    figure.savefig(FIGURE)
    plt.close(figure)


def main(options):
    """Print the table, and draw."""
    parallel = Parallel(n_jobs=options.jobs)
    print(f"{options.splits} times two halves; Brier times 1,000, against a constant")
    names = "".join(f"  {way:^27}" for way in WAYS)
    print(f"{'':38}{names}")
    each = "  stated     Brier        ECE"
    print("set                texts     N   seen  right" + each * len(WAYS))
    curves = {}
    for name in options.sets:
        problems = problems_of(name)
        results = parallel(
            delayed(both_halves)(problems, seed) for seed in range(options.splits)
        )
        halves = [part for result in results for part in result]
        for kind in TEXTS:
            answers = np.concatenate([part[kind][0] for part in halves])
            wrong = np.concatenate([part[kind][1] for part in halves])
            stated = np.concatenate([part[kind][2] for part in halves], axis=1)
            p, n = wrong.mean(), len(wrong)
            right = 0.8 * np.sqrt(10 * p * (1 - p) / n)
            line = f"{name:18} {kind:>5} {n:5} {p:6.3f} {right:6.3f}"
            for values in stated:
                mean, gain, error, ece = row_of(answers, wrong, values)
                line += f"  {mean:6.3f} {gain:+6.1f} +- {error:4.1f} {ece:6.3f}"
            print(line, flush=True)
            curves[name, kind] = stated[-1], wrong
    if set(DRAWN) <= set(options.sets):
        draw(curves)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sets", nargs="+", default=SETS)
    main(parser.parse_args())
