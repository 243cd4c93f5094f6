"""The words of the results pages; numbers are filled in from the saved results."""

from benchmarks.methods import AUTO, LOGISTIC, MARGIN, OWN_SCORE, PUBLISHED

HEAD = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results; `make bench` does both anew.

Results
======="""

TABLES = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results; `make bench` does both anew.

Results, set by set
===================

The appendix to :doc:`results`: every table, what the labels of each set are worth, and where
nothing is gained."""

IN_SHORT = """\
In short
--------

Change of the number of true claims kept per answer in percent, ``auto`` against logistic
regression unless the row says otherwise. A star: p < 0.05. No star means that the difference is not
clear of its error."""

PROMISE = """\
With probability 1 - alpha, nothing false is left in an answer: every filter on this page
promises that, and the first figure shows what came out. Where it falls short most, it does by
{worst:.1f} percentage points, {errors:.1f} standard errors for as many independent questions.
Filters differ in how many true claims they keep. The first table compares the default with what
else one might do: a logistic regression that is calibrated in the same way, the same regression
with a fixed threshold (all claims that it gives a chance above 1/2), or nothing; "safe" is the
share of the answers in which no false claim is left."""

POOLED = (0.02, 0.05, 0.1, 0.2)
PEOPLE = ("people", "three people")
POOLED_ROW = "**mean of the {n} sets that people judged**"
AT_ONE_LEVEL = (
    "kept at {alpha:g}",
    "shown, %",
    "false among shown, %",
)
POOLING = """\
The {n} sets whose natural errors were judged by people, in one number: the mean of the logarithms
of how many times as many true claims ``auto`` keeps as the regression, over sets that differ by
more than chance (random effects by DerSimonian and Laird, 1986; ``benchmarks/pages/pooling.py``),
with the corrected error of each set. Derived labels, planted errors and the verdicts of models are
left out. A set in which one of the two keeps nothing at a level is left out there."""

CHOSEN = """\
The default was chosen among some ninety variants: powers of the gain, members of the mixture, what
counts as true below an error, frailty, the use of a prior. They were tried on QAGS CNN/DM,
RefChecker, FELM, PERL, ProcessBench gsm8k, the three subjects of Mr-Ben, and in part on GSM8K
solutions and ProcessBench math, so that the gains on these are optimistic. QAGS XSum, PRMBench and
Conformal-RAG were not looked at for this choice; older versions of the scorer were chosen while
PRMBench was."""

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
FIRST_TITLE = "True claims kept per answer, alpha = 0.1, and what else one might do"
FIRST_HEAD = [
    "data",
    "labelled by",
    "errors",
    "default / regression / its chance > 1/2 (safe) / everything (safe)",
    "default clear of regression?",
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
With ``online=True`` the risk of a claim is computed from the claims up to it, in calibration
and in use, so that claims are decided about while the answer is written
(:doc:`../guide/deploying`).
What that costs, with the Neyman-Pearson scorer, over new halves; at each level both keep the
promise. When claims are passed one by one, {streamed}."""

STOPPED = """\
Runs of AgentProcessBench (250 of 50 tasks, 2.22 good steps each) up to the first doubtful step,
with 40 tasks in ``fit``: the mean over the tasks, with its error. "Missed" is the share of runs in
which a step was carried out that people call wrong. :doc:`../guide/agents` has more."""

SUMMARY = """\
``auto`` is a mixture of scorers that was the default of `~skdcf.CoherentConformalFilter` before the
stack of today (:doc:`../guide/training` compares the two). It is measured against a
logistic regression that
gets the same columns and the same calibration. That regression had ``C=1``. With ``C=0.03``, its
default today, it keeps 4, 4, 2 and 1 % more at 0.02, 0.05, 0.1 and 0.2 over ten sets.
At alpha 0.05 the change in percent, with its corrected
standard error and a star where p < 0.05, is {planted} on PRMBench, whose errors were planted
by a model, and on natural errors {gsm} on GSM8K solutions (labels derived from final answers),
{perl} on PERL, {natural} on ProcessBench and {mr_ben} on Mr-Ben's mathematics. The last three
have some hundred answers each, too few to tell most filters apart. What moves the numbers most
is no filter: with three other answers to the same question as evidence ``auto`` keeps
{having:.2f} instead of {lacking:.2f} true claims per GSM8K solution at alpha 0.01, and a
logistic regression that sees the same three is at {logistic:.2f}."""

FIGURES = {
    "guaranteed": (
        "Promised and observed shares of answers without a false claim, for all data sets.",
        "Left: what was promised, and what came out, on every data set at four levels. One answer\n"
        "a question, half of the held-out questions calibrate and half are tested; bars are two\n"
        "standard errors for as many independent questions. Right: the same answers where claims\n"
        "are kept whose chance is above 1/2 by a logistic regression, and where nothing is\n"
        "removed. No fixed threshold keeps a promise: on two kinds of generated answers the same\n"
        "one leaves .96 and .61 of the answers safe (``benchmarks/guarantees/guarantee.py``),\n"
        "the calibrated filter .95 of both.",
    ),
    "retention": (
        "True claims kept against alpha on three data sets.",
        "True claims kept per answer against alpha. Bands are one corrected standard error\n"
        "to each side, drawn for two of the filters; Neyman-Pearson lies on ``auto``. All\n"
        "are measured on the same halves, so that differences are surer than the bands suggest\n"
        "(:doc:`results_tables`).",
    ),
    "forest": (
        "Change of the true claims kept by auto against a regression, one row per set.",
        "True claims kept by ``auto``, as times those that a logistic regression keeps, at four\n"
        "levels: one row a set that people judged, bars of two corrected standard errors, and\n"
        "below the random-effects mean, whose diamond is two errors wide to each side.\n"
        "An arrow: the bar goes on.",
    ),
    "labelled": (
        "True claims kept against the number of labelled problems.",
        "What labelled problems are worth: filters fitted as users fit them, on n problems\n"
        "of which some train and others calibrate, about one half of the questions, and filtering\n"
        "answers to the other half. Bars are standard errors over {draws} draws,\n"
        "numbers the gain of ``auto`` over logistic regression. The answers of PRMBench are\n"
        "about {asked} questions, of which half are known here: 400 answers are about 178\n"
        "questions, and 1,600 about 201; each trains, or calibrates once. So its lines stop\n"
        "rising. Where a line falls, that is luck of the draws: the largest fall between any two\n"
        "points is {fall:.1f} of its errors, where the filter happened to cover {few}\n"
        "labels and {more}.",
    ),
    "alternatives": (
        "True claims kept against the number of other answers.",
        "GSM8K solutions: true claims kept per answer by the number of other answers to the\n"
        "question, for logistic regression and for ``auto``, at the levels of alpha that stand\n"
        "beside the lines. Bars are corrected standard errors.",
    ),
}

READING = """\
How to read the tables
----------------------

One random half of the questions trains. Each answer of the other half is filtered with the
threshold from all *others* of that half (`skdcf.metrics.leave_one_out`). Where a question has
one answer, every filter then has exactly the same coverage. Where it has several, one of them
calibrates (numbers are means over ten draws of it), and all are counted: filters of one table
then differ by up to {spread:.1f} percentage points of coverage
({where}), which is the luck of these draws.

Retention is the number of true claims kept per answer; the largest of a column is bold. Below
stand changes in percent with their *corrected* standard errors (Nadeau and Bengio, 2003), which
allow for the same answers being divided again and again; a star marks p < 0.05.
:doc:`../guide/choosing` explains both. All filters of a table get the same columns
unless a row says
otherwise, and ties are broken in the same way."""

RAG = """\
Conformal-RAG (Feng et al., SIGIR 2025, arXiv:2506.20978) filters the claims of long answers by
their similarity to the passages that a question has. On its authors' own data
(`~skdcf.datasets.fetch_conformal_rag`: 1,603 answers to medical questions, judged by a
**language model**) their published score is calibrated here as every other score. Regression
and ``auto`` see columns that are computed from question, claims and passages, and neither that
score nor a model. What they add over it is evidence, more than training: the regression gains
most of it. Their paper also calibrates by group; ``by=`` does that here
(:doc:`../guide/guarantee`), and
is not part of this table."""

RIVALS = """\
The same data in two packages for the same promise, MACI (maci-conformal) and the ``Claim``
query of cci-sdk, installed into an environment of their own by
``python -m benchmarks.retention.rivals``.
Every row gets the same answers. Rows of one score differ in the filter alone: MACI adds up
costs within an answer and calibrates by group, cci-sdk does what `~skdcf.HardCF` does. MACI is
made for the scores of several language models, which nobody published for these answers; here
it combines the published score and two columns of skdcf. The regression was trained on half of
the known answers, the other half of which calibrates. Errors are naive ones over the halves;
the promise is the second number."""

LABELS = {
    "qags-cnndm": """\
Summaries of news by systems of 2018 and 2019, each sentence judged by three people against the
article, which is the context (:doc:`../guide/features`). These systems copy a lot, which
flatters columns
that look for copies.""",
    "qags-xsum": """\
One sentence a summary, in words of its own, judged in the same way. 120 sentences train.""",
    "refchecker": """\
Triplets from answers of seven models, of which people said whether the reference entails or
contradicts them; where it does neither the claim is not supported, and counts as false.
No edges, no context. "Six others" adds the columns of :doc:`../guide/features` from the
other models'
answers, whose triplets are compared as texts.""",
    "felm": """\
Segments of ChatGPT's answers in mathematics, reasoning, science and world knowledge, judged by
people; each segment is taken to build on the one before it. This is the second set of
arXiv:2604.20098, whose printed settings are the row "as published", on the columns of this
page; its tables end at 0.1, and 0.2 takes the settings of 0.1. The margin of 20 is printed for the
validation of the paper alone; with 0.1 the same settings keep more (:doc:`paper`).""",
    "mr-ben-biology": """\
The same for biology, where 60 % of the answers are right, so that majorities are worth
something.""",
    "mr-ben-chemistry": """\
The same for chemistry, where 45 % of the answers are right.""",
    "prmbench": """\
GPT-4o wrote errors of a given kind into right solutions of PRM800K. The labels are its own:
true steps may follow a false one. Errors of this kind are partly a matter of style, so look
at the style control below before you believe a number. Half of the set is published as
training files; that half is here.""",
    "process-bench": """\
Answers of twelve models in which people marked the first wrong step: natural errors, and the
best labels on this page. Its questions are of grade-school mathematics.""",
    "process-bench-math": """\
The same for the questions of MATH. Of its questions 26 are among those that the public prior has
seen; they are set aside wherever it is used.""",
    "conformal-rag": """\
Long answers to medical questions (Feng et al., SIGIR 2025, arXiv:2506.20978), with passages that go
back to a reference answer. Whether a claim is supported was judged by a **language model**, so the
set is in no mean over people's labels. "The score of its authors" is the similarity of a claim to
the passages, calibrated as every other score here; "its score" adds it to the columns.""",
    "mr-ben": """\
Answers of three models to exam questions, first errors marked by people. Five of six answers
are wrong, which leaves little to keep at strict levels. "Agreement" adds the columns of
:doc:`../guide/features`, from the answers of the other two models. On this subject most models are
wrong together, so that agreement gains nothing that is clear of its error.""",
    "gsm8k-solutions": """\
Four models' solutions of each question, with exact graphs. The labels are *derived* from
final answers and reference solutions; nobody judged the steps. On steps that people judged
as well they agree in 89 %. A label made from the final answer flatters whatever looks at
final answers, and agreement does. "Three others" adds the columns of
:doc:`../guide/features` from the
other three models' solutions; in use, others are samples of one model. "Agreement alone" is one
column, the share of others with the same final answer, as the score of `~skdcf.HardCF`. It has
few values: ties hold it back, and broken by a jitter it comes close to a trained scorer at
strict levels and falls behind above.""",
    "perl-natural": """\
PERL without the solutions into which errors were written: what models got right or wrong by
themselves, steps and premises judged by people. A step that builds on an error counts as
false.""",
    "perl": """\
The same with the solutions into which errors were written, 294 in all, as in the papers that
use the set.""",
}

WORDING = """\
PRMBench writes most questions down in several ways. Halves by the wording put the same
question on both sides, and a filter may then know its answer from training. For comparison
with numbers that were measured so:"""

STYLE = """\
**Style control.** Some steps of a changed answer were rewritten, but stayed true. A score that
tells them from true steps left as they were sees who wrote a step, rather than what is wrong
in it. The second column would be 0.5 if style were not seen at all. Only steps before the
first error count; part of the gap is position, since changes stand where errors stand."""

SYMBOLIC = """\
What agreement and numbers of other answers do stands in the tables above.

A hazard from the words of claims was built and measured as well. On PRMBench it kept 4 to 10 %
more from 0.02 on, but about half of what it learnt was who wrote a step: it told rewritten, but
true steps from those left as they were with an AUC of 0.737, where the others have 0.715. Below
300 problems to train on, words cost more than they told. Eight columns of symbolic checks
(identities at fixed points, equations equivalent to an earlier one, values that solve an earlier
equation or do not, found values substituted) were built, tested and measured on the same splits.
On none of the data that were at hand did they gain. Most answers of ProcessBench's gsm8k part
have no equation with a variable, and on the algebra of PRMBench the change is within its error.
Change of retention in percent, with corrected errors:"""
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2)

LEARNT = {
    "perl": "PERL",
    "prmbench": "PRMBench",
    "gsm8k-solutions": "GSM8K solutions",
    "process-bench": "ProcessBench (gsm8k)",
    "felm": "FELM",
}
CLASSIFIER = """\
``ClassifierScorer(target=...)`` learns each claim's own label ("own"), whether the claim and all
its ancestors are true ("coherent"), or the own label of those claims alone whose ancestors are all
true ("hazard", which is what ``auto`` looks at). {n} halves by question; changes against the hazard
label, with corrected errors.

The hazard label is the baseline of every comparison on these pages, since it is the fair one: what
stands below an error is many claims of GSM8K solutions and of FELM, and a regression that leaves it
out keeps more there. ProcessBench judges nothing below an error, so that there is nothing to
leave out. On PRMBench true claims follow false ones, and the own label keeps some percent more at
0.1 and 0.2, within a corrected error. To learn whether all ancestors are true as well loses on most
sets."""
PRICED = [("felm", 0.05), ("prmbench", 0.2)]
FALSE_PRICE = """\
At equal coverage a score that keeps more claims leaves more false ones in the answers where it
fails. The Neyman-Pearson score was given prices for that (``benchmarks/retention/controls.py``): an
expected false claim takes c off the gain, or adds c to the risk. Nothing of it was built in: for
the false claims that it saves it costs about as many true ones as ``gain="answers"``, which is
there. Naive errors over halves."""

ANSWERS = """\
``auto`` spends its risk where it keeps most claims, and so empties answers that another score
would leave something of. ``StackingScorer(gain="answers")`` is for users who need something in
every answer. What it costs in claims stands in the table of PERL above."""

COVERAGE = """\
Leave-one-out coverage is what it must be by its construction. So here half of the held-out
questions calibrate and the other half is tested, 50 times for each of 4 scorers. An answer's
neighbours to the same question are no independent tests, which the error allows for. The band
is theory plus and minus two such errors."""

RESOURCES = """\
`~skdcf.CoherentConformalFilter` with ``alpha=0.05`` on the PRMBench answers that are here
({here[problems]:,.0f} answers, {here[claims]:,.0f} claims, 30 columns), on one core and in
seconds of its processor: fitted in {here[fit]:.1f} s, all answers filtered in
{here[filter]:.1f} s, {here[memory]:,.0f} MB at the peak, data included. The whole set has 7,651
answers. As many, half of them a second time ({all[claims]:,.0f} claims): {all[fit]:.1f} s and
{all[filter]:.1f} s, together {total:.1f} s, {all[memory]:,.0f} MB."""

CONDITIONS = """\
Computed at commit {commits} (a plus: with changes) with {versions}. Splits are drawn with
seed 0, filters with that of their split; every file in ``benchmarks/results`` names its own.
:doc:`results_tables` has every table, :doc:`measurements` what else was measured: speed, edge
cases."""

MEASUREMENTS = """\
..
   Written by benchmarks/pages/report.py from benchmarks/results; `make bench` does both anew.

Further measurements
====================

What the programs behind other pages print, word for word, folded. Times are of one core."""

FOLDS = """\
``calibration_size="cross"`` trained ten scorers, each without a tenth of the problems, and
calibrated with all of them. It was taken out: its promise is 1 - 2 alpha, so that with alpha / 2
it promises what the default promises with alpha, and there it keeps fewer true claims per answer
with 25, 50 and 100 labels, with the public prior and without, on each of four sets, and takes ten
times as long. Means of 20 draws; the difference is paired, and "mean of sets" is the mean over
the sets of each draw. The prior was made without the family of the set, and has no columns for
QAGS. Two terms that make the promise of folds weaker still, for 100
labels by up to .16, are left out."""

MEASURED = {
    "online": "Streamed decisions of random graphs against ``predict``, their coverage,\n"
    "and what it costs not to look ahead.",
    "agents": "Runs of agents that are stopped at the first doubtful step\n"
    "(:doc:`../guide/agents`).",
    "judges": "What is missed by people's labels where models judged what calibrates.",
    "edge_cases": "What users do, and what it does to a coverage of 0.9: as promised, refused, or\n"
    "void where the filter cannot see what was done before it, or was told to accept it.",
    "no_gain": "Five kinds of generated data on which learning has little to learn from.",
    "hard_speed": "From scores to masks, for a million answers.",
    "relaxation_speed": "A loss with its gradient, and how time grows with the data.",
    "scorer_speed": "Fitting the default scorer for one level and for several.",
    "text_speed": "Columns computed from texts and graphs, in claims a second.",
    "compare_speed": "A comparison of cheap filters on many splits.",
    "large_problems": "One problem of up to 100,000 claims.",
}

IN_SHORT_PAIRS = {
    "qags-cnndm": [(AUTO, LOGISTIC, "QAGS (CNN/DM), 235 summaries, natural errors")],
    "qags-xsum": [(AUTO, LOGISTIC, "QAGS (XSum), 239 summaries, natural errors")],
    "refchecker": [
        (AUTO, LOGISTIC, "RefChecker, 1,400 answers, natural errors"),
        (f"{AUTO}, 6 others", AUTO, "six other models' answers by themselves, `auto`"),
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
        (f"{AUTO}, agreement", AUTO, "two other models' answers by themselves, `auto`"),
    ],
    "mr-ben-chemistry": [
        (AUTO, LOGISTIC, "Mr-Ben (chemistry), 848 answers, natural errors"),
        (f"{AUTO}, agreement", AUTO, "two other models' answers by themselves, `auto`"),
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
        (f"{AUTO}, 3 others", AUTO, "the other answers by themselves, `auto`"),
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
