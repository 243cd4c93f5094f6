"""Texts of the results page. The numbers are filled in from the saved results."""

HEAD = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Results
=======

Unless a section states otherwise, every filter on this page has the same guarantee: with
probability at least 1 - alpha, a filtered answer contains no false claim. The filters differ in the
number of true claims kept and in the proportion of answers shown. An answer is shown if at least
one of its claims is kept."""

READING = """\
**How to read this page.** A random half of the questions is used for training. Each answer to a
held-out question is filtered with the threshold computed from all *other* answers to held-out
questions (`skdcf.evaluation.leave_one_out`), so all filters have the same coverage unless a
section states otherwise. All filters break ties in the same way, and use the same columns unless a
row states otherwise. The standard errors (±) are corrected for the overlap between splits (Nadeau
and Bengio, 2003). :doc:`validity` describes the tests of the guarantee itself.

The labels differ in quality. People judged most data sets. The labels of GSM8K solutions are
derived from final answers and agree with human labels on 89 % of the steps that people also
judged. In FELM, each claim is assumed to depend on the previous claim. All errors are natural,
except in some answers of PERL, in which errors were inserted."""

DEFAULT = """\
The default scorer, "linear", is compared on ten published data sets with the start of its own
training, with a logistic regression that has the same price, with the same regression without a
price, and with ``stack``, the default of commit 3f829ee9, a mixture of several scores. All of them
use the same features and the same splits. The table shows the change in the share of answers
shown, in percentage points, and in two means over the answers, in percent: the number of true
claims kept, and its square root ("worth"). Errors are one corrected standard error of the mean over
the sets. If some answers may not pass (``show="auto"``), the share is chosen for each level.
``benchmarks/retention/default_scorer.py`` computes the numbers, and
``benchmarks/results/default_scorer_sets.txt`` contains the changes for each set. The price and its
settings were chosen on these data sets. The numbers were measured with an earlier
version of the package, in which ``fit`` split the questions in another way. In this comparison,
``fit`` holds out only one question."""

PASSING = """\
Half of the answers may pass. A quarter of the questions are used for training, a quarter for
calibration, and half for evaluation, in 16 random splits. Each cell contains the numbers of the
default scorer, of a logistic regression with the same price, and of the same regression without a
price. ``benchmarks/guarantees/passing_answers.py`` computes the numbers, and
``benchmarks/results/passing_answers.txt`` contains other shares and levels for the default
scorer."""

WITH_EVIDENCE = """\
The default filter is compared with and without each kind of evidence. Additional evidence has a
larger effect on the number of true claims kept than the choice of the scorer."""

EVIDENCE_LEVEL = 0.05

EVIDENCE_HEAD = [
    "evidence",
    "true claims kept per answer, alpha = 0.05, without → with",
    "shown, %",
    "errors among shown, %",
    "model calls per answer",
    "computation or human work per answer",
    "command or key",
]

# What it is, calls of a model (None: a person judges), and how to get it.
EVIDENCE = {
    "passages": (
        "source passages (QAGS CNN/DM)",
        "none",
        '``"context": [...]`` in each line',
    ),
    "others": (
        "two other answers (Mr-Ben biology)",
        "2",
        "``skdcf extract answers.jsonl -o problems.jsonl --model NAME --samples 2``",
    ),
    "frequency": (
        "frequency in five other answers (Conformal Factuality)",
        "5 answers, 5 comparisons",
        "``skdcf extract`` with ``--samples 5 --features frequency``",
    ),
    "surprisal, process-bench": (
        "log-probabilities of a small model (ProcessBench gsm8k)",
        "the small model reads the answer",
        "key ``logprobs``",
    ),
    "check": (
        "one claim checked by a person (ProcessBench math)",
        None,
        "``skdcf label --review model.skops answers.jsonl``",
    ),
}

SCORERS_HEAD = [
    "default / priced regression / regression, alpha = 0.1, half of the answers pass",
    "shown, %",
    "errors among passing, %",
    "true claims kept per answer",
]

RIVALS_HEAD = [
    "alpha = 0.1",
    "true claims kept per answer",
    "answers shown, %",
    "with a false claim, %",
]

README_RIVALS = {
    "skdcf, published score": "`HardCF` (or cci-sdk) with one score",
    "skdcf, three scores": "the default",
    "priced regression, three scores": "logistic regression with the same price",
    "regression, three scores": "logistic regression without a price",
    "MACI, three scores": "MACI 0.2.2",
}

SETS = {
    "qags-cnndm": ("QAGS CNN/DM, 235 summaries", "three people"),
    "refchecker": ("RefChecker, 1,400 answers as triplets", "people"),
    "felm": ("FELM, 711 answers, four domains", "people"),
    "process-bench": ("ProcessBench gsm8k, 400", "people, first error"),
    "process-bench-math": ("ProcessBench math, 1,000", "people, first error"),
    "mr-ben": ("Mr-Ben math, 918", "people, first error"),
    "mr-ben-biology": ("Mr-Ben biology, 1,033", "people, first error"),
    "mr-ben-chemistry": ("Mr-Ben chemistry, 848", "people, first error"),
    "perl": ("PERL, 294 answers", "people"),
    "gsm8k-solutions": ("GSM8K solutions, 5,228", "derived from answers"),
}

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
with two columns of skdcf. For the other packages, a regression was trained on half of the labelled
answers, and the filter was calibrated on the other half. The standard errors do not take the
overlap between splits into account. The guarantee concerns the second of the four numbers at each
level."""

WRITTEN = """\
With ``online=True``, the risk of a claim is computed only from the claim itself and the preceding
claims, both in calibration and in production. The filter can therefore keep or drop each claim
while the answer is still being written (:doc:`../guide/agents`). The program first passes the
claims of random graphs to the filter one by one and compares the decisions with those of
``predict``. It then compares the number of true claims kept by a scorer with a price without
and with ``online=True`` on random splits of the questions. The guarantee holds at each level, both
with and without ``online=True``."""

CONDITIONS = """\
The evidence was measured at commit {commit} with {versions}. The random splits are generated with
seed 0, and each filter uses the seed of its split."""
