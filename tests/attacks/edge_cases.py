"""The guarantee at its edges: what users do, and what it does to the coverage.

    python tests/attacks/edge_cases.py [--scale S]

Each case is a way in which the guarantee was once lost, or still is where the filter
cannot see what was done before it. All is drawn from known distributions, alpha is 0.1,
and where it matters each problem is filtered by itself, as answers come in.

A line is "ok" if its coverage is at least 0.9, or below it by no more than two standard
errors; "void" marks what nobody should do, and what to do instead stands below it.
It takes some six minutes of one core.
"""

import argparse
import time
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.evaluation import CalibratedSearch
from skdcf.exceptions import GuaranteeWarning

TARGET = 0.9
N_FEATURES = 20


# Exact copies of one problem, whose second claim was false in 60 of 60 of them. Whatever
# the scorer says, that claim may not be kept of one copy more.


class Float32Network:
    """A small network, as a scorer that was trained elsewhere."""

    def __init__(self, rng):
        sizes = (N_FEATURES, 32, 32, 1)
        self.weights = [
            (rng.normal(size=shape) / shape[0] ** 0.5).astype(np.float32)
            for shape in pairwise(sizes)
        ]

    def __call__(self, batch):
        """Confidences of the claims of a batch."""
        out = batch.features.astype(np.float32)
        for weights in self.weights[:-1]:
            out = np.tanh(out @ weights)
        return (out @ self.weights[-1])[:, 0]


def copy_kept_by_network(rng):
    """Whether the false claim of a copy is kept; a float32 network scores."""
    problem = rng.normal(size=(3, N_FEATURES))

    def copies(n):
        return GraphBatch.from_arrays(np.tile(problem, (n, 1)), 3 * np.arange(n + 1))

    cf = HardCF(Float32Network(rng)).fit(copies(60), [[1, 0, 1]] * 60)
    return cf.predict(copies(1))[0][1]


def copy_kept_behind_pca(rng, ties="exclude", dtype=np.float64):
    """Whether a false claim of a copy is kept; its feature comes from a PCA."""
    elsewhere = rng.normal(size=(100, N_FEATURES)).astype(dtype)
    copies = np.tile(rng.normal(size=N_FEATURES).astype(dtype), (60, 1))
    steps = FrozenEstimator(PCA().fit(elsewhere)), HardCF(0, ties=ties, random_state=0)
    return make_pipeline(*steps).fit(copies, [[0]] * 60).predict(copies[:1])[0]


# Coverage, of one draw of calibration problems each.


def jitter_behind_pca(rng, n=60, n_distinct=4):
    """Few distinct problems with a claim each, half of them false; ties jittered."""
    problems = rng.normal(size=(n_distinct, N_FEATURES))
    true = np.arange(n_distinct) % 2 == 1
    chance = rng.dirichlet(np.ones(n_distinct))
    pca = FrozenEstimator(PCA().fit(rng.normal(size=(100, N_FEATURES))))
    rows = rng.choice(n_distinct, size=n, p=chance)
    cf = make_pipeline(pca, HardCF(0, ties="jitter", random_state=0))
    cf.fit(problems[rows], [[label] for label in true[rows]])
    return 1 - chance[one_by_one(cf, problems) & ~true].sum()


def rank_deficient_pca(rng, make, n=100, rank=3):
    """Twenty features of rank three; ``make`` has all components of their PCA used."""
    mixing = rng.normal(size=(rank, N_FEATURES))
    weights = rng.normal(size=rank)

    def draw():
        hidden = rng.normal(size=(n, rank))
        return hidden @ mixing, rng.random(n) < 1 / (1 + np.exp(-3 * hidden @ weights))

    X, true = draw()
    try:
        cf = make(X).fit(X, true)
    except ValueError:
        return np.nan
    X, true = draw()
    return 1 - np.mean(one_by_one(cf, X) & ~true)


def pca_first(X):
    """The filter standardises the components by itself."""
    return make_pipeline(FrozenEstimator(PCA().fit(X)), HardCF(random_state=0))


def pca_scaled_first(X):
    """Rounding noise has unit deviation when the filter gets to see it."""
    steps = make_pipeline(PCA(), StandardScaler()).fit(X)
    return make_pipeline(FrozenEstimator(steps), HardCF(random_state=0))


def pca_inside(X):
    """The filter sees what the noise does to the scores."""
    classifier = make_pipeline(PCA(), StandardScaler(), LogisticRegression())
    return HardCF(classifier, random_state=0)


def clip_at_batch_quantile(rng, n=100):
    """A scorer that looks at the other problems of its batch; nan where refused."""
    X, true = table(rng, n, 1, 0.3)
    try:
        cf = HardCF(lambda batch: clipped(batch.features[:, 0])).fit(X, true)
    except ValueError:
        return np.nan
    X, true = table(rng, n, 1, 0.3)
    return 1 - np.mean(one_by_one(cf, X) & ~true)


def clipped(values):
    """Values up to what seven tenths of them do not exceed."""
    return np.minimum(values, np.quantile(values, 0.7))


class Bent(BaseEstimator):
    """A linear model, and its square at some share."""

    def __init__(self, bend=0.0):
        self.bend = bend

    def init(self, n_features, rng):
        """Small random weights."""
        return rng.normal(scale=0.1, size=n_features)

    def __call__(self, params, X):
        """Confidences."""
        linear = X @ params
        return linear + self.bend * linear**2


def set_after_fit(rng):
    """A model is set anew after the fit, through another filter that shares it."""
    X, true = table(rng, 300, 2, 1.0)
    model = Bent()
    cf = CoherentConformalFilter(model, random_state=0).fit(X, true)
    CoherentConformalFilter(model).set_params(scorer__bend=0.5)
    return coverage(cf, rng, 2, 1.0)


def choose_among_noise(rng, n, valid):
    """The best of 100 features, none of which knows anything."""
    X, true = table(rng, n, 100, 0.0)
    search = GridSearchCV(HardCF(), {"scorer": list(range(100))}, cv=3)
    cf = (
        CalibratedSearch(search, calibration_size=0.3, random_state=0).fit(X, true)
        if valid
        else search.fit(X, true)
    )
    return coverage(cf, rng, 100, 0.0)


def before_the_filter(rng, step, scorer):
    """A step that has seen the labels of the calibration problems, and hides it."""
    X, true = table(rng, 100, 50, 0.5)
    step = FrozenEstimator(clone(step).fit(X, true))
    cf = make_pipeline(step, HardCF(scorer, random_state=0)).fit(X, true)
    return coverage(cf, rng, 50, 0.5)


def inside_the_classifier(rng, classifier):
    """The same step as a part of what is trained on training problems alone."""
    X, true = table(rng, 100, 50, 0.5)
    return coverage(HardCF(classifier, random_state=0).fit(X, true), rng, 50, 0.5)


def table(rng, n, n_features, strength):
    """Problems with one claim each, whose truth depends on the first feature only."""
    X = rng.normal(size=(n, n_features))
    return X, rng.random(n) < 1 / (1 + np.exp(-strength * X[:, 0]))


def coverage(cf, rng, n_features, strength):
    """Of 2,000 new problems."""
    X, true = table(rng, 2000, n_features, strength)
    return 1 - np.mean(cf.predict(X) & ~true)


def one_by_one(cf, X):
    """What is kept of each row where it comes alone."""
    return np.array([cf.predict(row[None])[0] for row in X])


# The problems of the fit.


def calibrate_on_training(rng, groups=None, new=False):
    """The problems of the fit calibrate; nan where that is refused."""
    X, true = table(rng, 100, 20, 1.0)
    cf = HardCF(LinearDiscriminantAnalysis(), random_state=0).fit(X, true, groups)
    X, true = table(rng, 100, 20, 1.0) if new else (X, true)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        try:
            cf.calibrate(X, true, groups)
        except ValueError:
            return np.nan
    return coverage(cf, rng, 20, 1.0)


BEST_FIVE = SelectKBest(k=5)

# What, the number of draws, a function of a random generator.
COPIES = [
    ("float32 network", copy_kept_by_network),
    ("feature behind a PCA", copy_kept_behind_pca),
    (
        "the same, ties jittered",
        partial(copy_kept_behind_pca, ties="jitter"),
    ),
    (
        "feature behind a PCA in float32",
        partial(copy_kept_behind_pca, dtype=np.float32),
    ),
]
COVERAGES = [
    ("jittered ties behind a PCA", 200, jitter_behind_pca),
    (
        "all components of a rank-deficient PCA",
        60,
        partial(rank_deficient_pca, make=pca_first),
    ),
    (
        "void: their noise scaled up",
        60,
        partial(rank_deficient_pca, make=pca_scaled_first),
    ),
    (
        "  PCA and scaling in the classifier",
        60,
        partial(rank_deficient_pca, make=pca_inside),
    ),
    (
        "clipped at a quantile of the batch",
        100,
        clip_at_batch_quantile,
    ),
    ("model set anew after fit", 50, set_after_fit),
    (
        "void: GridSearchCV.fit, n = 50",
        12,
        partial(choose_among_noise, n=50, valid=False),
    ),
    ("  CalibratedSearch", 16, partial(choose_among_noise, n=50, valid=True)),
    (
        "void: GridSearchCV.fit, n = 300",
        12,
        partial(choose_among_noise, n=300, valid=False),
    ),
    ("  CalibratedSearch", 60, partial(choose_among_noise, n=300, valid=True)),
    (
        "void: LDA, frozen, before the filter",
        200,
        partial(before_the_filter, step=LinearDiscriminantAnalysis(), scorer=0),
    ),
    (
        "  LDA as the classifier",
        200,
        partial(inside_the_classifier, classifier=LinearDiscriminantAnalysis()),
    ),
    (
        "void: SelectKBest, frozen, before it",
        200,
        partial(before_the_filter, step=BEST_FIVE, scorer=LogisticRegression()),
    ),
    (
        "  SelectKBest in the classifier",
        200,
        partial(
            inside_the_classifier,
            classifier=make_pipeline(BEST_FIVE, LogisticRegression()),
        ),
    ),
]
REUSES = [
    (
        "the file of fit calibrates, with groups",
        partial(calibrate_on_training, groups=np.arange(100)),
    ),
    ("void: the same without, a warning", calibrate_on_training),
    ("  other problems", partial(calibrate_on_training, new=True)),
]


def draws(function, n):
    """Results for n generators, always the same ones."""
    return np.array([function(np.random.default_rng(seed)) for seed in range(n)])


def verdict(what, values):
    """Coverage, its standard error and whether that is as promised, as text."""
    refused = np.isnan(values)
    if refused.all():
        return f"{f'all {len(values)} refused':16}  ok"
    values = values[~refused]
    mean, error = values.mean(), values.std(ddof=1) / len(values) ** 0.5
    good = "ok" if mean >= TARGET - 2 * error else "LOW"
    good = "void" if what.startswith("void") else good
    passed = f" ({refused.sum()} refused)" if refused.any() else ""
    return f"{mean:.3f} +- {error:.3f}    {good}{passed}"


def main(scale):
    """Print the tables."""
    start = time.process_time()
    print("A claim that was false in 60 of 60 calibration problems, in an exact copy")
    print(f"{'':40}{'kept':12}safe")
    for what, function in COPIES:
        kept = draws(function, max(2, round(200 * scale)))
        n = len(kept)
        row = f"{kept.sum()} of {n}"
        print(f"{what:40}{row:12}{n - kept.sum()} of {n}", flush=True)
    made = [(what, 200, function) for what, function in REUSES]
    for title, rows in (("decided before", COVERAGES), ("used in training", made)):
        print(f"\nCoverage, promised {TARGET}: what was {title}")
        for what, n, function in rows:
            values = draws(function, max(2, round(n * scale)))
            print(f"{what:40}{verdict(what, values)}", flush=True)
    print(f"\n{time.process_time() - start:.0f} s of one core")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the draws")
    main(parser.parse_args().scale)
