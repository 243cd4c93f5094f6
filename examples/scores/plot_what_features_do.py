"""
What features do
================

A trained score mixes many features. Which of them carry it? Would one alone do? All
answers of this page are generated, so that it runs anywhere.
"""

# %%
# One answer, explained claim by claim
# ------------------------------------
# A filter of word problems, by what other answers to the same question say.
# `skdcf.inspection.explain` says of each dropped claim which claim decided, and from which
# alpha on it would be kept. Labels, where there are some, mark what is false; the filter
# does not see them.

from skdcf import CoherentConformalFilter
from skdcf.datasets import make_word_problems
from skdcf.features import AgreementFeatures
from skdcf.inspection import explain

answers, truth = make_word_problems(400, random_state=0, return_X_y=True)
reader = CoherentConformalFilter(
    "linear", features=AgreementFeatures(), alpha=0.1, random_state=0
).fit(answers[:300], truth[:300])
explained = explain(reader, answers[324], truth[324])
explained

# %%
# The score of this filter is a weighted sum, so that each confidence can be taken apart.
# Here is that of the claim that was dropped first.

explained.contributions(4)

# %%
# The rest of this page is about problems without texts, whose features are those of the
# paper.

from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(700, random_state=0, return_X_y=True)
train, new = (graphs[:350], labels[:350]), (graphs[350:], labels[350:])
linear = CoherentConformalFilter("linear", alpha=0.05, random_state=0).fit(*train)

# %%
# Shapley values
# --------------
# Against an average claim, what does each feature add? For a linear score this is exact:
# weight times the distance from the mean. The bars are means of
# absolute values, and the lines on them deviations.

from skdcf.inspection import shap_values
from skdcf.plots import ImportanceDisplay

ImportanceDisplay.from_report(shap_values(linear, new[0]))

# %%
# One model may be an accident. The paper pools the values of 40: eight levels, and five
# splits into problems that train and problems that do not.

from skdcf.evaluation import fit_levels

levels = [0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10]
some = graphs[:200], labels[:200]
models = []
for seed in range(5):
    one = CoherentConformalFilter("linear", calibration_size=0.2, random_state=seed)
    models += fit_levels(one, *some, levels).values()
ImportanceDisplay.from_report(shap_values(models, some[0]))

# %%
# Scores that are no sum
# ----------------------
# The default scorer, "stack", is not linear. What hangs on a feature is measured there by
# shuffling it among the claims: how many true claims fewer are kept, at the same promise?

stack = CoherentConformalFilter(alpha=0.05, random_state=0).fit(*train)
part = graphs[350:500], labels[350:500]
ImportanceDisplay.from_estimator(stack, *part, n_repeats=2, random_state=0)

# %%
# One feature alone
# -----------------
# The paper's ablation: coherent filters that know one feature, mixed with that of the
# claims below in the best proportion, against all features together.

from skdcf.inspection import single_feature_ablation
from skdcf.plots import ReportDisplay

features = {
    "reachability": "nx_reachability",
    "claim index": "claim_index",
    "frequency": "frequency-score",
}
ablation = single_feature_ablation(
    {"all features": CoherentConformalFilter("linear")},
    graphs[:400],
    labels[:400],
    [0.03, 0.06, 0.1],
    features,
    beta_mix=[0, 0.5, 1],
    cv=3,
    random_state=0,
)
ReportDisplay.from_report(ablation)

# %%
# Are true and false claims far apart?
# ------------------------------------
# Less than one might think, and it matters less too: what a filter keeps is decided by the
# few false claims with the best scores.

from skdcf import HardCF
from skdcf.plots import ScoreDistributionDisplay

frequency = HardCF("frequency-score", alpha=0.05).fit(*train)
ScoreDistributionDisplay.from_estimator(
    {"frequency": frequency, "linear": linear}, *new
)
