"""Texts of the results page. The numbers are filled in from the saved results."""

from benchmarks.methods import AUTO, LOGISTIC, MARGIN, OWN_SCORE, PUBLISHED

HEAD = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Results
======="""

IN_SHORT = """\
In short
--------

The table shows the change in the number of true claims kept per answer, in percent. Each row
compares the scorer ``auto`` with logistic regression unless the row states otherwise."""

POOLED = (0.02, 0.05, 0.1, 0.2)

PEOPLE = ("people", "three people")

POOLED_ROW = "**mean of the {n} sets judged by people**"

AT_ONE_LEVEL = (
    "kept at {alpha:g}",
    "shown, %",
    "false among shown, %",
)

POOLING = """\
The last row and the next figure combine the {n} data sets with natural errors judged by people. The
effect for a data set is the logarithm of the ratio between the number of true claims kept by
``auto`` and the number kept by the regression. The effects are combined by a random-effects mean
(DerSimonian and Laird, 1986; ``benchmarks/pages/pooling.py``). A data set is excluded at the levels
at which ``auto`` or the regression keeps no claims."""

CHOSEN = """\
``auto`` was selected from about ninety variants. These variants differed in the gain
exponent, the mixture components and the labels of claims that depend on an error. The variants were
compared on QAGS CNN/DM, RefChecker, FELM, PERL, ProcessBench gsm8k and three subjects of Mr-Ben.
Some of the variants were also compared on GSM8K solutions and ProcessBench math. The gains of
``auto`` on the data sets of this comparison are therefore optimistically biased. QAGS XSum,
PRMBench and Conformal-RAG were not used to select ``auto``, but PRMBench was used to select earlier
versions of the scorer.
"""

DEFAULT = """\
The default scorer of this version, "linear", is compared on ten published data sets with the start
of its own training, with a logistic regression that has the same price, with the same regression
without a price, and with ``stack``, the default of the commit before, a mixture of several scores.
All of them use the same features and the same splits. Half of the questions are used for training,
and the other half is evaluated leave-one-out. The table shows the change in the share of answers
shown, in percentage points, and in two means over the answers, in percent: the number of true
claims kept, and its square root ("worth"). Errors are one corrected standard error (Nadeau and
Bengio) of the mean over the sets. If some answers may not pass (``show="auto"``), the share is
chosen for each level. The changes for each set are in
``benchmarks/results/default_scorer_sets.txt``. The price and its settings were chosen on these
data sets."""

EVIDENCE_LEVEL = 0.05

EVIDENCE_HEAD = [
    "evidence",
    "true claims kept per answer at 0.05 (without → with this evidence)",
    "shown",
    "errors among shown",
    "model calls per answer",
    "computation or human work per answer",
    "command or key",
]

EVIDENCE = {
    "passages": (
        "the source passages of the answer (QAGS CNN/DM, summaries)",
        "none",
        '`"context": [...]` in each line',
    ),
    "others": (
        "two other answers, compared word by word (Mr-Ben biology)",
        "2",
        "`skdcf extract answers.jsonl -o problems.jsonl --model NAME --samples 2`",
    ),
    "frequency": (
        "frequency of each claim in five other answers (150 answers of conformal factuality)",
        "5 answers, 5 comparisons",
        "`skdcf extract` with `--samples 5 --features frequency`",
    ),
    "check": (
        "one check of a selected claim by a person (ProcessBench math)",
        "none",
        "`skdcf label --review model.skops answers.jsonl`",
    ),
}

README_HEAD = [
    "default / priced regression / regression, alpha = 0.1, half of the answers pass",
    "shown, %",
    "errors among passing, %",
    "true claims kept per answer",
]
README_SCORERS = "default", "priced", "regression"

README_SETS = {
    "felm": "FELM",
    "process-bench-math": "ProcessBench (math)",
    "mr-ben-biology": "Mr-Ben (biology)",
    "refchecker": "RefChecker",
    "qags-cnndm": "QAGS (CNN/DM)",
}

SETS = {
    "qags-cnndm": ("QAGS CNN/DM, 235 summaries", "three people", "natural"),
    "qags-xsum": ("QAGS XSum, 239 summaries", "three people", "natural"),
    "refchecker": ("RefChecker, 1,400 answers as triplets", "people", "natural"),
    "felm": ("FELM, 711 answers, four domains", "people", "natural"),
    "process-bench": ("ProcessBench gsm8k, 400", "people, first error", "natural"),
    "process-bench-math": (
        "ProcessBench math, 1,000",
        "people, first error",
        "natural",
    ),
    "mr-ben": ("Mr-Ben math, 918", "people, first error", "natural"),
    "mr-ben-biology": ("Mr-Ben biology, 1,033", "people, first error", "natural"),
    "mr-ben-chemistry": ("Mr-Ben chemistry, 848", "people, first error", "natural"),
    "perl-natural": ("PERL, 204 answers", "people", "natural"),
    "conformal-rag": (
        "Conformal-RAG, 1,603 medical answers",
        "a language model",
        "natural",
    ),
    "gsm8k-solutions": ("GSM8K solutions, 5,228", "derived from answers", "natural"),
    "prmbench": ("PRMBench, 3,754", "the model that inserted them", "inserted"),
}

WRITTEN = """\
With ``online=True``, the risk of a claim is computed only from the claim itself and the preceding
claims, both in calibration and in production. The filter can therefore keep or drop each claim
while the answer is still being written (:doc:`../guide/deploying`). The program first passes the
claims of random graphs to the filter one by one and compares the decisions with those of
``predict``. It then compares the number of true claims kept by a scorer with a price without
and with ``online=True`` on random splits of the questions. The guarantee holds at each level, both
with and without ``online=True``."""

SUMMARY = """\
Every filter on this page has the same guarantee: with probability at least 1 - alpha, a filtered
answer contains no false claim. The filters differ in the number of true claims kept.

At the commit stated at the end of this page, ``auto`` was the default scorer of
`~skdcf.CoherentConformalFilter`, a mixture of several priced and unpriced scores. The results do
not describe the default of this version (:doc:`../guide/training`). On this page, ``auto`` is
compared with a logistic regression without a price that uses the same columns and the same
calibration. On the {n_sets} data sets with natural errors judged by people, the mean change in
the number of true claims kept at alpha = 0.05 is {mean} % (± standard error). With ``auto``, the
kept claims are distributed over more answers. At alpha = 0.05, {shown:.0f} % of the answers are
shown with ``auto``, and {shown_regression:.0f} % with the regression. Of the shown answers,
{wrong:.0f} % contain a false claim with ``auto``, and {wrong_regression:.0f} % with the
regression. These percentages are means over the {n_sets} data sets.

Additional evidence has a larger effect on the number of true claims kept than the choice of the
filter. If three other answers to the question are used as evidence, ``auto`` keeps {having:.2f}
instead of {lacking:.2f} true claims per GSM8K solution at alpha = 0.01. A logistic regression
that uses the same three answers keeps {logistic:.2f} true claims per solution."""

FIGURES = {
    "retention": (
        "True claims kept against alpha on three data sets.",
        "True claims kept per answer against alpha. Bands are one corrected standard error on "
        "each side, shown for two of the filters. All filters use the same halves, so differences "
        "are more certain than the bands suggest.",
    ),
    "forest": (
        "Change in true claims kept by auto relative to a regression, one row per set.",
        "Ratio of the true claims kept by ``auto`` to those kept by a logistic regression, at "
        "four levels. Each row is a set judged by people, with bars of two corrected standard "
        "errors. The last row is the random-effects mean. Its diamond extends two errors to "
        "each side. An arrow marks a bar that is cut off.",
    ),
    "labelled": (
        "True claims kept against the number of labelled problems.",
        "True claims kept against the number n of labelled problems. The filters are fitted as "
        "users would fit them, with part of the n problems for training and part for "
        "calibration. The problems come from one half of the questions, and the filters are "
        "applied to answers to the other half. Bars are standard errors over {draws} draws. "
        "Numbers are the gain of ``auto`` over logistic regression. In PRMBench, each question is "
        "used either for training or once for calibration, so its lines stop rising.",
    ),
}

READING = """\
**How to read this page.** A random half of the questions is used for training. Each answer to a
held-out question is filtered with the threshold computed from all *other* answers to held-out
questions (`skdcf.evaluation.leave_one_out`), so all filters have the same coverage. All filters
break ties in the same way, and use the same columns unless a row states otherwise. The standard
errors (±) are corrected for the overlap between splits (Nadeau and Bengio, 2003). A star marks
changes with p < 0.05. :doc:`validity` describes the tests of the guarantee itself.

The labels differ in quality. People judged most data sets. The labels of GSM8K solutions are
derived from final answers and agree with human labels on 89 % of the steps that people also
judged. In PRMBench, a model inserted the errors, some of which can be recognised by their style. In
FELM, each claim is assumed to depend on the previous claim, and the rows with the published
settings use the settings that arXiv:2604.20098 prints for FELM (:doc:`paper`)."""

RIVALS = """\
Conformal-RAG (Feng et al., SIGIR 2025, arXiv:2506.20978) filters the claims of long answers by
their similarity to the passages retrieved for the question. The authors published 1,603 answers
to medical questions, in which the claims were judged by a **language model**. The comparison uses
their published score, columns computed from the question, the claims and the passages, and two
other packages that provide the same guarantee: MACI (maci-conformal), and the ``Claim`` query of
cci-sdk. ``python -m benchmarks.retention.rivals`` installs both packages into a separate
environment. All rows of the table use the same answers. If two rows use the same score, they differ
only in the filter. MACI sums the costs of the claims in an answer and calibrates by group. The
cci-sdk query filters in the same way as `~skdcf.HardCF`. MACI is designed for scores from several
language models, which are not available for these answers. Here, MACI combines the published score
with two columns of skdcf. The regression was trained on half of the labelled answers and calibrated
on the other half. The standard errors do not take the overlap between splits into account. The
guarantee concerns the second of the four numbers at each level."""

CONDITIONS = """\
The numbers were computed at {commits} with {versions}. A plus sign after a commit ID marks
uncommitted changes. The random splits are generated with seed 0, and each filter uses the seed of
its split. Every JSON file in ``benchmarks/results`` contains the commit and the package versions
with which it was computed."""

IN_SHORT_PAIRS = {
    "qags-cnndm": [(AUTO, LOGISTIC, "QAGS (CNN/DM), 235 summaries, natural errors")],
    "qags-xsum": [(AUTO, LOGISTIC, "QAGS (XSum), 239 summaries, natural errors")],
    "refchecker": [
        (AUTO, LOGISTIC, "RefChecker, 1,400 answers, natural errors"),
        (f"{AUTO}, 6 others", AUTO, "gain from six other models' answers, `auto`"),
    ],
    "felm": [
        (AUTO, LOGISTIC, "FELM, 711 answers, natural errors"),
        (PUBLISHED, LOGISTIC, "the same with the published settings, margin 20"),
        (MARGIN, LOGISTIC, "the same with the published settings, margin 0.1"),
    ],
    "prmbench": [
        (AUTO, LOGISTIC, "PRMBench, 3,754 answers, errors inserted by a model")
    ],
    "process-bench": [
        (AUTO, LOGISTIC, "ProcessBench (gsm8k), 400 answers, natural errors")
    ],
    "process-bench-math": [
        (AUTO, LOGISTIC, "ProcessBench (math), 1,000 answers, natural errors")
    ],
    "mr-ben": [(AUTO, LOGISTIC, "Mr-Ben (math), 918 answers, natural errors")],
    "mr-ben-biology": [
        (AUTO, LOGISTIC, "Mr-Ben (biology), 1,033 answers, natural errors"),
        (f"{AUTO}, agreement", AUTO, "gain from two other models' answers, `auto`"),
    ],
    "mr-ben-chemistry": [
        (AUTO, LOGISTIC, "Mr-Ben (chemistry), 848 answers, natural errors"),
        (f"{AUTO}, agreement", AUTO, "gain from two other models' answers, `auto`"),
    ],
    "gsm8k-solutions": [
        (
            AUTO,
            LOGISTIC,
            "GSM8K solutions, 5,228 answers, natural errors, derived labels",
        ),
        (
            f"{AUTO}, 3 others",
            f"{LOGISTIC}, 3 others",
            "the same with three other answers as evidence for both",
        ),
        (f"{AUTO}, 3 others", AUTO, "gain from the other answers, `auto`"),
    ],
    "perl-natural": [(AUTO, LOGISTIC, "PERL, 204 answers, natural errors")],
    "conformal-rag": [
        (
            AUTO,
            LOGISTIC,
            "Conformal-RAG, 1,603 answers with passages, judged by a model",
        ),
        (AUTO, OWN_SCORE, "the same relative to the authors' score"),
    ],
}
