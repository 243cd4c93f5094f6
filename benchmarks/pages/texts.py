"""The words of the results pages; numbers are filled in from the saved results."""

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

This appendix to :doc:`results` has all tables. It also describes how reliable the labels of each
set are, and lists what we tried without success."""

IN_SHORT = """\
In short
--------

The table shows the change in the number of true claims kept per answer, in percent. It compares
``auto`` with logistic regression unless the row says otherwise. A star marks p < 0.05."""

GUARANTEE = """\
Every filter on this page guarantees that, with probability at least 1 - alpha, an answer has no
false claim left. The first figure compares this guarantee with the observed coverage. The
largest shortfall is {worst:.1f} percentage points, or {errors:.1f} standard errors for this
number of independent questions.

Filters differ in how many true claims they keep. The first table compares the default with a
logistic regression with the same calibration, with the same regression and a fixed threshold
(all claims with a predicted probability above 1/2), and with keeping everything. "Safe" is the
share of answers without a false claim."""

POOLED = (0.02, 0.05, 0.1, 0.2)
PEOPLE = ("people", "three people")
POOLED_ROW = "**mean of the {n} sets judged by people**"
AT_ONE_LEVEL = (
    "kept at {alpha:g}",
    "shown, %",
    "false among shown, %",
)
POOLING = """\
This section combines the {n} sets with natural errors judged by people. The effect of a set is
the logarithm of the ratio of the true claims kept by ``auto`` and by the regression, with its
corrected error. The mean is a random-effects mean (DerSimonian and Laird, 1986;
``benchmarks/pages/pooling.py``), which allows for differences between the sets. Derived labels,
planted errors and labels by models are excluded. A set is also excluded at levels at which one
of the two keeps nothing."""

CHOSEN = """\
The default was selected from about ninety variants. They differed in the power of the gain, the
members of the mixture, which claims below an error count as true, frailty, and the use of a
prior. The variants were compared on QAGS CNN/DM, RefChecker, FELM, PERL, ProcessBench gsm8k, the
three subjects of Mr-Ben, and in part on GSM8K solutions and ProcessBench math, so the gains on
these sets are optimistic. QAGS XSum, PRMBench and Conformal-RAG were not used for this
selection, but PRMBench was used to select older versions of the scorer."""

EVIDENCE_LEVEL = 0.05
EVIDENCE_HEAD = [
    "what you have",
    "true claims kept per answer at 0.05, without and with it",
    "calls of a model per answer",
    "computing, or people, per answer",
    "how",
]
EVIDENCE = {
    "text": (
        "question and claims alone",
        "none",
        "`skdcf fit labelled.jsonl -o model.skops`",
    ),
    "passages": (
        "the passages it was written from (QAGS CNN/DM, summaries)",
        "none",
        '`"context": [...]` in each line',
    ),
    "others": (
        "two other answers, compared word by word (Mr-Ben biology)",
        "2",
        "`skdcf extract answers.jsonl -o problems.jsonl --model NAME --samples 2`",
    ),
    "frequency": (
        "how often each claim comes back in five others (150 answers of conformal factuality)",
        "5 answers, 5 comparisons",
        "the same with `--samples 5 --features frequency`",
    ),
    "check": (
        "one check by a person, where it pays (ProcessBench math)",
        "none",
        "`skdcf label --review model.skops answers.jsonl`",
    ),
}
WITHOUT = "the first number of each row below"
#: Rows of README's table.
README_HEAD = [
    "default / regression, alpha = 0.1",
    "wrong before",
    "shown",
    "wrong among passing",
    "wrong among shown",
    "true claims per answer",
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
    "prmbench": ("PRMBench, 3,754", "the model that planted them", "planted"),
}
WRITTEN = """\
With ``online=True``, the risk of a claim is computed from the claims up to it, both in
calibration and in use, so each claim is decided while the answer is being written
(:doc:`../guide/deploying`). The table shows the cost with the Neyman-Pearson scorer, over new
halves. Both ways keep the guarantee at each level.

In a simulation, the claims of {graphs} random graphs ({claims} claims) were passed one by one.
The decisions differ from those of ``predict`` for {differ} graphs, and {safe} % of the graphs
have no false claim. The guarantee is {guaranteed} %, and with {calibration} calibration problems
{share} % of such shares lie between {low} and {high} %."""

STOPPED = """\
Runs of AgentProcessBench are stopped at the first doubtful step. There are 250 runs of 50 tasks,
with 2.22 good steps each, and ``fit`` uses 40 tasks. The numbers are means over the tasks, with
their errors. "Missed" is the share of runs in which a step was carried out that people judged
wrong. See also :doc:`../guide/agents`."""

SUMMARY = """\
``auto`` is a mixture of scorers. It was the default of `~skdcf.CoherentConformalFilter` before
the current stack (:doc:`../guide/training` compares the two). Here, it is compared with a
logistic regression with the same columns and the same calibration. This regression used ``C=1``.
With the current default, ``C=0.03``, it keeps 4, 4, 2 and 1 % more true claims at 0.02, 0.05,
0.1 and 0.2, over ten sets.

At alpha = 0.05, the change in percent, with its corrected standard error and a star if p < 0.05,
is {planted} on PRMBench, whose errors were planted by a model. On natural errors, it is {gsm} on
GSM8K solutions (labels derived from final answers), {perl} on PERL, {natural} on ProcessBench
and {mr_ben} on Mr-Ben mathematics. The last three sets have a few hundred answers each, which is
too few to distinguish most filters.

More evidence matters more than the filter. With three other answers to the same question,
``auto`` keeps {having:.2f} instead of {lacking:.2f} true claims per GSM8K solution at alpha =
0.01. A logistic regression with the same three answers keeps {logistic:.2f}."""

FIGURES = {
    "guaranteed": (
        "Guaranteed and observed shares of answers without a false claim, for all data sets.",
        "Left: guaranteed and observed coverage on every data set, at four levels. One "
        "answer per question is used. Half of the held-out questions are used for calibration and "
        "half for testing. Bars are two standard errors for this number of independent "
        "questions. Right: the same answers, with the claims for which a logistic regression "
        "predicts a probability above 1/2, and with all claims. A fixed threshold gives no "
        "guarantee. On two kinds of generated answers, the same threshold leaves .96 and .61 of "
        "the answers safe (``benchmarks/guarantees/guarantee.py``), and the calibrated filter .95 "
        "of both.",
    ),
    "retention": (
        "True claims kept against alpha on three data sets.",
        "True claims kept per answer against alpha. Bands are one corrected standard error on "
        "each side, shown for two of the filters. The line of Neyman-Pearson coincides with "
        "``auto``. All filters use the same halves, so differences are more certain than the "
        "bands suggest (:doc:`results_tables`).",
    ),
    "forest": (
        "Change of the true claims kept by auto against a regression, one row per set.",
        "True claims kept by ``auto``, as a multiple of those kept by a logistic regression, at "
        "four levels. Each row is a set judged by people, with bars of two corrected standard "
        "errors. The last row is the random-effects mean. Its diamond extends two errors to "
        "each side. An arrow marks a bar that is cut off.",
    ),
    "labelled": (
        "True claims kept against the number of labelled problems.",
        "True claims kept against the number n of labelled problems. The filters are fitted as "
        "users would fit them, with part of the n problems for training and part for "
        "calibration. The problems are from one half of the questions, and the filters are "
        "applied to answers to the other half. Bars are standard errors over {draws} draws. "
        "Numbers are the gain of ``auto`` over logistic regression. PRMBench has {asked} "
        "questions, half of which are available here. 400 answers belong to about 178 "
        "questions, and 1,600 to about 201. Each question is used either for training or once "
        "for calibration, so its lines stop rising. The lines fall only by chance. The largest "
        "fall between two points is {fall:.1f} of its errors, and the coverage at these points "
        "is {few} labels and {more}.",
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
with the threshold computed from all *other* answers of that half
(`skdcf.metrics.leave_one_out`). If each question has one answer, all filters have exactly the
same coverage. If a question has several answers, one of them is used for calibration (numbers
are means over ten draws), and all are evaluated. In this case, the coverage of the filters in a
table differs by chance, by up to {spread:.1f} percentage points ({where}).

Retention is the number of true claims kept per answer. The largest value in each column is bold.
The rows below are changes in percent with *corrected* standard errors (Nadeau and Bengio, 2003),
which account for the overlap between splits. A star marks p < 0.05 (see
:doc:`../guide/choosing`). All filters of a table use the same columns unless a row says
otherwise, and break ties in the same way."""

RAG = """\
Conformal-RAG (Feng et al., SIGIR 2025, arXiv:2506.20978) filters the claims of long answers by
their similarity to the passages retrieved for the question. The data are those of its authors
(`~skdcf.datasets.fetch_conformal_rag`), 1,603 answers to medical questions, judged by a
**language model**. Their published score is calibrated here like any other score. The regression
and ``auto`` use columns computed from question, claims and passages. They use neither that score
nor a model. Most of the gain comes from these columns rather than from training, because the
regression already achieves most of it. The authors also calibrate by group, which ``by=`` does in
skdcf (:doc:`../guide/guarantee`). This table does not use groups."""

RIVALS = """\
The next comparison includes two other packages with the same guarantee, MACI (maci-conformal)
and the ``Claim`` query of cci-sdk. ``python -m benchmarks.retention.rivals`` installs them into
a separate environment. All rows use the same answers, and rows with the same score differ only
in the filter. MACI adds costs within an answer and calibrates by group. cci-sdk filters in the
same way as `~skdcf.HardCF`. MACI is designed for the scores of several language models, which
are not available for these answers. Here, it combines the published score with two columns of
skdcf. The regression was trained on half of the known answers and calibrated on the other half.
Errors are naive standard errors over the halves. The guarantee concerns the second number."""

LABELS = {
    "qags-cnndm": """\
Summaries of news by systems of 2018 and 2019. Three people judged each sentence against the
article, which is the context (:doc:`../guide/features`). These systems copy much of the article,
which favours columns that detect copies.""",
    "qags-xsum": """\
Summaries of one sentence, written in new words and judged in the same way. Only 120 sentences
are used for training.""",
    "refchecker": """\
Triplets from answers of seven models. People judged whether the reference entails or contradicts
each triplet. If it does neither, the claim is not supported and counts as false. There are no
edges and no context. "Six others" adds the columns of :doc:`../guide/features` from the answers
of the other models. Their triplets are compared as texts.""",
    "felm": """\
Segments of ChatGPT answers in mathematics, reasoning, science and world knowledge, judged by
people. Each segment is assumed to depend on the previous one. This is the second data set of
arXiv:2604.20098. The row "as published" uses the settings printed there with the columns of this
page. The printed settings end at 0.1, so 0.2 uses those of 0.1. The paper gives the margin of 20
only for its validation. With a margin of 0.1, the same settings keep more (:doc:`paper`).""",
    "mr-ben-biology": """\
Answers to biology questions of the same kind. 60 % of the answers are right, so majorities are
informative.""",
    "mr-ben-chemistry": """\
Answers to chemistry questions of the same kind. 45 % of the answers are right.""",
    "prmbench": """\
GPT-4o wrote errors of a given kind into correct solutions of PRM800K. The labels are those of
GPT-4o, and true steps may follow a false one. Errors of this kind are partly a matter of style,
so see the style control below before you rely on these numbers. Only half of the set is
published as training files, and this half is used here.""",
    "process-bench": """\
Answers of twelve models in which people marked the first wrong step. The errors are natural, and
the labels are the best on this page. The questions are grade-school mathematics.""",
    "process-bench-math": """\
Answers to MATH questions, judged in the same way. 26 of the questions were also used for the
public prior. They are excluded whenever the prior is used.""",
    "conformal-rag": """\
Long answers to medical questions (Feng et al., SIGIR 2025, arXiv:2506.20978), with passages from
a reference answer. A **language model** judged whether each claim is supported, so this set is
excluded from the means over human labels. "The score of its authors" is the similarity of a
claim to the passages, calibrated like every other score here. "Its score" adds this score to the
columns.""",
    "mr-ben": """\
Answers of three models to exam questions, with the first error marked by people. Five of six
answers are wrong, so there is little to keep at strict levels. "Agreement" adds the columns of
:doc:`../guide/features` from the answers of the other two models. In mathematics, the models are
mostly wrong together, so the gain from agreement is within its error.""",
    "gsm8k-solutions": """\
Solutions of four models to each question, with exact graphs. The labels are *derived* from final
answers and reference solutions, not judged by people. On steps that people also judged, they
agree with people in 89 % of the steps. Labels derived from final answers favour features that
use final answers, such as agreement. "Three others" adds the columns of :doc:`../guide/features`
from the other three models' solutions. In use, the other answers are samples of one model.
"Agreement alone" is a single column, the share of other answers with the same final answer, as
the score of `~skdcf.HardCF`. This column has few values, so ties limit it. With ties broken by
jitter, it is close to a trained scorer at strict levels and worse at the others.""",
    "perl-natural": """\
PERL without the solutions with planted errors. It has the correct and wrong solutions that
models wrote themselves, with steps and premises judged by people. A step that depends on an
error counts as false.""",
    "perl": """\
PERL with the solutions with planted errors, 294 in total, as in the papers that use this set.""",
}

WORDING = """\
PRMBench has several wordings of most questions. Splitting by wording puts the same question on
both sides, so a filter may know its answer from training. The next table is only for comparison
with published numbers that were computed in this way."""

STYLE = """\
**Style control.** In changed answers, some steps were rewritten but remained true. A score that
separates them from unchanged true steps detects who wrote a step rather than whether it is
wrong. The second column would be 0.5 if the score ignored style. Only steps before the first
error count. Part of the gap is due to position, because changes are made close to errors."""

SYMBOLIC = """\
The effect of agreement and of other answers is in the tables above.

We also tried a hazard model on the words of claims. On PRMBench, it kept 4 to 10 % more claims
from 0.02 on, but about half of what it learnt was who wrote a step. Its AUC for rewritten true
steps against unchanged ones is 0.737, compared with 0.715 for the others. With fewer than 300
training problems, the words reduced retention.

Eight columns of symbolic checks were also measured on the same splits. They test identities at
fixed points, equations equivalent to an earlier one, values that do or do not solve an earlier
equation, and substituted values. They gained nothing on any data set. Most answers of
ProcessBench gsm8k have no equation with a variable, and on the algebra of PRMBench the change is
within its error. The table shows the change in retention in percent, with corrected errors."""
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2)

LEARNT = {
    "perl": "PERL",
    "prmbench": "PRMBench",
    "gsm8k-solutions": "GSM8K solutions",
    "process-bench": "ProcessBench (gsm8k)",
    "felm": "FELM",
}
CLASSIFIER = """\
``ClassifierScorer(target=...)`` can learn three labels. "Own" is the label of each claim.
"Coherent" is true if the claim and all its ancestors are true. "Hazard" is the own label,
restricted to claims whose ancestors are all true, and is what ``auto`` learns. The table shows
{n} halves by question and the changes relative to the hazard label, with corrected errors.

The hazard label is the baseline of all comparisons on these pages, because it is the fairest.
In GSM8K solutions and FELM, many claims are below an error, and a regression that excludes them
keeps more claims. ProcessBench has no labels below an error, so nothing is excluded. On
PRMBench, true claims follow false ones, and the own label keeps a few percent more at 0.1 and
0.2, within a corrected error. The coherent label is worse on most sets."""
PRICED = [("felm", 0.05), ("prmbench", 0.2)]
FALSE_PRICE = """\
At equal coverage, a score that keeps more claims leaves more false claims in the answers for
which it fails. We tried two prices for this in the Neyman-Pearson score
(``benchmarks/retention/controls.py``). Each expected false claim either reduces the gain by c or
increases the risk by c. Neither was adopted, because they lose about as many true claims per
false claim avoided as the existing ``gain="answers"``. Errors are naive standard errors over
halves."""

ANSWERS = """\
``auto`` spends its risk on the answers with the most claims to keep, so it empties some answers
of which another score would keep a part. Use ``StackingScorer(gain="answers")`` if every answer
should show something. The table of PERL above shows its cost in claims."""

COVERAGE = """\
Leave-one-out coverage is correct by construction, so it is not a test. Here, half of the
held-out questions are used for calibration and the other half for testing, 50 times for each of
4 scorers. Answers to the same question are not independent, and the errors account for this. The
band is the theoretical range plus and minus two errors."""

RESOURCES = """\
These numbers are for `~skdcf.CoherentConformalFilter` with ``alpha=0.05`` on one core, in
processor seconds. On the published half of PRMBench ({here[problems]:,.0f} answers,
{here[claims]:,.0f} claims, 30 columns), fitting takes {here[fit]:.1f} s and filtering all
answers takes {here[filter]:.1f} s, with a peak of {here[memory]:,.0f} MB including the data. The
whole set has 7,651 answers. For the same number of answers, half of them repeated
({all[claims]:,.0f} claims), the times are {all[fit]:.1f} s and {all[filter]:.1f} s, {total:.1f}
s in total, with {all[memory]:,.0f} MB."""

CONDITIONS = """\
Computed at commit {commits} (a plus marks uncommitted changes) with {versions}. Splits use seed
0, and each filter uses the seed of its split. Every file in ``benchmarks/results`` records its
commit and versions. :doc:`results_tables` has all tables. :doc:`measurements` has other
measurements, such as speed and edge cases."""

MEASUREMENTS = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results. Run `make bench` to update both.

Further measurements
====================

This page has the unedited output of the programs behind other pages. Times are for one core."""

FOLDS = """\
``calibration_size="cross"`` trained ten scorers, each without a tenth of the problems, and
calibrated on all problems. We removed this option. Its guarantee is only 1 - 2 alpha, so it
needs alpha / 2 for the guarantee that the default has with alpha. At this level, it keeps fewer
true claims per answer with 25, 50 and 100 labels, with and without the public prior, on each of
four sets. It also takes ten times as long.

The numbers are means of 20 draws. The difference is paired, and "mean of sets" is the mean over
the sets of each draw. The prior was computed without the family of the set and has no columns
for QAGS. Two more terms weaken the guarantee over folds, by up to .16 for 100 labels. They are
not included here."""

MEASURED = {
    "online": "Streamed decisions for random graphs compared with ``predict``, their coverage,\n"
    "and the claims lost because later claims are not known.",
    "agents": "Runs of agents that are stopped at the first doubtful step\n"
    "(:doc:`../guide/agents`).",
    "judges": "Share of answers with a missed error, by people's labels, if models judged the\n"
    "calibration answers.",
    "edge_cases": "The effect of common uses on a coverage of 0.9. Either the coverage is kept,\n"
    "or the use is refused, or the guarantee is void because the filter cannot detect an\n"
    "earlier step or was told to accept it.",
    "no_gain": "Five kinds of generated data in which there is little to learn.",
    "hard_speed": "Time from scores to masks for a million answers.",
    "relaxation_speed": "Time for a loss with its gradient, and its growth with the data size.",
    "scorer_speed": "Time to fit the default scorer for one level and for several.",
    "text_speed": "Columns computed from texts and graphs, in claims per second.",
    "compare_speed": "A comparison of fast filters on many splits.",
    "large_problems": "Single problems of up to 100,000 claims.",
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
        (PUBLISHED, LOGISTIC, "the same, the published settings, margin 20"),
        (MARGIN, LOGISTIC, "the same, the published settings, margin 0.1"),
    ],
    "prmbench": [
        (AUTO, LOGISTIC, "PRMBench, 3,754 answers, errors planted by a model")
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
            "the same, both with three other answers as evidence",
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
        (AUTO, OWN_SCORE, "the same, against the score of its authors"),
    ],
}
