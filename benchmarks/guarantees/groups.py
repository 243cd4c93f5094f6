"""Coverage within the groups of published data, with one threshold and with ``by=``.

    python -m benchmarks.guarantees.groups [--splits S] [--output DIR]

The program reads FELM, Mr-Ben, RefChecker and PRMBench from the folder SKDCF_DATA, downloads
missing files, and prints the names of data sets that it cannot download. The scorer is a logistic
regression on the built-in features. The kinds of PRMBench reveal labels, so they must not be used
as groups in practice. They show how much the coverage can differ between groups.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import RESULTS
from benchmarks.data import fetch_prmbench, fetch_refchecker
from skdcf import HardCF
from skdcf.datasets import fetch_felm, fetch_mr_ben
from skdcf.evaluation._intervals import rate_interval
from skdcf.exceptions import CalibrationWarning
from skdcf.features import reasoning_features
from skdcf.guarantees import NoFalseClaim
from skdcf.identity import read_groups
from skdcf.ops.conformal import conformal_rank, fewest_of_rank

ALPHA = 0.1
HEAD = """\
Coverage at alpha = 0.1 within groups of published answers, and true claims kept per answer, with
one threshold for all and with one per group: {} random divisions of the questions, half to
train on, a quarter to calibrate and a quarter to test.

coverage  An answer's loss is the share of the divisions testing it (about a quarter of all) in
          which a false claim is kept; the coverage is 1 - the mean loss.
interval  95 %, Clopper-Pearson's for as many independent answers as would give the mean loss
          the same variance. That is taken over questions, and the number is never larger
          than that of the answers, so that the interval is cautious: a loss that is a mean
          over divisions varies less than one that is 0 or 1.
theory    Mean of 1 - k/(n + 1), where n questions of the group calibrate and k is the integer
          part of alpha (n + 1): the least coverage by group; more only where scores tie, or
          few answers have an error. Of each question one answer calibrates, and no more
          questions than reach the rank of all of them.
minus     Coverage by group minus theory, mean and standard error over the divisions. Each
          division draws which answer to a question calibrates, and what is left over.
missed    The interval lies below 0.9: by one threshold ("one"), by one per group ("BY").
p         Of all groups being covered alike by one threshold (Wald's test, by question)."""


def cell(batch):
    """Setting and model."""
    return [f"{about['setting']}, {about['model']}" for about in batch.metadata]


DOMAINS = ["math", "reasoning", "science", "wk"]
SUBJECTS = ["math", "biology", "chemistry", "medicine", "physics"]
SETTINGS = ["accurate_context", "noisy_context", "zero_context"]
CROSSED = {"settings": "setting", "models": "model", "settings x models": cell}
PRMBENCH = partial(fetch_prmbench, kinds="all")
DATA = {  # how it is fetched, its parts, and its tables
    "FELM": (fetch_felm, DOMAINS, {"domains": "domain"}),
    "Mr-Ben": (fetch_mr_ben, SUBJECTS, {"models": "model"}),
    "RefChecker": (fetch_refchecker, SETTINGS, CROSSED),
    "PRMBench": (PRMBENCH, ["train", "test"], {"kinds": "kind"}),
}


def can_read(fetch, part):
    """Whether the files of a part are here, or are now."""
    try:
        return bool(fetch(part))
    except OSError:
        return False


def measure(graphs, labels, questions, ways, n_splits):
    """Who calibrated, and {way: (covered, kept)}: a row per division, NaN if not tested."""
    calibrated = np.zeros((n_splits, len(graphs)), dtype=bool)
    found = {way: np.full((2, n_splits, len(graphs)), np.nan) for way in ways}
    n, model = questions.max() + 1, LogisticRegression(max_iter=2000)
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        part = (rng.permutation(n) * 4 // n)[questions]
        # Numbers decide which answer to a question calibrates, and which are left over.
        asked = rng.permutation(n)[questions]
        train, cal, test = map(np.flatnonzero, (part < 2, part == 2, part == 3))
        calibrated[seed, cal] = True
        taught, known, y = ([labels[i] for i in rows] for rows in (train, cal, test))
        cf = HardCF(make_pipeline(StandardScaler(), model), alpha=ALPHA, ties="jitter")
        # What fit holds out to calibrate is not used: calibrate is called below.
        cf.set_params(calibration_size=1, random_state=0)
        cf.fit(graphs[train], taught, asked[train])
        for way, by in ways.items():
            cf.set_params(guarantee=by and NoFalseClaim(by=by))
            cf.calibrate(graphs[cal], known, asked[cal])
            kept = cf.predict(graphs[test])
            both = list(zip(kept, y, strict=True))
            covered = [not (k & (u != 1)).any() for k, u in both]
            found[way][:, seed, test] = covered, [(k & (u == 1)).sum() for k, u in both]
    if np.isnan(found["one"][0]).all(axis=0).any():
        raise ValueError(f"an answer is tested in none of {n_splits} splits: take more")
    return calibrated, found


def summarise(covered, kept, questions):
    """Coverage, its interval, and true claims kept."""
    codes = np.unique(questions, return_inverse=True)[1]
    losses, true = 1 - np.nanmean(covered, axis=0), np.nanmean(kept, axis=0)
    losses, true = (np.bincount(codes, v) / np.bincount(codes) for v in (losses, true))
    rate, low, high = rate_interval(losses, np.ones(len(losses)))
    return 1 - rate, 1 - high, 1 - low, true.mean()


def count_questions(calibrated, questions):
    """How many questions calibrate in each division: the fewest of the same rank."""
    asked = (len(np.unique(questions[those])) for those in calibrated)
    return [fewest_of_rank(n, ALPHA) for n in asked]


def against_theory(covered, n):
    """Theory for n calibration questions; what was seen minus that, and its error."""
    law = np.array([1 - conformal_rank(k, ALPHA) / (k + 1) for k in n])
    excess = np.nanmean(covered, axis=1) - law
    return law.mean(), excess.mean(), excess.std(ddof=1) / np.sqrt(len(n))


def p_alike(losses, groups, questions):
    """p-value of equal mean losses in all groups, where answers to a question depend."""
    n = np.bincount(groups)
    mean = np.bincount(groups, losses) / n
    parts = np.zeros((questions.max() + 1, len(n)))
    np.add.at(parts, (questions, groups), (losses - mean[groups]) / n[groups])
    parts, differ = parts[:, 1:] - parts[:, :1], mean[1:] - mean[0]
    variance = parts.T @ parts  # singular if two groups are always covered
    statistic = differ @ np.linalg.pinv(variance, hermitian=True) @ differ
    return chi2.sf(statistic, np.linalg.matrix_rank(variance, hermitian=True))


def table(names, questions, calibrated, one, own):
    """Lines; per group whether it is missed by one threshold, whether by its own."""
    known, codes = np.unique(names, return_inverse=True)
    p = p_alike(1 - np.nanmean(one[0], axis=0), codes, questions)
    lines, missed = [f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"], []
    lines += [f"{'group':37} answers  {'one threshold':19} kept  {'by group':19} kept"]
    lines[1] += "  theory   minus            missed"
    for g, name in enumerate(["all", *known], start=-1):
        rows = np.flatnonzero((codes == g) | (g < 0))
        both = [summarise(*way[:, :, rows], questions[rows]) for way in (one, own)]
        line = f"{name:37} {len(rows):7}"
        line += "".join("  {:.3f} ({:.3f}-{:.3f}){:6.2f}".format(*way) for way in both)
        if g >= 0:
            asked = count_questions(calibrated[:, rows], questions[rows])
            theory = against_theory(own[0][:, rows], asked)
            missed.append([int(high < 1 - ALPHA) for _, _, high, _ in both])
            line += "   {:.3f}  {:+.4f} +- {:.4f}  ".format(*theory)
            line += "one " * missed[-1][0] + "BY" * missed[-1][1]
        lines.append(line.rstrip())
    return lines, missed


def main(chosen):
    """Measure, print and save."""
    text, missed = [HEAD.format(chosen.splits)], []
    for name, (fetch, parts, tables) in DATA.items():
        here = [part for part in parts if can_read(fetch, part)]
        lacking = ", ".join(part for part in parts if part not in here)
        about = f" ({', '.join(here)}" + f"; not here: {lacking}" * bool(lacking) + ")"
        if not here:
            text += ["", f"{name} is not here"]
            continue
        data = fetch(here)
        graphs = reasoning_features().fit_transform(data.graphs)
        questions = np.unique(data.groups, return_inverse=True)[1]
        ways = {"one": None} | tables
        found = measure(graphs, data.labels, questions, ways, chosen.splits)
        for title, by in tables.items():
            names = read_groups(by, graphs)
            both = found[1]["one"], found[1][title]
            lines, more = table(names, questions, found[0], *both)
            text += ["", f"{name}, {title}{about}: {lines[0]}", *lines[1:]]
            missed += more
            print(*text[-len(lines) :], sep="\n", flush=True)
    if not missed:
        raise SystemExit(
            "None of these data are here: set SKDCF_DATA, or connect to the internet"
        )
    one, own = np.sum(missed, axis=0)
    text += [
        "",
        f"Missed of {len(missed)} groups: {one} by one threshold, {own} by group.",
    ]
    text += [f"Chance, if each were covered with 0.9: {len(missed) / 40:.1f} at most."]
    (chosen.output / "groups.txt").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore", CalibrationWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=400)
    parser.add_argument("--output", type=Path, default=RESULTS)
    main(parser.parse_args())
