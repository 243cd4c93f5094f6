"""Repeat the experiments of arXiv:2604.20098 (`make paper`).

    python -m benchmarks.retention.reproduce [--jobs N] [--output DIR] [--only PART]

When all experiments are finished, the program saves results/paper.json, from which paper_page.py
writes the page. If a run is interrupted, the next run continues. Each result states its number of
folds or draws. The problems of the paper are not published. They are replaced by the same number of
generated problems and, if possible, by published data.
"""

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.base import clone

from benchmarks.cells import compute
from benchmarks.methods import TIES
from benchmarks.paper.agreement import surrogate_agreement
from benchmarks.retention import paper
from benchmarks.retention.paper import ALPHAS, PROBLEMS, SEVEN, TABLES, TWENTY
from benchmarks.saving import DIGITS, RESULTS, wanted, write
from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.datasets import fetch_coherent_math, fetch_felm, make_reasoning_graphs
from skdcf.evaluation import compare_filters, leave_one_out
from skdcf.exceptions import CalibrationWarning
from skdcf.features import reasoning_features
from skdcf.identity import question_groups
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import ClassifierScorer, ConfTrScorer, _tanh
from skdcf.training import Adam, SoftTraining

FOLDS, DRAWS, SEARCHES, TRAININGS = 20, 10, 3, 6
TRIED = 24  # settings drawn for each level, besides the printed ones
MANY = 2000  # folds of a score that learns nothing
JUDGED = 600  # new problems on which settings are compared
TRAINING_LEVELS = (0.05, 0.1)
AGREEMENT_LEVELS = (0.02, *ALPHAS["math"])  # at 0.01 the problems are too few
CF, INDEPENDENT, BOOSTED = "CF", "Independent", "Boosted Independent"
AUTO, LINEAR, LOGISTIC = "auto", "DCF, path relaxation", "CF, logistic regression"
XGBOOST, REACHABILITY, INDEX = "XGBoost", "reachability", "claim index"
TABLED, SEARCHED = "DCF, printed settings", "DCF, searched settings"
NARROW = f"{TABLED}, margin 0.1"
PROBABLE = "probabilities as confidences"
SINGLE = {
    CF: "frequency-score",
    REACHABILITY: "nx_reachability",
    INDEX: "claim_index",
}
SHARP = {
    "keep_temperature": 1e-7,
    "keep_shift": 1e-5,
    "violation_temperature": 1e-2,
    "sharpness": 1e5,
    "gate_temperature": 1e-8,
    "gate_shift": 1e-6,
    "quantile_strength": 1e7,
    "margin": 1.0,
    "violation_weight": 1.05,
}
SYMBOLS = {
    "gamma": "ancestor_weight",
    "lambda": "violation_weight",
    "tau_s": "violation_temperature",
    "T_p": "keep_temperature",
    "tau_z": "gate_temperature",
    "m": "margin",
    "beta": "sharpness",
}
# Not printed: the margin of training, and the sharpness for MATH. The first values are those of
# the paper's validation, which the printed settings take here.
MARGINS = (20.0, 1.0, 0.1)
SHARPNESS = {"math": (1.0, 5.0, 25.0), "felm": (1.0,)}


# Problems, and what divides them


def problems(kind, n=None, seed=1):
    """Generated problems and labels, as many as the paper had."""
    n = n or PROBLEMS[kind]
    return make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)


def blocks(kind, X):
    """[(problems, levels)]: the columns that the paper's scorers see at these levels."""
    if kind == "math":
        return [(X, ALPHAS[kind])]
    low = [alpha for alpha in ALPHAS[kind] if alpha <= 0.08]
    high = [alpha for alpha in ALPHAS[kind] if alpha > 0.08]
    return [(chosen_columns(X, SEVEN), low), (chosen_columns(X, TWENTY), high)]


def chosen_columns(X, names):
    """The problems with these columns only."""
    places = [X.feature_names.index(name) for name in names]
    return X.replace_features(X.features[:, places], names)


def folds(groups, shares=(0.7, 0.85), n_splits=FOLDS):
    """The paper's 70/15/15: what trains, what calibrates, what is tested."""
    found, question = np.unique(groups, return_inverse=True)
    bounds = np.round(len(found) * np.array(shares)).astype(int)
    rng = np.random.default_rng(0)
    for _ in range(n_splits):
        parts = np.split(rng.permutation(len(found)), bounds)
        yield tuple(np.flatnonzero(np.isin(question, part)) for part in parts)


# Cells


def timed(function, *arguments):
    """What a function gives, with the seconds of the processor that it took."""
    start = time.process_time()
    warnings.simplefilter("ignore", CalibrationWarning)  # few problems calibrate here,
    warnings.filterwarnings("ignore", ".*exact copies")  # and seven columns repeat
    return {"result": function(*arguments), "seconds": time.process_time() - start}


def on_fold(filter, X, y, groups, alphas, parts, seed):
    """{level: numbers} of a filter, or of {level: filter}, on one split."""
    if isinstance(filter, dict):
        cells = {}
        for alpha, one in filter.items():
            cells |= on_fold(one, X, y, groups, [alpha], parts, seed)
        return cells
    report = compare_filters(
        {"": filter},
        X,
        y,
        alphas,
        protocol="folds" if len(parts) == 3 else "leave-one-out",
        cv=[parts],
        groups=groups,
        random_state=seed,
    )
    shared = {
        "claims": float(np.mean(X.sizes[parts[-1]])),
        "sizes": [len(part) for part in parts],
    }
    return {
        f"{row['alpha']:g}": shared
        | {
            "true": row["true_claims"],
            "coverage": row["coverage"],
            "kept_true": row["retention"],
            "kept_all": row["retention"] + row["false_kept"],
        }
        for row in report.splits.rows
    }


def single_on_fold(feature, X, y, groups, alphas, parts, seed):
    """The same for one feature, its mixture chosen on training problems by level."""
    filters = mixed(feature, X, y, alphas, parts[0])
    return on_fold(filters, X, y, groups, alphas, parts, seed)


def mixed(feature, X, y, alphas, train):
    """{level: filter}: each mixture judged with the threshold of all other problems."""
    tried = [SingleFeatureCF(feature, beta_mix=b / 10, **TIES) for b in range(11)]
    X, y = X[train], [y[i] for i in train]
    kept = [
        leave_one_out(one.set_params(random_state=0).fit(X, y), X, y, alphas).retention
        for one in tried
    ]
    return dict(zip(alphas, (tried[i] for i in np.argmax(kept, axis=0)), strict=True))


def judged(filters, alpha, X, y, n_train):
    """{name: true claims kept} on problems new to training, leave-one-out."""
    train, rest = X[:n_train], X[n_train:]
    out = {}
    for name, filter in filters.items():
        fitted = filter.set_params(calibration_size=1, random_state=0)
        fitted.fit(train, y[:n_train])
        report = leave_one_out(fitted, rest, y[n_train:], [alpha])
        out[name] = float(report.retention[0])
    return out


def with_errors(n, seed, softened):
    """Soft against hard, of a scorer trained by the printed settings (RQ1)."""
    X, y = problems("math", 2 * n, seed)
    dcf = CoherentConformalFilter.from_paper("math", 0.05, random_state=seed)
    dcf.fit(X[:n], y[:n])
    probable = clone(dcf).set_params(scorer=Probabilities()).fit(X[:n], y[:n])
    rows = {name: (dcf, relaxation) for name, relaxation in softened.items()}
    for name in ("printed for validation", "printed for training (0.05)"):
        rows[f"{PROBABLE}, {name}"] = probable, softened[name]
    levels = np.arange(1, 16) / 100
    out = {}
    for name, (dcf, relaxation) in rows.items():
        report = surrogate_agreement(dcf, X[n:], y[n:], levels, relaxation=relaxation)
        out[name] = {
            "numbers": report.numbers(),
            "agreement": [report.agreement.min(), report.agreement.max()],
        }
    return out


def relaxations():
    """Those of RQ1, by what they are."""
    validation = GridRelaxation.from_paper("validation").get_params()
    return {
        "printed for validation": GridRelaxation(**validation),
        "the same, margin 1": GridRelaxation(**validation | {"margin": 1.0}),
        "the same, margin 1, sharpness 200": GridRelaxation(
            **validation | {"margin": 1.0, "sharpness": 200.0}
        ),
        "printed for training (0.05)": GridRelaxation.from_paper("math", 0.05),
        "sharp grid": GridRelaxation(**SHARP),
        "path, as trained": PathRelaxation(),
        "path, sharp": PathRelaxation(keep_temperature=1e-4, quantile_temperature=1e-4),
    }


def luck(kind, X, y):
    """Errors in the parts of the folds, and coverage of a fixed score over many folds."""
    cf = HardCF("nx_reachability", random_state=0, **TIES).fit(X, y)
    pairs = zip(cf.path_risk(X), y, strict=True)
    scores = np.array([np.min(r[t == 0], initial=np.inf) for r, t in pairs])
    wrong, numbers = np.isfinite(scores), np.arange(len(X))
    made = list(folds(numbers))
    shares = [np.mean([wrong[parts[i]].mean() for parts in made]) for i in (1, 2)]
    covered = {}
    for _, held, test in folds(numbers, n_splits=MANY):
        ordered = np.sort(scores[held])
        for alpha in ALPHAS[kind]:
            rank = int(alpha * (len(held) + 1) + 1e-9)
            threshold = ordered[rank - 1] if rank else -np.inf
            share = np.mean(scores[test] >= threshold)
            covered.setdefault(f"{alpha:g}", []).append(share)
    many = {alpha: float(np.mean(shares)) for alpha, shares in covered.items()}
    return {"errors": [float(share) for share in shares], "many": many}


def agreement_on_fold(X, y, parts, seed):
    """{level: {relaxation: counts}} on the problems that did not train (table 2)."""
    train, held = parts[0], np.concatenate(parts[1:])
    out = {}
    for alpha in AGREEMENT_LEVELS:
        row = max(alpha, ALPHAS["math"][0])  # none is printed for 0.02
        dcf = CoherentConformalFilter.from_paper("math", row, random_state=seed)
        dcf.set_params(alpha=alpha, calibration_size=1)
        dcf.fit(X[train], [y[i] for i in train])
        new = X[held], [y[i] for i in held], [alpha]
        found = {}
        for name, relaxation in {
            "printed": dcf.relaxation,
            "sharp": GridRelaxation(**SHARP),
        }.items():
            report = surrogate_agreement(dcf, *new, relaxation=relaxation)
            found[name] = report.counts()
        out[f"{alpha:g}"] = found
    return out


# Filters


def sharpened():
    """The published procedure from a better start and with a sharper grid."""
    training = SoftTraining.from_paper().set_params(init="coherent")
    scorer = ConfTrScorer(gain=None)
    return CoherentConformalFilter(
        scorer, relaxation=GridRelaxation(), training=training, **TIES
    )


class Probabilities:
    """The paper's LogisticClaimScorer: the confidence is a probability, sigmoid(x w + b)."""

    def init(self, n_features, rng):
        """Draw weights as `LinearModel` does; the intercept starts at 0."""
        bound = n_features**-0.5
        return np.append(rng.uniform(-bound, bound, n_features), 0.0)

    def __call__(self, params, X):
        """Confidences between 0 and 1."""
        return 0.5 * (1 + _tanh((X @ params[:-1] + params[-1]) / 2))

    def __repr__(self):
        return "Probabilities()"


def printed(kind, alphas, margin=MARGINS[0]):
    """The published procedure: one filter per level, with the printed settings."""
    return {
        a: CoherentConformalFilter.from_paper(kind, a, **TIES).set_params(
            alpha=a, relaxation__margin=margin
        )
        for a in alphas
    }


def with_settings(settings, alpha):
    """The published procedure with settings by their symbols."""
    named = {SYMBOLS[key]: value for key, value in settings.items()}
    relaxation = GridRelaxation(**named)
    more = {"relaxation": relaxation, "training": SoftTraining.from_paper()}
    return CoherentConformalFilter(ConfTrScorer(gain=None), alpha=alpha, **more, **TIES)


def settings_tried(kind):
    """Random combinations of the values that the paper's two tables hold.

    Margin and, for MATH, sharpness come from values of ours. A sharpness that would open
    the gate for good is drawn again with the rest.
    """
    values = {"m": {*MARGINS}, "beta": {*SHARPNESS[kind]}}
    shared = TABLES["hyperparameters_felm"]["shared"]
    for symbol in [symbol for symbol in SYMBOLS if symbol not in values]:
        values[symbol] = {
            row.get(symbol, shared.get(symbol))
            for kind in PROBLEMS
            for row in paper.table(f"hyperparameters_{kind}").values()
        }
    rng, tried = np.random.default_rng(0), []
    while len(tried) < TRIED:
        drawn = {
            symbol: float(rng.choice(sorted(values[symbol]))) for symbol in SYMBOLS
        }
        if drawn["beta"] * drawn["tau_z"] < 1:
            tried.append(drawn)
    return tried


def reference(alpha):
    """What the printed procedure is compared with."""
    return {
        LINEAR: CoherentConformalFilter(ConfTrScorer(gain=None), alpha=alpha, **TIES),
        LOGISTIC: HardCF(ClassifierScorer(gain=None), alpha=alpha, **TIES),
    }


def trainings(kind, alpha):
    """The printed settings, trained in other ways."""
    longer = {"optimizer": Adam(max_iter=1000, validation_size=None)}
    wide, narrow = MARGINS[0], MARGINS[-1]
    variants = {
        "as printed": (wide, {}),
        "patience 100, at most 1,000 epochs": (
            wide,
            {"optimizer": Adam(max_iter=1000, patience=100)},
        ),
        "1,000 epochs, no stopping": (wide, longer),
        "start from a logistic regression": (wide, {"init": "coherent"}),
        f"margin {narrow:g}": (narrow, {}),
        f"margin {narrow:g}, 1,000 epochs, no stopping": (narrow, longer),
    }
    out = {
        name: printed(kind, [alpha], margin)[alpha].set_params(
            training=SoftTraining.from_paper().set_params(**change)
        )
        for name, (margin, change) in variants.items()
    }
    return out | {"the same start, sharper grid": sharpened().set_params(alpha=alpha)}


# The parts: keys of cells, and what computes them


def learning(kind, alphas):
    """Filters that learn from all columns of a block of levels."""
    return {
        BOOSTED: BoostedIndependentFactuality(**TIES),
        XGBOOST: XGBoostCF(**TIES),
        TABLED: printed(kind, alphas),
        NARROW: printed(kind, alphas, MARGINS[-1]),
        PROBABLE: {
            alpha: filter.set_params(scorer=ConfTrScorer(Probabilities(), gain=None))
            for alpha, filter in printed(kind, alphas).items()
        },
        LINEAR: CoherentConformalFilter(ConfTrScorer(gain=None), **TIES),
        LOGISTIC: HardCF(ClassifierScorer(gain=None), **TIES),
        AUTO: CoherentConformalFilter(**TIES),
    }


def main_cells(kind, found, shares=(0.7, 0.85)):
    """RQ2 and the ablation of RQ3, on generated problems."""
    X, y = problems(kind)
    for number, parts in enumerate(folds(np.arange(len(X)), shares)):
        more = y, None, ALPHAS[kind], parts, number
        for name, feature in SINGLE.items():
            yield f"{name}//{number}", (single_on_fold, feature, X, *more)
        independent = IndependentFactuality("frequency-score", **TIES)
        yield f"{INDEPENDENT}//{number}", (on_fold, independent, X, *more)
        for table, alphas in blocks(kind, X):
            filters = learning(kind, alphas)
            if found:
                filters[SEARCHED] = {a: with_settings(found[a], a) for a in alphas}
            for name, filter in filters.items():
                given = filter, table, y, None, alphas, parts, number
                yield f"{name}/{alphas[0]}/{number}", (on_fold, *given)


def felm_cells():
    """Published FELM: columns of text, and a chain where a method needs edges."""
    data = fetch_felm()
    X = reasoning_features().fit_transform(data.graphs)
    y, groups, alphas = data.labels, question_groups(X, data.groups), ALPHAS["felm"]
    for number, parts in enumerate(folds(groups)):
        more = y, groups, alphas, parts, number
        yield f"{INDEX}//{number}", (single_on_fold, "claim_index", X, *more)
        filters = learning("felm", alphas) | {
            f"{LOGISTIC}, no edges": IndependentFactuality(
                ClassifierScorer(gain=None), **TIES
            )
        }
        for name, filter in filters.items():
            yield f"{name}//{number}", (on_fold, filter, X, *more)


def math_cells():
    """The 50 published problems of MATH: halves, and leave-one-out on one of them."""
    data = fetch_coherent_math()
    X = reasoning_features().fit_transform(data.graphs)
    X = chosen_columns(X, tuple(n for n in X.feature_names if n != "gpt-score"))
    groups, alphas = question_groups(X, data.groups), ALPHAS["math"]
    for number, parts in enumerate(folds(groups, shares=(0.5,))):
        more = data.labels, groups, alphas, parts, number
        for name, feature in {CF: "frequency-score", INDEX: "claim_index"}.items():
            yield f"{name}//{number}", (single_on_fold, feature, X, *more)
        filters = learning("math", alphas)
        filters[INDEPENDENT] = IndependentFactuality("frequency-score", **TIES)
        for name, filter in filters.items():
            yield f"{name}//{number}", (on_fold, filter, X, *more)


def drawn_cells(kind, levels, n_draws, make):
    """Filters judged on draws of their own, level by level."""
    n = round(0.7 * PROBLEMS[kind])
    for number in range(n_draws):
        X, y = problems(kind, n + JUDGED, 100 + number)
        for table, alphas in blocks(kind, X):
            for alpha in filter(levels.__contains__, alphas):
                arguments = make(kind, alpha), alpha, table, y, n
                yield f"{alpha:g}/{number}", (judged, *arguments)


def searched_filters(kind, alpha):
    """Everything that the search of a level compares."""
    tried = {i: with_settings(s, alpha) for i, s in enumerate(settings_tried(kind))}
    own = printed(kind, [alpha])[alpha]
    return {str(k): v for k, v in tried.items()} | {TABLED: own} | reference(alpha)


def trained_filters(kind, alpha):
    """Everything that the study of training compares."""
    return trainings(kind, alpha) | reference(alpha)


def luck_cells():
    """How the folds happen to divide the problems."""
    for kind in PROBLEMS:
        yield kind, (luck, kind, *problems(kind))


def surrogate_cells():
    """RQ1: scores and thresholds on draws, single claims on folds."""
    for number in range(DRAWS):
        given = PROBLEMS["math"], number, relaxations()
        yield f"scores/{number}", (with_errors, *given)
    X, y = problems("math")
    for number, parts in enumerate(folds(np.arange(len(X)))):
        yield f"claims/{number}", (agreement_on_fold, X, y, parts, number)


# Results


def mean_and_error(values, sizes=None):
    """Mean and standard error; corrected where the values share problems (2003)."""
    values = np.array(values, dtype=float)
    n = len(values)
    if n < 2:
        return {"mean": float(values.mean()), "error": None, "n": n}
    overlap = 0.0 if sizes is None else np.mean([s[-1] / s[0] for s in sizes])
    error = values.std(ddof=1) * np.sqrt(1 / n + overlap)
    return {"mean": float(values.mean()), "error": float(error), "n": n}


def compared(cells):
    """{method: {level: numbers}} of the cells that are there."""
    rows = defaultdict(lambda: defaultdict(list))
    for key, result in cells.items():
        method = key.split("/")[0]
        for alpha, numbers in result.items():
            rows[method][alpha].append(numbers)
    return {
        method: {alpha: summary(found) for alpha, found in levels.items()}
        for method, levels in rows.items()
    }


def summary(found):
    """Means over folds, in the paper's units and in ours."""
    column = {key: [row[key] for row in found] for key in found[0]}
    sizes = column["sizes"]
    out = {
        key: mean_and_error(column[key], sizes)
        for key in ("coverage", "kept_all", "kept_true")
    }
    share = np.divide(column["kept_all"], column["claims"])
    out["kept_all_share"] = mean_and_error(share, sizes)
    out["tested"] = sizes[0][-1]
    out["calibrated"] = sizes[0][1] if len(sizes[0]) == 3 else sizes[0][1] - 1
    return out


def searched(kind, cells):
    """{level: best settings, what they keep, and the references}."""
    tried, out = settings_tried(kind), {}
    for alpha, draws in by_level(cells).items():
        kept = {name: [draw[name] for draw in draws] for name in draws[0]}
        choices = [str(i) for i in range(TRIED)]
        best = max(choices, key=lambda name: np.mean(kept[name]))
        names = {"searched": best, TABLED: TABLED, LINEAR: LINEAR, LOGISTIC: LOGISTIC}
        out[alpha] = {"settings": tried[int(best)]} | {
            said: mean_and_error(kept[name]) for said, name in names.items()
        }
        gain = np.subtract(kept[best], kept[LOGISTIC])
        out[alpha]["gain"] = mean_and_error(gain)
    return out


def by_level(cells):
    """{level: results of its draws}."""
    out = defaultdict(list)
    for key, result in cells.items():
        out[key.split("/")[0]].append(result)
    return dict(sorted(out.items(), key=lambda pair: float(pair[0])))


def trained(cells):
    """{level: {training: what it keeps}}."""
    return {
        alpha: {
            name: mean_and_error([draw[name] for draw in draws]) for name in draws[0]
        }
        for alpha, draws in by_level(cells).items()
    }


def surrogate(cells):
    """RQ1: correlations over draws, counts over folds."""
    draws = [r for key, r in cells.items() if key.startswith("scores")]
    made = [r for key, r in cells.items() if key.startswith("claims")]
    out = {"scores": {}, "claims": {}, "draws": len(draws)}
    for name in draws[0] if draws else ():
        numbers = np.array([draw[name]["numbers"] for draw in draws], dtype=float)
        ranges = np.array([draw[name]["agreement"] for draw in draws])
        found = [mean_and_error(column) for column in numbers.T]
        lowest, highest = float(ranges[:, 0].min()), float(ranges[:, 1].max())
        out["scores"][name] = {"numbers": found, "agreement": [lowest, highest]}
    for alpha in made[0] if made else ():
        counts = {
            name: np.sum([fold[alpha][name] for fold in made], axis=0).tolist()
            for name in made[0][alpha]
        }
        out["claims"][alpha] = counts | {"folds": len(made)}
    return out


# Running


class Run:
    """Cells by part, and the seconds that they took."""

    def __init__(self, chosen):
        self.chosen, self.seconds = chosen, {}

    def __call__(self, name, made):
        """{key: result} of the cells of a part that are there."""
        chosen = self.chosen
        begin = chosen.begin and wanted(name, chosen)
        cells = {key: (timed, arguments) for key, arguments in made}
        found = compute(chosen.output, f"paper-{name}", cells, chosen.jobs, begin)
        found = {key: cell for key, cell in found.items() if cell is not None}
        spent = sum(cell["seconds"] for cell in found.values())
        self.seconds[name] = [round(spent, 1), len(found), len(cells)]
        return {key: cell["result"] for key, cell in found.items()}


def gathered(run):
    """Compute what is missing, part by part; results of all that is there."""
    out = {}
    main = {kind: run(f"main-{kind}", main_cells(kind, None)) for kind in PROBLEMS}
    out["real-math"] = compared(run("real-math", math_cells()))
    out["real-felm"] = compared(run("real-felm", felm_cells()))
    out["luck"] = run("luck", luck_cells())
    out["surrogate"] = surrogate(run("surrogate", surrogate_cells()))
    for kind in PROBLEMS:
        made = drawn_cells(kind, ALPHAS[kind], SEARCHES, searched_filters)
        found = run(f"search-{kind}", made)
        best = out[f"search-{kind}"] = searched(kind, found)
        settings = {float(a): row["settings"] for a, row in best.items()}
        if len(found) == len(ALPHAS[kind]) * SEARCHES:  # those of every level are known
            again = main_cells(kind, settings)
            again = ((key, what) for key, what in again if key.startswith(SEARCHED))
            main[kind] |= run(f"searched-{kind}", again)
        out[kind] = compared(main[kind])
        made = main_cells(kind, None, shares=(0.7,))
        out[f"{kind}, leave-one-out"] = compared(run(f"equal-{kind}", made))
    for kind in PROBLEMS:
        made = drawn_cells(kind, TRAINING_LEVELS, TRAININGS, trained_filters)
        out[f"training-{kind}"] = trained(run(f"training-{kind}", made))
    out["seconds"] = run.seconds
    out["many"] = MANY
    out["tried"] = {"settings": TRIED, "draws": SEARCHES, "judged": JUDGED}
    return out


def short(text):
    """A number with as many digits as anybody reads."""
    return float(f"{float(text):.{DIGITS}g}")


def main(chosen):
    """Compute what is missing. The results are saved once they are complete."""
    fetch_coherent_math(), fetch_felm()  # if they are not to be had, it is said at once
    chosen.begin = False
    run = Run(chosen)
    if chosen.only:
        gathered(run)  # finds the names of the parts, but computes nothing
        for name in chosen.only:
            if name.removeprefix("paper-") not in run.seconds:
                raise SystemExit(
                    f"--only must be in {sorted(run.seconds)}, got {name!r}"
                )
    chosen.begin = True
    results = json.loads(json.dumps(gathered(run)), parse_float=short)
    missing = sum(total - done for _, done, total in run.seconds.values())
    if missing:
        print(f"{missing} cells are left")
    else:
        write("paper", chosen, results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel cells")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder for the results"
    )
    parser.add_argument("--only", nargs="+", help="names of the parts to run")
    main(parser.parse_args())
