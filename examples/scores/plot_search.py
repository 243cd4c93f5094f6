"""
Search for settings without losing the guarantee
================================================

A search evaluates settings and selects those that keep the most true claims. The problems used in
the search must not be used for calibration, because the selected settings look better on them
than on new problems.
"""

# %%
# An invalid search
# -----------------
# Consider an extreme case with one claim per problem and 20 uninformative features. The search
# selects the feature that fits these problems best by chance. ``search.fit`` then calibrates on
# the same problems, so its threshold is too high.

import numpy as np
from sklearn.model_selection import GridSearchCV

from skdcf import HardCF
from skdcf.evaluation import CalibratedSearch, coverage_score

rng = np.random.default_rng(0)


def draw(n):
    """Return independent features and labels."""
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
    print(f"{name}: mean coverage {np.mean(values):.3f}, guaranteed 0.900")

# %%
# `~skdcf.evaluation.CalibratedSearch` holds out problems before the search and calibrates on them
# afterwards. With so few calibration problems, the coverage varies widely between draws, and the
# guarantee concerns its mean.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for height, values in enumerate(coverage.values()):
    ax.plot(values, np.full(20, height), "o", alpha=0.5)
    ax.plot(np.mean(values), height, "k|", ms=24)
ax.axvline(0.9, color="k", ls="--", lw=1)
ax.set(yticks=[0, 1], yticklabels=list(coverage), ylim=(-0.5, 1.5), xlabel="coverage")

# %%
# A valid search
# --------------
# The next search varies the settings of a classifier on informative features. Put a feature
# selection *into* the classifier, as in this example, or pass it to the filter as ``features=``,
# so it is fitted on training problems only. Nested parameters are named as in scikit-learn.

from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import evaluate_filter

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
# The fitted object works like the best filter, ``best_estimator_``, which was trained on all
# problems of the search. The attribute ``search_`` is the fitted search with its ``cv_results_``.
# Parameters that change the guarantee raise an error, because a filter with a weaker guarantee
# always keeps more claims.

import textwrap

try:
    CalibratedSearch(GridSearchCV(HardCF(), {"alpha": [0.1, 0.2]})).fit(known, y_known)
except ValueError as error:
    print(textwrap.fill(str(error), 88), "\n")

print(evaluate_filter(cf, new, y_new, alphas=[0.05, 0.1, 0.2]))
