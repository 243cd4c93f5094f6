"""
Importance of features
======================

A trained score combines many features. This example measures the contribution of each feature and
compares the score with single features. All answers are generated.
"""

# %%
# One answer, explained claim by claim
# ------------------------------------
# This filter of word problems uses the agreement with other answers to the same question. For
# each dropped claim, `skdcf.inspection.explain` shows the decisive claim and the smallest alpha
# at which the dropped claim would be kept. Labels are optional and mark false claims. The filter
# does not use them.

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
# The log odds of a claim are a weighted sum of the features, so each feature contributes a part,
# measured relative to an average claim. These are the largest contributions for the first dropped
# claim.

from skdcf.inspection import shap_values

shap = shap_values(reader, answers[300:])
claim = answers[300:].offsets[24] + 4
for column in abs(shap.values[claim]).argsort()[:-5:-1]:
    print(f"{shap.feature_names[column]:<30} {shap.values[claim, column]:+.3f}")

# %%
# The rest of this example uses problems without texts and with the features of the paper.

from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(700, random_state=0, return_X_y=True)
train, new = (graphs[:350], labels[:350]), (graphs[350:], labels[350:])
linear = CoherentConformalFilter("linear", alpha=0.05, random_state=0).fit(*train)

# %%
# Shapley values
# --------------
# A Shapley value is the contribution of a feature relative to an average claim. For a linear
# score, it is exactly the weight times the difference from the mean. The bars show means of
# absolute values, and the lines show standard deviations.

from skdcf.plots import ImportanceDisplay

ImportanceDisplay.from_report(shap_values(linear, new[0]))

# %%
# The values of a single model vary by chance. The paper pools the values of 40 models, with eight
# levels and five random splits into training and other problems.

levels = [0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10]
some = graphs[:200], labels[:200]
models = []
for seed in range(5):
    for level in levels:
        one = CoherentConformalFilter("linear", alpha=level, random_state=seed)
        models.append(one.set_params(calibration_size=0.2).fit(*some))
ImportanceDisplay.from_report(shap_values(models, some[0]))

# %%
# Any score
# ---------
# To measure the importance of a feature for any scorer, shuffle it among the claims and count the
# true claims lost at the same guarantee.

default = CoherentConformalFilter(alpha=0.05, random_state=0).fit(*train)
part = graphs[350:500], labels[350:500]
ImportanceDisplay.from_estimator(default, *part, n_repeats=2, random_state=0)

# %%
# One feature alone
# -----------------
# The ablation of the paper compares all features together with coherent filters of a single
# feature. Each of these filters mixes the feature of a claim with that of its descendants.

from skdcf import SingleFeatureCF
from skdcf.evaluation import compare_filters
from skdcf.plots import ReportDisplay

filters = {"all features": CoherentConformalFilter("linear")}
for feature in ["nx_reachability", "claim_index", "frequency-score"]:
    filters[feature] = SingleFeatureCF(feature, ties="jitter")
ablation = compare_filters(
    filters, graphs[:400], labels[:400], [0.03, 0.06, 0.1], cv=3, random_state=0
)
ReportDisplay.from_report(ablation)

# %%
# Separation of true and false claims
# -----------------------------------
# The scores of true and false claims overlap widely. This overlap matters less than it seems,
# because the number of kept claims depends only on the few false claims with the best scores.

from skdcf import HardCF
from skdcf.plots import ScoreDistributionDisplay

frequency = HardCF("frequency-score", alpha=0.05).fit(*train)
ScoreDistributionDisplay.from_estimator(
    {"frequency": frequency, "linear": linear}, *new
)
