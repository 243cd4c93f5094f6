"""Texts of the results pages. The numbers are filled in from the saved results."""

from benchmarks.methods import AUTO, LOGISTIC, MARGIN, OWN_SCORE, PUBLISHED

HEAD = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Results
======="""

TABLES = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Results, set by set
===================

This appendix to :doc:`results` contains the tables for all data sets. The appendix also describes
the quality of the labels of each data set, and lists experiments that did not improve the
filters."""

IN_SHORT = """\
In short
--------

The table shows the change in the number of true claims kept per answer, in percent. Each row
compares the scorer ``auto`` with logistic regression unless the row states otherwise. A star
marks changes with p < 0.05."""

GUARANTEE = """\
Every filter on this page has the same guarantee: with probability at least 1 - alpha, a filtered
answer contains no false claim. The first figure compares this guaranteed coverage with the
observed coverage. The observed coverage is below the guaranteed coverage by at most {worst:.1f}
percentage points. This shortfall corresponds to {errors:.1f} standard errors, given the number of
independent questions in the data set.

The filters differ in the number of true claims kept. The first table compares the default filter
with three alternatives: a logistic regression that is calibrated in the same way, the same
regression with a fixed threshold of 1/2 on the predicted probability, and no filtering. "Safe" is
the proportion of answers that contain no false claim."""

POOLED = (0.02, 0.05, 0.1, 0.2)
PEOPLE = ("people", "three people")
POOLED_ROW = "**mean of the {n} sets judged by people**"
AT_ONE_LEVEL = (
    "kept at {alpha:g}",
    "shown, %",
    "false among shown, %",
)
POOLING = """\
This section combines the {n} data sets with natural errors judged by people. The effect for each
data set is the logarithm of the ratio between the number of true claims kept by ``auto`` and the
number kept by the regression. The standard error of each effect is corrected for the overlap
between splits. The effects are combined by a random-effects mean (DerSimonian and Laird, 1986;
``benchmarks/pages/pooling.py``), which allows for differences between the data sets. Data sets
with derived labels, inserted errors or labels from a model are excluded. A data set is also
excluded at the levels at which ``auto`` or the regression keeps no claims."""

CHOSEN = """\
The default scorer was selected from about ninety variants. These variants differed in the gain
exponent, the mixture components, the labels of claims that depend on an error, the use of
frailty, and the use of a prior. The variants were compared on QAGS CNN/DM, RefChecker, FELM,
PERL, ProcessBench gsm8k and three subjects of Mr-Ben. Some of the variants were also compared on
GSM8K solutions and ProcessBench math. The gains of the default scorer on the data sets of this
comparison are therefore optimistically biased. QAGS XSum, PRMBench and Conformal-RAG were not
used to select the default scorer, but PRMBench was used to select earlier versions of the scorer.
"""

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
#: Rows of README's table.
README_HEAD = [
    "default / regression, alpha = 0.1",
    "unfiltered answers with an error",
    "shown",
    "errors among passing",
    "errors among shown",
    "true claims kept per answer",
]
README_SETS = {
    "felm": "FELM",
    "process-bench-math": "ProcessBench (math)",
    "mr-ben-biology": "Mr-Ben (biology)",
    "refchecker": "RefChecker",
    "qags-cnndm": "QAGS (CNN/DM)",
}

FIRST = 0.1
FIRST_TITLE = "True claims kept per answer at alpha = 0.1, and three alternatives"
FIRST_HEAD = [
    "data",
    "labelled by",
    "errors",
    "default / regression / probability > 1/2 (safe) / everything (safe)",
    "default clearly better than regression?",
]
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
while the answer is still being written (:doc:`../guide/deploying`). The table compares the
number of true claims kept by the Neyman-Pearson scorer without and with ``online=True``, on new
random splits of the questions into halves. The guarantee holds at each level, both with and
without ``online=True``.

In a simulation, the claims of {graphs} random graphs ({claims} claims) were passed to the filter
one by one. The decisions of the filter differ from those of ``predict`` for {differ} graphs, and
no false claim is kept in {safe} % of the graphs. The guaranteed proportion of graphs without a
kept false claim is {guaranteed} %. With {calibration} calibration problems, the proportion of
graphs without a kept false claim is expected to lie between {low} and {high} % in {share} % of
simulations."""

STOPPED = """\
In this experiment, the agent runs of AgentProcessBench are stopped at the first doubtful step.
The data set contains 250 runs on 50 tasks, with an average of 2.22 correct steps per run. ``fit``
uses 40 tasks. The numbers in the table are means over the tasks (± standard error). "Missed" is
the proportion of runs in which at least one step was executed that the annotators had judged
wrong. See also
:doc:`../guide/agents`."""

SUMMARY = """\
``auto`` is the default scorer of `~skdcf.CoherentConformalFilter` (:doc:`../guide/training`). On
this page, ``auto`` is compared with a logistic regression that uses the same columns and the same
calibration. On the {n_sets} data sets with natural errors judged by people, the mean change in
the number of true claims kept at alpha = 0.05 is {mean} % (± standard error). With ``auto``, the
kept claims are distributed over more answers. At alpha = 0.05, {shown:.0f} % of the answers are
shown with ``auto``, and {shown_regression:.0f} % with the regression. Of the shown answers,
{wrong:.0f} % contain a false claim with ``auto``, and {wrong_regression:.0f} % with the
regression. These percentages are means over the {n_sets} data sets.

The following changes in the number of true claims kept at alpha = 0.05 are given with corrected
standard errors (±), and with a star if p < 0.05. On PRMBench, where a model inserted the errors,
``auto`` changes the number of true claims kept by {planted} %. On data sets with natural errors,
the change is {gsm} % on GSM8K solutions (with labels derived from final answers), {perl} % on
PERL, {natural} % on ProcessBench gsm8k and {mr_ben} % on Mr-Ben mathematics. PERL, ProcessBench
gsm8k and Mr-Ben mathematics have fewer than a thousand answers each, which is too few to
distinguish most filters.

Additional evidence has a larger effect on the number of true claims kept than the choice of the
filter. If three other answers to the question are used as evidence, ``auto`` keeps {having:.2f}
instead of {lacking:.2f} true claims per GSM8K solution at alpha = 0.01. A logistic regression
that uses the same three answers keeps {logistic:.2f} true claims per solution."""

FIGURES = {
    "guaranteed": (
        "Guaranteed and observed proportions of answers without a false claim, for all sets.",
        "Left: guaranteed and observed coverage on every data set, at four levels. One "
        "answer per question is used. Half of the held-out questions are used for calibration and "
        "half for testing. Bars are two standard errors, given this number of independent "
        "questions. Right: the same answers, either with only the claims for which a logistic "
        "regression predicts a probability above 1/2, or with all claims. A fixed threshold does "
        "not provide a guarantee. With the same fixed threshold, 96 % and 61 % of the answers to "
        "two kinds of generated questions are safe. With the calibrated filter, 95 % of the "
        "answers are safe for both kinds of questions "
        "(``benchmarks/guarantees/guarantee.py``).",
    ),
    "retention": (
        "True claims kept against alpha on three data sets.",
        "True claims kept per answer against alpha. Bands are one corrected standard error on "
        "each side, shown for two of the filters. All filters use the same halves, so differences "
        "are more certain than the bands suggest (:doc:`results_tables`).",
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
        "Numbers are the gain of ``auto`` over logistic regression. PRMBench has {asked} "
        "questions, half of which are available here. 400 answers belong to about 178 "
        "questions, and 1,600 answers to about 201. Each question is used either for training or "
        "once for calibration, so its lines stop rising. All decreases are within chance. "
        "The largest decrease between two points is {fall:.1f} standard errors, and the coverage "
        "at these points is {few} labels and {more}.",
    ),
    "alternatives": (
        "True claims kept against the number of other answers.",
        "GSM8K solutions: true claims kept per answer against the number of other answers to "
        "the question, for logistic regression and ``auto``. The levels of alpha are next to "
        "the lines. Bars are corrected standard errors.",
    ),
}

READING = """\
How to read the tables
----------------------

A random half of the questions is used for training. Each answer to a held-out question is
filtered with the threshold computed from all *other* answers to held-out questions
(`skdcf.metrics.leave_one_out`). If each question has only one answer, all filters have exactly
the same coverage. If a question has several answers, one of them is used for calibration, and all
of them are evaluated. The numbers in the table are then means over ten random choices of the
calibration answers. If questions have several answers, the coverages of the filters in a table
differ by chance by up to {spread:.1f} percentage points ({where}).

Retention is the number of true claims kept per answer. The largest value in each column is bold.
The last rows of a table contain changes in percent (± corrected standard error). The *corrected*
standard errors (Nadeau and Bengio, 2003) account for the overlap between splits. A star marks
changes with p < 0.05. See :doc:`../guide/choosing` for details. All filters in a table break ties
in the same way, and use the same columns unless a row states otherwise."""

RAG = """\
Conformal-RAG (Feng et al., SIGIR 2025, arXiv:2506.20978) filters the claims of long answers by
their similarity to the passages retrieved for the question. The authors published 1,603 answers
to medical questions (`~skdcf.datasets.fetch_conformal_rag`), in which the claims were judged by a
**language model**. The score published by the authors is calibrated in the same way as any other
score. The regression and ``auto`` use columns computed from the question, the claims and the
passages. These columns depend neither on the published score nor on a language model. The
regression alone achieves most of the gain over the published score, so most of this gain comes
from the columns rather than from ``auto``. Unlike in the authors' experiments, calibration by
group is not used in this table (``by=`` in skdcf,
:doc:`../guide/guarantee`)."""

RIVALS = """\
The next comparison includes two other packages that provide the same guarantee: MACI
(maci-conformal), and the ``Claim`` query of cci-sdk. ``python -m benchmarks.retention.rivals``
installs both packages into a separate environment. All rows of the table use the same answers. If
two rows use the same score, they differ only in the filter. MACI sums the costs of the claims in
an answer and calibrates by group. The cci-sdk query filters in the same way as `~skdcf.HardCF`.
MACI is designed for scores from several language models, which are not available for these
answers. Here, MACI combines the published score with two columns of skdcf. The regression was
trained on half of the labelled answers and calibrated on the other half. The standard errors (±)
do not take the overlap between splits into account. The guarantee concerns the second of the four
numbers at each level."""

LABELS = {
    "qags-cnndm": """\
The data set contains news summaries generated by summarization systems from 2018 and 2019. Three
annotators compared each sentence of a summary with the article, which is used as the context
(:doc:`../guide/features`). The summarization systems copied large parts of the article, which
favours features that detect copied text.""",
    "qags-xsum": """\
The data set contains one-sentence summaries that paraphrase a news article. These summaries were
judged in the same way as the CNN/DM summaries. In each split, only about 120 sentences are used
for training.""",
    "refchecker": """\
The claims are triplets extracted from the answers of seven models. Human annotators judged
whether a reference text entails or contradicts each triplet. A triplet that the reference text
neither entails nor contradicts is unsupported and counts as false. The data set contains neither
edges nor contexts. "Six others" adds the columns that measure agreement with the answers of the
other six models (:doc:`../guide/features`). To compute the agreement, triplets are compared as
strings.""",
    "felm": """\
The claims are segments of ChatGPT's answers to questions about mathematics, reasoning, science
and world knowledge. Human annotators labelled each segment. Each segment is assumed to depend on
the previous segment. FELM is the second data set used in arXiv:2604.20098. The row "as published"
uses the settings printed in that paper with the columns on this page. That paper gives no
settings for levels above 0.1, so the settings for alpha = 0.1 are also used at alpha = 0.2. In
arXiv:2604.20098, the margin of 20 is specified only for validation. With a margin of 0.1 instead
of 20, more claims are kept (:doc:`paper`).""",
    "mr-ben-biology": """\
The data set contains answers to biology questions in the same format as Mr-Ben math. Most of the
biology answers are correct (60 %), so the majority answer is informative.""",
    "mr-ben-chemistry": """\
The data set contains answers to chemistry questions in the same format as Mr-Ben math. Fewer than
half of the chemistry answers are correct (45 %).""",
    "prmbench": """\
GPT-4o inserted errors of specified types into correct PRM800K solutions. GPT-4o also labelled the
steps. A false step can be followed by true steps. Some of the inserted errors can be recognised
by their style, so see the style control below before you rely on these numbers. Only half of
PRMBench is published as training files. The PRMBench numbers on this page were computed on this
half.""",
    "process-bench": """\
Human annotators marked the first wrong step in answers from twelve models. The errors are
natural, and the labels are the most reliable of all data sets on this page. The questions are
grade-school mathematics problems.""",
    "process-bench-math": """\
The data set contains answers to questions from MATH, which were judged in the same way as the
GSM8K part of ProcessBench. The public prior was fitted on 25 of the questions in this data set.
These 25 questions are excluded whenever the prior is used.""",
    "conformal-rag": """\
The data set contains long answers to medical questions (Feng et al., SIGIR 2025,
arXiv:2506.20978). The passages are taken from a reference answer. A **language model** judged
whether each claim is supported, so this data set is excluded from the means over data sets judged
by people. "The authors' score" is the similarity between a claim and the passages. The authors'
score is calibrated in the same way as every other score on this page. In rows marked "its score",
the authors' score is one of the columns.""",
    "mr-ben": """\
Human annotators marked the first error in the answers of three models to exam questions. Five out
of six Mr-Ben math answers are wrong, so all filters keep few claims at strict levels. "Agreement"
adds the columns that measure agreement with the answers of the other two models
(:doc:`../guide/features`). In Mr-Ben math, most answers are wrong, so agreement is weak evidence.
At alpha = 0.02 and below, the agreement columns do not increase the number of true claims kept.
""",
    "gsm8k-solutions": """\
The data set contains solutions from four models to each question, with exact dependency graphs.
The labels are *derived* from final answers and reference solutions instead of being assigned by
people. Among the steps that were also judged by people, 89 % of the derived labels agree with the
human labels. Labels derived from final answers favour features that use final answers, such as
agreement. "Three others" adds the columns that measure agreement with the solutions of the other
three models (:doc:`../guide/features`). In production, the other answers to the question are
samples from the same model. In rows marked "agreement alone", a single agreement column is the
score of `~skdcf.HardCF`. This agreement column is the proportion of other answers that have the
same final answer. The agreement column has few distinct values and therefore many ties. At strict
levels, a filter that uses only this column and breaks ties by jitter keeps about as many claims
as a filter with a trained scorer. At the other levels, the filter that uses only the agreement
column keeps fewer claims than a filter with a trained scorer.""",
    "perl-natural": """\
This subset of PERL excludes the solutions with inserted errors. The subset contains both correct
and wrong solutions written by models. Human annotators judged the steps and their premises. A
step that depends on an error counts as false.""",
    "perl": """\
This version of PERL also includes the solutions with inserted errors, as in other papers that use
PERL.""",
}

WORDING = """\
In PRMBench, most questions occur in several wordings. If the data are split by wording, the same
question can be placed in both halves, so a filter may have been trained on answers to a test
question. Use the next table only for comparison with published numbers computed on splits by
wording."""

STYLE = """\
**Style control.** In the modified PRMBench answers, some steps were rewritten but are still true.
A score that separates rewritten true steps from unchanged true steps detects the author of a step
rather than errors. The AUC in the second column is computed on the steps before the first error,
and would be 0.5 if the score ignored style. Part of the difference from 0.5 is explained by
position, because rewritten steps are close to errors."""

SYMBOLIC = """\
The tables above show the effect of the agreement columns and of other answers to the question.

We also tried a hazard model based on the words in each claim, and did not adopt it. On PRMBench,
the word-based model partly recognises the author of a step instead of errors.

Eight columns that contain the results of symbolic checks were evaluated with an earlier default
filter. Some of the symbolic columns check whether an identity holds at fixed points, or whether an
equation is equivalent to an earlier equation. Others check whether a value solves an earlier
equation, or check for substituted values. The first table shows the change in the number of true
claims kept in percent (± corrected standard error). No change is larger than 1.2 standard errors.

The second table compares two rules for the proportion of the labelled problems that is used for
calibration. With the default, this proportion depends on the level. The gain is the change in the
number of true claims kept relative to a proportion of 30 % (± standard error)."""
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2)

LEARNT = {
    "perl": "PERL",
    "prmbench": "PRMBench",
    "gsm8k-solutions": "GSM8K solutions",
    "process-bench": "ProcessBench (gsm8k)",
    "felm": "FELM",
}
CLASSIFIER = """\
``ClassifierScorer(target=...)`` supports three kinds of training labels. The "own" label is the
label of the claim itself. The "coherent" label is true if the claim and all its ancestors are
true. The "hazard" label is the own label, but only claims whose ancestors are all true are used
for training. ``auto`` is trained on the hazard label. The table shows the changes relative to the
hazard label over {n} random splits of the questions into halves (± corrected standard error).

A regression on the hazard label is the baseline for all comparisons on these pages. In GSM8K
solutions and FELM, many claims depend on an error, and a regression that excludes these claims
from training keeps more claims. In ProcessBench, claims that depend on an error have no labels,
so no further claims are excluded. In PRMBench, false claims can be followed by true claims. On
PRMBench, the filter keeps more claims with the own label at alpha = 0.2. At smaller levels, this
difference is within one corrected standard error. With the coherent label, the filter keeps fewer
claims on all five data sets at alpha = 0.05 and above."""
PRICED = [("felm", 0.05), ("prmbench", 0.2)]
FALSE_PRICE = """\
At equal coverage, a filter that keeps more claims also keeps more false claims in the answers
that are not covered. We tried two penalties for false claims in the Neyman-Pearson score
(``benchmarks/retention/controls.py``). For each expected false claim, either the gain is reduced
by c or the risk is increased by c. Both penalties start from ``gain="claims"``. The default
``gain=0.5`` (the row "as it is") also keeps fewer false claims than ``gain="claims"``. For each
false claim avoided relative to ``gain="claims"``, the default loses more true claims than all
penalties on FELM at alpha = 0.05, but fewer than most penalties on PRMBench at alpha = 0.2. We
adopted neither penalty. The standard errors (±) do not take the overlap between splits into
account."""

ANSWERS = """\
With the default ``gain=0.5``, more answers are shown than with a scorer that is trained to
maximise the number of kept claims. With ``StackingScorer(gain="answers")``, the first claim kept
in an answer has a larger weight than with the default. On PERL, ``gain="answers"`` nevertheless
shows no more answers than the default. The PERL table above compares the numbers of kept claims.
"""

COVERAGE = """\
Leave-one-out coverage is correct by construction and therefore cannot be used to test the
guarantee. In this test, half of the held-out questions are used for calibration and the other
half for testing. The held-out questions are split 50 times for each of 4 scorers. Answers to the
same question are not independent, and the standard errors account for this dependence. The band
is the theoretical range of the mean coverage, extended by two standard errors on each side."""

RESOURCES = """\
The following processor times of `~skdcf.CoherentConformalFilter` were measured with
``alpha=0.05`` on one core. On the published half of PRMBench ({here[problems]:,.0f} answers,
{here[claims]:,.0f} claims, 30 columns), fitting takes {here[fit]:.1f} s and filtering all answers
takes {here[filter]:.1f} s. The peak memory usage is {here[memory]:,.0f} MB, including the data.
The whole of PRMBench has 7,651 answers. If the published answers are repeated to reach this
number ({all[claims]:,.0f} claims), fitting takes {all[fit]:.1f} s and filtering takes
{all[filter]:.1f} s, with a peak memory of {all[memory]:,.0f} MB."""

CONDITIONS = """\
The numbers were computed at {commits} with {versions}. A plus sign after a commit ID marks
uncommitted changes. The random splits are generated with seed 0, and each filter uses the seed of
its split. Every file in ``benchmarks/results`` contains the commit and the package versions with
which it was computed. :doc:`results_tables` contains all tables.
:doc:`measurements` contains other measurements, such as speed and edge cases."""

MEASUREMENTS = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Further measurements
====================

This page contains the unedited output of benchmark programs. Other pages refer to this output.
All times were measured on one core."""

FOLDS = """\
With the former option ``calibration_size="cross"``, ten scorers were trained, each without a
tenth of the problems, and all problems were used for calibration. This cross-conformal
calibration guarantees a coverage of only 1 - 2 alpha, so its guarantee at level alpha / 2 is the
same as the guarantee of the default at level alpha. We compared this method and the default of
that time with 25, 50 and 100 labelled problems, with and without the public prior, on each of four
data sets. Whenever the default at level alpha keeps any claims, it keeps more true claims per
answer than cross-conformal calibration at level alpha / 2.

The numbers are means over 20 random samples of the labelled problems. The differences between the
two methods are paired by sample. "Mean of sets" is the mean over the four data sets for each
sample. For each data set, the prior was fitted without the data sets of the same family. The
prior does not include any columns for QAGS. Two additional terms, which are not included in these
numbers, weaken the cross-conformal guarantee by up to 0.16 for 100 labelled problems."""

MEASURED = {
    "online": "On random graphs, this program compares the decisions for streamed claims with\n"
    "those of ``predict``. The program also measures the coverage of the streamed decisions, and\n"
    "how many fewer true claims are kept because later claims are not yet known.",
    "agents": "This program stops agent runs at the first doubtful step\n"
    "(:doc:`../guide/agents`).",
    "judges": "This program calibrates filters on the verdicts of models. The program\n"
    "measures the proportion of agent runs in which a step is kept that people judged wrong.",
    "edge_cases": "This program measures the coverage in common use cases, with a target of 0.9.\n"
    'In each use case, either the target is reached or an error is raised. In rows marked "void",\n'
    "the guarantee does not hold, because the filter cannot detect an earlier step or was\n"
    "instructed to accept it.",
    "no_gain": "This program compares ``auto`` with the best of several baselines on five kinds\n"
    "of generated data, in which the columns contain little information about the labels.",
    "hard_speed": "This program measures how long it takes to compute the masks of a million\n"
    "answers from their scores.",
    "relaxation_speed": "This program measures how long it takes to compute a loss and its\n"
    "gradient, and how this time increases with the size of the data.",
    "scorer_speed": "This program measures how long it takes to fit the default scorer for one\n"
    "level and for several levels.",
    "text_speed": "This program measures how many claims per second are processed when text and\n"
    "graph columns are computed.",
    "compare_speed": "This program measures how long it takes to compare fast filters on many\n"
    "splits.",
    "large_problems": "This program measures how long it takes to process single problems with\n"
    "up to 100,000 claims.",
}

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
