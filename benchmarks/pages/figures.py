"""Draw the figures of the results page from the saved results."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.methods import AUTO, LINEAR, LOGISTIC
from benchmarks.pages.pooling import human, pooled, ratios
from benchmarks.pages.texts import POOLED, SETS

matplotlib.rcParams |= {
    "svg.hashsalt": "skdcf",  # the same picture from the same numbers
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
STYLE = {
    LOGISTIC: ("#7f7f7f", "s", "logistic regression"),
    LINEAR: ("#e08214", "^", "linear, trained through calibration"),
    AUTO: ("#1b7f5c", "o", "auto"),
}
NO_BAND = (LINEAR,)  # it would hide the others


def series(experiment, name, key="retention"):
    """Means and errors of a filter over the alphas."""
    rows = [row for row in experiment["rows"] if row["filter"] == name]
    return np.array([row[key] for row in rows], dtype=float)


def draw(axes, experiment, name, style, dashes="-"):
    """Retention against alpha, with its corrected error as a band."""
    color, marker, label = style
    alphas = experiment["alphas"]
    mean, error = (
        series(experiment, name, key) for key in ("retention", "retention_error")
    )
    axes.plot(alphas, mean, dashes, color=color, marker=marker, ms=4, label=label)
    if name not in NO_BAND:
        low = np.maximum(mean - error, 0)
        axes.fill_between(alphas, low, mean + error, color=color, alpha=0.15, lw=0)


def finish(axes, title, alphas):
    """Labels of a panel, with alpha on a logarithmic axis."""
    axes.set_xscale("log")
    axes.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
    axes.minorticks_off()
    axes.set_xlabel("alpha")
    axes.set_ylim(bottom=0)
    axes.set_title(title, fontsize=10)


def retention(results):
    """Planted and natural errors; natural ones with other answers as well."""
    panels = {
        "prmbench": "PRMBench\nerrors planted by a model",
        "process-bench": "ProcessBench (gsm8k)\nnatural errors",
        "gsm8k-solutions": "GSM8K solutions\nnatural errors, derived labels",
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.9))
    for panel, name in zip(axes, panels, strict=True):
        for key in (LOGISTIC, LINEAR, AUTO):
            draw(panel, results[name], key, STYLE[key])
    for key in (LOGISTIC, AUTO):
        color, marker, label = STYLE[key]
        style = color, marker, f"{label}, and three other answers"
        draw(axes[2], results["gsm8k-solutions"], f"{key}, 3 others", style, "--")
    for panel, (name, title) in zip(axes, panels.items(), strict=True):
        finish(panel, title, results[name]["alphas"])
    axes[0].set_ylabel("true claims kept per answer")
    handles, labels = axes[2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=3, frameon=False)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    return figure


def labelled(results):
    """What is kept, and what is gained, by the number of labelled problems."""
    rows = results["labels"]["rows"]
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.7))
    names = {"prmbench": "PRMBench", "gsm8k-solutions": "GSM8K solutions"}
    for panel, (data, title) in zip(axes, names.items(), strict=True):
        for key in (LOGISTIC, AUTO):
            mine = [row for row in rows if (row["data"], row["filter"]) == (data, key)]
            n, mean, error = (
                [row[k] for row in mine] for k in ("n", "retention", "retention_error")
            )
            color, marker, label = STYLE[key]
            more = {"color": color, "marker": marker, "ms": 5, "capsize": 3}
            panel.errorbar(n, mean, np.array(error), label=label, **more)
            if key == LOGISTIC:
                base = mean
        for x, y, up, old in zip(n, mean, error, base, strict=True):
            text = f"{100 * (y / old - 1):+.0f} %" if old else ""
            more = {"ha": "center", "textcoords": "offset points"}
            panel.annotate(text, (x, y + up), (0, 5), **more)
        panel.set_xscale("log")
        panel.set_xticks(n, [str(size) for size in n])
        panel.set_xlim(0.7 * n[0], 1.4 * n[-1])
        panel.minorticks_off()
        panel.set_ylim(0, 1.15 * panel.get_ylim()[1])
        panel.set_xlabel("labelled problems (to train and to calibrate)")
        panel.set_title(f"{title}, alpha = 0.05", fontsize=10)
    axes[0].set_ylabel("true claims kept per answer")
    axes[0].legend(loc="lower right", frameon=False)
    figure.tight_layout()
    return figure


TIMES = (0.5, 0.75, 1, 1.5, 2, 3, 5)
WIDEST = np.log([0.45, 6])


def forest(results):
    """Times as many true claims as the regression keeps: a row a set, the mean below."""
    names, means = human(results), pooled(results)
    figure, axes = plt.subplots(
        1, 4, figsize=(11, 0.38 * len(names) + 1.7), sharey=True
    )
    for panel, alpha in zip(axes, POOLED, strict=True):
        for name, (ratio, error) in ratios(results, alpha).items():
            row = names.index(name)
            ends = np.array([ratio - 2 * error, ratio + 2 * error])
            low, high = np.clip(ends, *WIDEST)
            panel.plot([low, high], [row, row], color="#7f7f7f", lw=1.2)
            for end, edge, mark in zip(ends, WIDEST, "<>", strict=True):
                if np.clip(end, *WIDEST) != end:
                    panel.plot(edge, row, mark, color="#7f7f7f", ms=5, clip_on=False)
            panel.plot(np.clip(ratio, *WIDEST), row, "s", color="#1b7f5c", ms=5)
        if alpha in means:
            mean, error, row = means[alpha].mean, means[alpha].error, len(names) + 0.3
            across = mean + 2 * error * np.array([-1, 0, 1, 0])
            up = row + np.array([0, 0.28, 0, -0.28])
            panel.fill(across, up, color="#e08214")
            text = f"{100 * np.expm1(mean):+.0f} ± {100 * np.exp(mean) * error:.0f} %"
            more = {"textcoords": "offset points", "ha": "left", "va": "center"}
            panel.annotate(text, (across[2], row), (6, 0), fontsize=9, **more)
        panel.axvline(0, color="black", lw=0.8)
        panel.set_xlim(*WIDEST)
        panel.set_xticks(np.log(TIMES), [f"{x:g}" for x in TIMES], fontsize=8)
        panel.set_title(f"alpha = {alpha:g}", fontsize=10)
    labels = [SETS[name][0].partition(",")[0] for name in names]
    axes[0].set_yticks([*range(len(names)), len(names) + 0.3], [*labels, "all sets"])
    axes[0].invert_yaxis()
    figure.supxlabel(
        "true claims kept by auto, times those of the regression", fontsize=10
    )
    figure.tight_layout()
    return figure


FIGURES = {"forest": forest, "retention": retention, "labelled": labelled}


def save_all(results, folder):
    """Draw every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        figure = make(results)
        figure.savefig(folder / f"results_{name}.svg", metadata={"Date": None})
        plt.close(figure)
