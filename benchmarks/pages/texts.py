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

This appendix to :doc:`results` contains all tables. The appendix also describes the label quality
of each set and lists experiments without a gain."""

IN_SHORT = """\
In short
--------

The table shows the change in the number of true claims kept per answer, in percent. Each row
compares ``auto`` with logistic regression unless the row states otherwise. A star marks p <
0.05."""

GUARANTEE = """\
Every filter on this page guarantees that, with probability at least 1 - alpha, a filtered answer
contains no false claim. The first figure compares this guarantee with the observed coverage. The
largest shortfall is {worst:.1f} percentage points, which corresponds to {errors:.1f} standard
errors for the number of independent questions in the data set.

The filters differ in the number of true claims kept. The first table compares the default filter
with three alternatives: a logistic regression that is calibrated in the same way, the same
regression with a fixed threshold of 1/2 for the predicted probability, and unfiltered answers.
"Safe" is the proportion of answers without a false claim."""

POOLED = (0.02, 0.05, 0.1, 0.2)
PEOPLE = ("people", "three people")
POOLED_ROW = "**mean of the {n} sets judged by people**"
AT_ONE_LEVEL = (
    "kept at {alpha:g}",
    "shown, %",
    "false among shown, %",
)
POOLING = """\
This section combines the {n} sets with natural errors judged by people. For each set, the effect
is the log ratio of the true claims kept by ``auto`` to the true claims kept by the regression.
Each effect has a corrected standard error. The mean is a random-effects mean (DerSimonian and
Laird, 1986; ``benchmarks/pages/pooling.py``), which allows for differences between the sets. Sets
with derived labels, inserted errors or model labels are excluded. A set is also excluded at
levels at which one of the two filters keeps nothing."""

CHOSEN = """\
The default was selected from about ninety variants. The variants differed in the gain exponent,
the mixture components, the labels of claims that depend on an error, frailty, and the use of a
prior. The variants were compared on QAGS CNN/DM, RefChecker, FELM, PERL, ProcessBench gsm8k, the
three subjects of Mr-Ben, and in part on GSM8K solutions and ProcessBench math. The gains on these
sets are therefore optimistically biased. QAGS XSum, PRMBench and Conformal-RAG were not used for
the selection of the default, but PRMBench was used to select older versions of the scorer."""

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
FIRST_TITLE = "True claims kept per answer at alpha = 0.1, and two alternatives"
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
claims, both in calibration and in production. Each claim can therefore be kept or dropped while
the answer is being written (:doc:`../guide/deploying`). The table shows how many true claims are
lost with ``online=True`` and the Neyman-Pearson scorer, on new random splits into halves. The
guarantee holds with and without ``online=True`` at each level.

In a simulation, the claims of {graphs} random graphs ({claims} claims) were passed one by one.
The decisions differ from those of ``predict`` for {differ} graphs, and no false claim is kept in
{safe} % of the graphs. The guaranteed proportion is {guaranteed} %. With {calibration}
calibration problems, {share} % of such proportions lie between {low} and {high} %."""

STOPPED = """\
AgentProcessBench runs are stopped at the first doubtful step. The data set contains 250 runs on
50 tasks, with an average of 2.22 correct steps per run. ``fit`` uses 40 tasks. The numbers are
means over the tasks, with standard errors. "Missed" is the proportion of runs in which at least
one step that annotators judged wrong was executed. See also :doc:`../guide/agents`."""

SUMMARY = """\
``auto`` is the default scorer of `~skdcf.CoherentConformalFilter` (:doc:`../guide/training`). On
this page, ``auto`` is compared with a logistic regression that uses the same columns and the same
calibration. On the {n_sets} sets with natural errors judged by people, the mean change in the
number of true claims kept at alpha = 0.05 is {mean} %. ``auto`` distributes the kept claims over
more answers. At this level, ``auto`` shows {shown:.0f} % of the answers, and the regression shows
{shown_regression:.0f} %. Of these shown answers, {wrong:.0f} % and {wrong_regression:.0f} %,
respectively, contain a false claim. All percentages are means over the sets.

The following changes in the number of true claims kept at alpha = 0.05 have corrected standard
errors, and a star if p < 0.05. On PRMBench, whose errors were inserted by a model, the change
is {planted} %. On natural errors, the change is {gsm} % on GSM8K solutions (labels derived from
final answers), {perl} % on PERL, {natural} % on ProcessBench and {mr_ben} % on Mr-Ben
mathematics. The last three sets have only a few hundred answers each, which is too few to
distinguish most filters.

Additional evidence has a larger effect than the filter. With three other answers to the question,
``auto`` keeps {having:.2f} instead of {lacking:.2f} true claims per GSM8K solution at alpha =
0.01. A logistic regression with the same three answers keeps {logistic:.2f} true claims."""

FIGURES = {
    "guaranteed": (
        "Guaranteed and observed proportions of answers without a false claim, for all sets.",
        "Left: guaranteed and observed coverage on every data set, at four levels. One "
        "answer per question is used. Half of the held-out questions are used for calibration and "
        "half for testing. Bars are two standard errors for this number of independent "
        "questions. Right: the same answers, with the claims for which a logistic regression "
        "predicts a probability above 1/2, and with all claims. A fixed threshold has no "
        "guarantee. On two kinds of generated questions, 96 % and 61 % of the answers are safe "
        "with the same threshold, and 95 % of the answers to both kinds with the calibrated filter "
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

A random half of the questions is used for training. Each answer of the other half is filtered
with the threshold computed from all *other* answers of that half (`skdcf.metrics.leave_one_out`).
If each question has one answer, all filters have exactly the same coverage. If a question has
several answers, one of them is used for calibration, and all answers are evaluated. The numbers
are then means over ten random choices of this answer. For several answers per question, the
coverage of the filters in a table differs by chance, by up to {spread:.1f} percentage points
({where}).

Retention is the number of true claims kept per answer. The largest value in each column is bold.
The last rows of a table contain changes in percent with *corrected* standard errors (Nadeau and
Bengio, 2003), which account for the overlap between splits. A star marks p < 0.05. See
:doc:`../guide/choosing` for details. All filters in a table use the same columns unless a row
states otherwise, and break ties in the same way."""

RAG = """\
Conformal-RAG (Feng et al., SIGIR 2025, arXiv:2506.20978) filters the claims of long answers by
their similarity to the passages retrieved for the question. The data are 1,603 answers to medical
questions (`~skdcf.datasets.fetch_conformal_rag`), published by the authors and judged by a
**language model**. The authors' published score is calibrated like any other score. The
regression and ``auto`` use columns computed from the question, claims and passages. The computed
columns depend neither on the published score nor on a model. The regression achieves most of the
gain, so most of the gain comes from the columns rather than from training. Unlike the authors'
experiments, the table does not use calibration by group (``by=`` in skdcf,
:doc:`../guide/guarantee`)."""

RIVALS = """\
The next comparison includes two other packages with the same guarantee, MACI (maci-conformal) and
the ``Claim`` query of cci-sdk. ``python -m benchmarks.retention.rivals`` installs both packages
into a separate environment. All rows use the same answers. Rows with the same score differ only
in the filter. MACI sums costs within an answer and calibrates by group. The cci-sdk query filters
in the same way as `~skdcf.HardCF`. MACI is designed for scores from several language models,
which are not available for these answers. Here, MACI combines the published score with two
columns of skdcf. The regression was trained on half of the known answers and calibrated on the
other half. Errors are naive standard errors over the splits. The guarantee concerns the second
number of each pair."""

LABELS = {
    "qags-cnndm": """\
The set contains news summaries generated by systems from 2018 and 2019. Three annotators compared
each sentence with the article, which is the context (:doc:`../guide/features`). The systems copy
large parts of the article, which favours features that detect copied text.""",
    "qags-xsum": """\
The set contains one-sentence summaries that paraphrase the article. The summaries were judged in
the same way as the CNN/DM summaries. Only 120 sentences are used for training.""",
    "refchecker": """\
The claims are triplets from the answers of seven models. Human annotators judged whether the
reference entails or contradicts each triplet. A triplet that the reference neither entails nor
contradicts is unsupported and counts as false. The set has neither edges nor contexts. "Six
others" adds the columns that measure agreement with the answers of the other six models
(:doc:`../guide/features`). The triplets are compared as strings.""",
    "felm": """\
The claims are segments of ChatGPT answers to questions about mathematics, reasoning, science and
world knowledge. Human annotators labelled each claim. Each segment is assumed to depend on the
previous segment. FELM is the second data set in arXiv:2604.20098. The row "as published" uses the
settings printed in that paper with the columns on this page. The paper prints no settings above
alpha = 0.1, so the row also uses the settings for 0.1 at alpha = 0.2. The paper states the margin
of 20 only for its validation. With a margin of 0.1, the same settings keep more claims
(:doc:`paper`).""",
    "mr-ben-biology": """\
The set contains answers to biology questions in the format of Mr-Ben math. Most answers are
correct (60 %), so the majority answer is informative.""",
    "mr-ben-chemistry": """\
The set contains answers to chemistry questions in the format of Mr-Ben math. Fewer than half of
the answers are correct (45 %).""",
    "prmbench": """\
GPT-4o inserted errors of a given type into correct PRM800K solutions. GPT-4o also provided the
labels. True steps may follow a false step. Some of these errors are recognisable by style, so see
the style control below before you rely on these numbers. Only half of the set is published as
training files. The numbers on this page refer to this half.""",
    "process-bench": """\
Human annotators marked the first wrong step in the answers of twelve models. The errors are
natural, and the labels are the most reliable on this page. The questions are grade-school
mathematics problems.""",
    "process-bench-math": """\
The set contains answers to MATH questions, judged in the same way as the GSM8K part of
ProcessBench. The public prior was fitted on 26 of these questions, which are excluded whenever
the prior is used.""",
    "conformal-rag": """\
The set contains long answers to medical questions (Feng et al., SIGIR 2025, arXiv:2506.20978),
with passages from a reference answer. A **language model** judged whether each claim is
supported, so this set is excluded from the means over human labels. "The authors' score" is the
similarity of a claim to the passages. This score is calibrated like every other score on this
page. "Its score" adds the authors' score to the columns.""",
    "mr-ben": """\
Human annotators marked the first error in three models' answers to exam questions. Five out of
six answers are wrong, so all filters keep few claims at strict levels. "Agreement" adds the
columns that measure agreement with the answers of the other two models
(:doc:`../guide/features`). In mathematics, the models mostly make the same errors, so the gain
from agreement is within one standard error.""",
    "gsm8k-solutions": """\
The set contains solutions from four models to each question, with exact graphs. The labels are
*derived* from final answers and reference solutions, not judged by people. For the steps that
people also judged, 89 % of the derived labels agree with the human labels. Labels derived from
final answers favour features that use final answers, such as agreement. "Three others" adds the
columns that measure agreement with the solutions of the other three models
(:doc:`../guide/features`). In production, the other answers are samples from the same model.
"Agreement alone" uses a single column as the score of `~skdcf.HardCF`. This column is the
proportion of other answers with the same final answer. The column has few distinct values and
therefore many ties. With ties broken by jitter, a filter with only the agreement column keeps
about as many claims at strict levels as a filter with a trained scorer. At the other levels, the
filter with only this column keeps fewer claims.""",
    "perl-natural": """\
This subset of PERL excludes the solutions with inserted errors. The subset contains correct and
wrong solutions written by models. Human annotators judged the steps and premises. A step that
depends on an error counts as false.""",
    "perl": """\
This set also includes the solutions with inserted errors, as in the papers that use PERL.""",
}

WORDING = """\
PRMBench contains most questions in several wordings. A split by wording can place the same
question in both halves, so a filter may have seen the answer in training. Use the next table only
for comparison with published numbers that were computed in this way."""

STYLE = """\
**Style control.** In changed answers, some steps were rewritten but remained true. A score that
separates these steps from unchanged true steps detects the author of a step rather than errors.
If the score ignored style, the AUC in the second column, which is computed on the steps before
the first error, would be 0.5. Part of the gap is due to position, because changes are made close
to errors."""

SYMBOLIC = """\
The tables above show the effect of agreement and of other answers.

We also tried a hazard model based on the words in each claim. On PRMBench, this model kept 4 to
10 % more claims at alpha = 0.02 and above, but about half of this gain came from recognising the
author of a step. The AUC of this model for separating rewritten true steps from unchanged true
steps is 0.737, compared with 0.715 for the other scores. With fewer than 300 training problems,
the model based on words reduced retention.

Eight columns of symbolic checks were also measured on the same splits. Some of the columns check
for identities at fixed points, and for equations that are equivalent to an earlier equation.
Other columns check for values that do or do not solve an earlier equation, and for substituted
values. The columns did not increase retention on any data set. Most ProcessBench gsm8k answers
have no equation with a variable. On PRMBench algebra, the change in retention is within one
standard error. The table shows the change in retention in percent, with corrected standard
errors."""
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2)

LEARNT = {
    "perl": "PERL",
    "prmbench": "PRMBench",
    "gsm8k-solutions": "GSM8K solutions",
    "process-bench": "ProcessBench (gsm8k)",
    "felm": "FELM",
}
CLASSIFIER = """\
``ClassifierScorer(target=...)`` supports three training labels. "Own" is the label of the claim
itself. "Coherent" is true if the claim and all its ancestors are true. "Hazard" is the own label,
restricted to claims whose ancestors are all true. ``auto`` is trained on the hazard label. The
table shows the changes relative to the hazard label over {n} random splits of the questions into
halves, with corrected standard errors.

A regression on the hazard label is the baseline for all comparisons on these pages. In GSM8K
solutions and FELM, many claims depend on an error, and a regression that excludes these claims
keeps more claims. ProcessBench has no labels for claims that depend on an error, so no claim is
excluded. On PRMBench, true claims follow false claims. With the own label, the filter keeps a few
percent more claims at alpha = 0.1 and 0.2, which is within one corrected standard error. With the
coherent label, the filter keeps fewer claims on most sets."""
PRICED = [("felm", 0.05), ("prmbench", 0.2)]
FALSE_PRICE = """\
At equal coverage, a score that keeps more claims also keeps more false claims in the answers that
are not covered. We tried two penalties for these false claims in the Neyman-Pearson score
(``benchmarks/retention/controls.py``). Each expected false claim either reduces the gain by c or
increases the risk by c. We adopted neither penalty, because both lose about as many true claims
per false claim avoided as the existing ``gain="answers"``. Errors are naive standard errors over
the splits."""

ANSWERS = """\
With the default ``gain=0.5``, ``auto`` shows more answers than a scorer that maximises the number
of kept claims. ``StackingScorer(gain="answers")`` is trained to maximise the number of shown
answers. The PERL table above shows how many claims this setting costs."""

COVERAGE = """\
Leave-one-out coverage is correct by construction and therefore does not test the guarantee. Here,
half of the held-out questions are used for calibration and the other half for testing. The split
is repeated 50 times for each of 4 scorers. Answers to the same question are not independent, and
the standard errors account for this dependence. The band is the theoretical range, extended by
two standard errors on each side."""

RESOURCES = """\
The following times are for `~skdcf.CoherentConformalFilter` with ``alpha=0.05`` on one core, in
processor seconds. On the published half of PRMBench ({here[problems]:,.0f} answers,
{here[claims]:,.0f} claims, 30 columns), fitting takes {here[fit]:.1f} s and filtering all answers
takes {here[filter]:.1f} s. The peak memory is {here[memory]:,.0f} MB, including the data. The
whole set has 7,651 answers. If answers are repeated to reach this number ({all[claims]:,.0f}
claims), fitting takes {all[fit]:.1f} s and filtering takes {all[filter]:.1f} s, with a peak
memory of {all[memory]:,.0f} MB."""

CONDITIONS = """\
The numbers were computed at commit {commits} (a plus marks uncommitted changes) with {versions}.
Splits use seed 0, and each filter uses the seed of its split. Every file in ``benchmarks/results``
records its commit and versions. :doc:`results_tables` contains all tables. :doc:`measurements`
contains other measurements, such as speed and edge cases."""

MEASUREMENTS = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Further measurements
====================

This page contains the unedited output of benchmark programs, which other pages cite. All times
were measured on one core."""

FOLDS = """\
The former option ``calibration_size="cross"`` trained ten scorers, each without a tenth of the
problems, and calibrated on all problems. Such cross-conformal calibration guarantees a coverage
of only 1 - 2 alpha, so its guarantee at alpha / 2 equals the default's guarantee at alpha. At
alpha / 2, cross-conformal calibration keeps fewer true claims per answer than the default at
alpha. We compared both methods with 25, 50 and 100 labels, with and without the public prior, on
each of four sets. Cross-conformal calibration also takes ten times as long.

The numbers are means over 20 random samples. The difference is paired. "Mean of sets" is the mean
over the sets for each sample. For each set, the prior was fitted without the family of the set.
The prior has no columns for QAGS. Two more terms, which are not included here, weaken the
cross-conformal guarantee by up to 0.16 for 100 labels."""

MEASURED = {
    "online": "This program compares streamed decisions with ``predict`` on random graphs, and\n"
    "measures the coverage of these decisions and the number of true claims lost because later\n"
    "claims are unknown.",
    "agents": "This program stops agent runs at the first doubtful step\n"
    "(:doc:`../guide/agents`).",
    "judges": "This program calibrates filters on model verdicts. It measures the proportion of\n"
    "answers in which, according to human labels, the filter misses an error.",
    "edge_cases": "This program measures the coverage of common uses, with a target of 0.9.\n"
    'Each use either reaches this coverage or raises an error. Rows marked "void" have no\n'
    "guarantee, because the filter cannot detect an earlier step or was instructed to accept it.",
    "no_gain": "This program compares ``auto`` with the best of several baselines on five kinds\n"
    "of generated data with little information in the columns.",
    "hard_speed": "This program measures the time to compute masks for a million answers from\n"
    "their scores.",
    "relaxation_speed": "This program measures the time to compute a loss and its gradient,\n"
    "and the growth of this time with the data size.",
    "scorer_speed": "This program measures the time to fit the default scorer for one level and\n"
    "for several levels.",
    "text_speed": "This program measures the speed of computing text and graph columns, in\n"
    "claims per second.",
    "compare_speed": "This program measures the time to compare fast filters on many splits.",
    "large_problems": "This program measures the computing time for single problems\n"
    "with up to 100,000 claims.",
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
