"""
Your own scorer against the paper's
===================================

After this example you can use your own scorer, a function or a class with two methods, and
compare it with the methods of the papers. The filter calibrates every scorer on problems that
were not used for its training, and the guarantee holds for any scorer.
"""

# %%
# A function
# ----------
# The function takes a `~skdcf.GraphBatch`, which holds the claims of all problems, and returns
# one number per claim. Higher values mean more confidence. The number must depend only on the
# problem of the claim.

from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(1200, random_state=0, return_X_y=True)
names = list(graphs.feature_names)


def frequency_and_gap(batch):
    """Return the frequency minus twice the size of the inference gap."""
    frequency = batch.features[:, names.index("frequency-score")]
    return frequency - 2 * batch.features[:, names.index("inference_gap_size")]


# %%
# A class
# -------
# A `~skdcf.scorers.Scorer` has ``fit`` and ``confidence``. ``requires_fit = True`` declares that
# the scorer learns, so calibration problems are held out of ``fit``. This scorer starts from a
# classifier and lowers the confidence of a claim if its children have a low confidence.

import numpy as np

from skdcf.scorers import ClassifierScorer, Scorer


class DoubtfulChildren(Scorer):
    """Scorer that combines a claim's confidence with the mean confidence of its children."""

    requires_fit = True

    def __init__(self, share=0.3):
        self.share = share

    def fit(self, batch, labels, task=None):
        self.own_ = ClassifierScorer().fit(batch, labels, task)
        return self

    def confidence(self, batch):
        own, (parent, child) = self.own_.confidence(batch), batch.edges.T
        count = np.bincount(parent, minlength=batch.n_claims)
        total = np.bincount(parent, weights=own[child], minlength=batch.n_claims)
        below = np.where(count > 0, total / np.maximum(count, 1), own)
        return (1 - self.share) * own + self.share * below


# %%
# Compare
# -------
# Two methods of the papers are added: the frequency of a claim among other answers, and a linear
# score that is trained through calibration. A useless score keeps few claims, but its guarantee
# also holds. :ref:`More of these methods <sphx_glr_gallery_scores_plot_paper_comparison.py>` can
# be added in the same way.

from skdcf import CoherentConformalFilter, HardCF
from skdcf.evaluation import compare_filters
from skdcf.plots import ReportDisplay


def worthless(batch):
    """Return numbers that have nothing to do with the truth."""
    return np.sin(1e4 * batch.features.sum(axis=1))


filters = {
    "frequency": HardCF("frequency-score", ties="jitter"),
    "trained linear": CoherentConformalFilter("linear", ties="jitter"),
    "own function": HardCF(frequency_and_gap, ties="jitter"),
    "own class": HardCF(DoubtfulChildren(), ties="jitter"),
    "worthless": HardCF(worthless, ties="jitter"),
}
report = compare_filters(
    filters, graphs, labels, alphas=[0.05, 0.1, 0.2], cv=4, random_state=0
)
print(report)
display = ReportDisplay.from_report(report)

# %%
# You can search the parameters of a scorer like those of any estimator:

from sklearn.model_selection import GridSearchCV

from skdcf.evaluation import CalibratedSearch

search = GridSearchCV(HardCF(DoubtfulChildren()), {"scorer__share": [0.0, 0.3]}, cv=3)
chosen = CalibratedSearch(search, random_state=0).fit(graphs, labels)
print(chosen.best_params_)
