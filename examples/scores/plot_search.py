"""
Choosing settings without losing the guarantee
==============================================

A search tries settings and takes those that keep most. Problems that helped to choose
cannot calibrate any more: they make what was chosen look better than it is.
"""

# %%
# What goes wrong
# ---------------
# An extreme case shows it best: problems with one claim each, and 20 features of which
# none knows anything. Whichever one is chosen, it was chosen for the luck that it had on
# these very problems. ``search.fit`` calibrates on the same problems, and its threshold
# takes the luck for skill.

import numpy as np
from sklearn.model_selection import GridSearchCV

from skdcf import HardCF
from skdcf.evaluation import CalibratedSearch
from skdcf.metrics import coverage_score

rng = np.random.default_rng(0)


def draw(n):
    """Features and labels that have nothing to do with each other."""
    return rng.normal(size=(n, 20)), rng.random(n) < 0.5


search = GridSearchCV(HardCF(alpha=0.1), {"scorer": list(range(20))}, cv=3)
coverage = {"GridSearchCV": [], "CalibratedSearch": []}
for seed in range(20):
    X, y = draw(60)
    X_new, y_new = draw(2000)
    fitted = {
        "GridSearchCV": search.fit(X, y),
        "CalibratedSearch": CalibratedSearch(search, random_state=seed).fit(X, y),
    }
    for name, cf in fitted.items():
        coverage[name].append(coverage_score(y_new, cf.predict(X_new)))

for name, values in coverage.items():
    print(f"{name}: mean coverage {np.mean(values):.3f}, promised 0.900")

# %%
# `~skdcf.evaluation.CalibratedSearch` sets problems aside before the search begins, and
# calibrates on them afterwards. With so few of them the coverage varies a lot from draw
# to draw; its mean is what is promised.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for height, values in enumerate(coverage.values()):
    ax.plot(values, np.full(20, height), "o", alpha=0.5)
    ax.plot(np.mean(values), height, "k|", ms=24)
ax.axvline(0.9, color="k", ls="--", lw=1)
ax.set(yticks=[0, 1], yticklabels=list(coverage), ylim=(-0.5, 1.5), xlabel="coverage")

# %%
# The valid way
# -------------
# Real features, and settings of a classifier. What chooses among features belongs *into*
# the classifier, as here, or into the filter as ``features=``: it is then trained on training
# problems only. Names of nested settings are those of scikit-learn.

from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf.datasets import make_reasoning_graphs
from skdcf.metrics import evaluate_filter

graphs, labels = make_reasoning_graphs(1600, random_state=3, return_X_y=True)
known, y_known = graphs[:600], labels[:600]
new, y_new = graphs[600:], labels[600:]

classifier = make_pipeline(
    StandardScaler(), SelectKBest(), LogisticRegression(max_iter=1000)
)
settings = {
    "scorer__selectkbest__k": [2, 5, 20],
    "scorer__logisticregression__C": [0.01, 1.0],
}
search = GridSearchCV(HardCF(classifier, alpha=0.1, random_state=0), settings, cv=3)
cf = CalibratedSearch(search, random_state=0).fit(known, y_known)
print(cf.best_params_)
print(f"{cf.best_estimator_.n_calibration_} of 600 problems calibrated")

# %%
# It is used like the best filter, which was trained on all problems that the search saw and
# is ``best_estimator_``. The fitted search is ``search_``, for its ``cv_results_``. Settings
# that change the promise are refused: a filter that promises less always keeps more.

import textwrap

try:
    CalibratedSearch(GridSearchCV(HardCF(), {"alpha": [0.1, 0.2]})).fit(known, y_known)
except ValueError as error:
    print(textwrap.fill(str(error), 88), "\n")

print(evaluate_filter(cf, new, y_new, alphas=[0.05, 0.1, 0.2]))
