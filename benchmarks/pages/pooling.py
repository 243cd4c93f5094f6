"""Estimate a common mean of several data sets that differ by more than chance.

    DerSimonian and Laird, Controlled Clinical Trials 7, 1986.

The effect of set i is y_i with standard error s_i. With w_i = 1 / s_i^2 and the fixed mean
m = sum w y / sum w, Cochran's Q = sum w (y - m)^2 has the mean k - 1 where all sets have one
effect. What is above it is the variance tau^2 between sets, of which each set then gets the
weight 1 / (s_i^2 + tau^2).
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from benchmarks.methods import AUTO, LOGISTIC
from benchmarks.pages.texts import PEOPLE, POOLED, SETS


class Pooled(NamedTuple):
    """A mean over sets, and how much they differ."""

    mean: float
    error: float
    p_value: float  # of no effect
    tau: float  # standard deviation of effects between sets
    share: float  # I^2, the part of the variance that is no chance
    p_same: float  # of one effect in all sets
    n_sets: int


def random_effects(effects, errors):
    """Pool effects with their standard errors, by DerSimonian and Laird.

    Parameters
    ----------
    effects, errors : array-like of shape (n_sets,)

    Returns
    -------
    Pooled
    """
    effects, errors = np.asarray(effects, float), np.asarray(errors, float)
    n_sets = len(effects)
    weights = errors**-2
    fixed = weights @ effects / weights.sum()
    q = weights @ (effects - fixed) ** 2
    scale = weights.sum() - weights @ weights / weights.sum()
    between = max(0.0, (q - (n_sets - 1)) / scale) if n_sets > 1 else 0.0
    weights = 1 / (errors**2 + between)
    mean, error = weights @ effects / weights.sum(), weights.sum() ** -0.5
    return Pooled(
        mean=float(mean),
        error=float(error),
        p_value=float(2 * norm.sf(abs(mean) / error)),
        tau=float(np.sqrt(between)),
        share=float(max(0.0, 1 - (n_sets - 1) / q)) if q > 0 else 0.0,
        p_same=float(chi2.sf(q, n_sets - 1)) if n_sets > 1 else np.nan,
        n_sets=n_sets,
    )


def human(results):
    """The sets whose natural errors were judged by people, the largest first."""
    names = [
        name
        for name, (_, who, errors) in SETS.items()
        if name in results and who.startswith(PEOPLE) and errors == "natural"
    ]
    size = {name: results[name]["data"]["n_problems"] for name in names}
    return sorted(names, key=size.__getitem__, reverse=True)


def ratios(results, alpha):
    """{set: (log ratio, its error)} of the default against the regression at one level.

    A set in which either keeps nothing at that level has no ratio.
    """
    found = {}
    for name in human(results):
        for row in results[name]["differences"]:
            pair = row["filter"], row["reference"], row["alpha"]
            log_ratio, error = row.get("log_ratio"), row.get("log_ratio_error")
            if pair == (AUTO, LOGISTIC, alpha) and log_ratio is not None and error:
                found[name] = log_ratio, error
    return found


def pooled(results):
    """{level: the mean over the sets}; empty where the files hold no ratios."""
    of = {alpha: ratios(results, alpha) for alpha in POOLED}
    return {
        alpha: random_effects(*zip(*found.values(), strict=True))
        for alpha, found in of.items()
        if len(found) > 1
    }
