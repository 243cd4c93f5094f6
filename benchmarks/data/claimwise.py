"""Data sets in which people judged every claim of an answer."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Unpack

from skdcf._checks import check_choice
from skdcf.datasets.fetch import (
    SCORES,
    Names,
    Options,
    Rule,
    chosen,
    fetcher,
    parse_scored,
    read_words,
)

from .reading import load, read_object, rows

_PERL_SUBSETS = ("gsm8k", "math", "metamathqa", "orcamath")
_PERL_KINDS = ("negatives", "positives", "positives_perturbed")
_SUBSETS = {"factscore": "factscore", "nq": "nq", "math": "MATH"}
#: File names begin with the source of the questions, which depends on the setting.
_STEMS = {"accurate_context": "dolly", "noisy_context": "msmarco", "zero_context": "nq"}
_NAMES = "alpaca_7B chatgpt claude2 davinci001 falcon_40B_instruct gpt4 llama2_70b_chat"
_ENTAILED = {"Entailment": 1, "Contradiction": 0}
_NEUTRAL = {"false": 0, "unknown": -1}


@fetcher()
def fetch_conformal_factuality(
    subset: str = "factscore", *, graph: Rule = "none", **options: Unpack[Options]
) -> Any:
    """Load the Conformal Factuality data set of 50 answers with scored and labelled claims.

    Parameters
    ----------
    subset : {"factscore", "nq", "math"}
        Source of the questions: biographies, Natural Questions or MATH problems.
    graph : {"none", "chain"} or callable
        Edge rule. With "none", the claims are independent. With "chain", each claim depends on the
        previous claim. A callable ``graph(claims, problem)`` must return pairs (parent, child),
        like the functions of `skdcf.edges`.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error for a problem with an unknown label, or to drop the problem.
    {return_options}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts), ``labels`` (list of 0/1 int
        arrays), ``groups`` (question index of each problem), ``feature_names``, ``dropped`` (list
        of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown, or if a problem is invalid and ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Mohri, Hashimoto, *Language Models with Conformal Factuality Guarantees*, 2024,
    arXiv:2402.10978.
    """
    check_choice("subset", subset, _SUBSETS)
    file = f"{_SUBSETS[subset]}_subclaims_with_scores.jsonl"
    of = "conformal_factuality"
    entries = read_object(f"{of}/{file}", options)["data"]
    records = {f"{of}/{subset}/{i}": entry for i, entry in enumerate(entries)}
    parse = partial(parse_scored, scores=SCORES, label="annotation")
    return load(of, records, parse, options, graph=graph, subset=subset, file=file)


@fetcher()
def fetch_refchecker(
    setting: Names = "all",
    *,
    alternatives: bool = True,
    neutral: Literal["false", "unknown"] = "false",
    **options: Unpack[Options],
) -> Any:
    """Load RefChecker, a data set of human-labelled triplets from the answers of seven models.

    Parameters
    ----------
    setting : {"accurate_context", "noisy_context", "zero_context", "all"} or list
        Parts of the data set to load. The parts differ in the context that the models received
        with the question.
    alternatives : bool
        Whether to include the other six models' answers to the same question as alternatives.
    neutral : {"false", "unknown"}
        Label of neutral claims, which the reference neither supports nor contradicts. With
        "false", the label is 0, because an annotator judged the claim and did not find it
        supported. With "unknown", the label is -1, which is also the label of unjudged claims.
        The metadata contain the original verdicts.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error for an answer with an unknown label, or to drop the answer.
    {return_options}

    Returns
    -------
    dataset : Bunch
        The data set, with the same attributes as in `fetch_mr_ben`. The graphs have no
        questions and no edges.

    Raises
    ------
    ValueError
        If a name is unknown, or if an answer is invalid and ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Hu et al., *RefChecker: Reference-based Fine-grained Hallucination Checker and
    Benchmark for Large Language Models*, 2024, arXiv:2405.14486.
    """
    of = chosen(setting=(setting, _STEMS)) | {"model": _NAMES.split()}
    check_choice("neutral", neutral, list(_NEUTRAL))
    parse = partial(_parse_refchecker, neutral=_NEUTRAL[neutral])
    records = rows(_refchecker_file, "refchecker/{setting}/{model}/{i}", options, **of)
    answer = ("setting", "id", "model", "response") if alternatives else None
    return load("refchecker", records, parse, options, answer=answer, **of)


def _refchecker_file(setting, model):
    return f"refchecker/{setting}/{_STEMS[setting]}_{model}_answers.json"


def _parse_refchecker(record, neutral):
    triplets = record["claude2_response_kg"]
    verdicts = [entry["human_label"] for entry in triplets]
    return {
        "claims": [" ".join(entry["triplet"]) for entry in triplets],
        "labels": read_words("human_label", verdicts, _ENTAILED | {"Neutral": neutral}),
        "group": f"{record['setting']}/{record['id']}",
        "metadata": {key: record[key] for key in ("model", "setting")}
        | {"question": record["id"], "verdicts": verdicts},
    }


@fetcher()
def fetch_qags(
    subset: Names = "all", *, graph: Rule = "none", **options: Unpack[Options]
) -> Any:
    """Load QAGS, a data set of summaries in which people compared each sentence with the article.

    Parameters
    ----------
    subset : {"cnndm", "xsum", "all"} or list of them
        Source of the articles. Each summary has three sentences for CNN/DailyMail ("cnndm") and
        one sentence for XSum ("xsum").
    graph : {"none", "chain"} or callable
        Edge rule. With "none", the sentences are independent. With "chain", each sentence depends
        on the previous sentence. A callable ``graph(claims, None)`` must return pairs (parent,
        child), like the functions of `skdcf.edges`.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error for a summary with invalid responses, or to drop the summary.
    {return_options}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with sentences as claims and the article
        as context, without features), ``labels`` (list of 0/1 int arrays: 1 if the article supports
        the sentence), ``groups`` (article index of each problem), ``metadata`` (list of dict),
        ``feature_names`` (None), ``dropped`` (list of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown, or if a summary is invalid and ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Wang, Cho, Lewis, *Asking and Answering Questions to Evaluate the Factual Consistency
    of Summaries*, ACL 2020, arXiv:2004.04228.
    """
    of = chosen(subset=(subset, ("cnndm", "xsum")))
    records = rows("qags/mturk_{subset}.jsonl", "qags/{subset}/{i}", options, **of)
    return load("qags", records, _parse_qags, options, graph=graph, **of)


def _parse_qags(record):
    sentences = record["summary_sentences"]
    return {
        "claims": [entry["sentence"] for entry in sentences],
        "context": [record["article"]],
        "labels": [_majority(v, s["responses"]) for v, s in enumerate(sentences)],
        "group": record["article"],
        "provenance": {"label_meaning": "supported"},
        "metadata": {"subset": record["subset"]},
    }


def _majority(v, responses):
    answers = [response["response"] for response in responses]
    votes = sum(read_words("response", answers, {"yes": 1, "no": -1}, f"claim {v}"))
    if not votes:
        raise ValueError(
            f"claim {v} must have a majority verdict, but its {len(answers)} responses "
            'contain as many "yes" as "no"'
        )
    return int(votes > 0)


@fetcher()
def fetch_perl(
    subset: Names = ("gsm8k", "math"),
    kind: Names = "all",
    label: Literal["native", "any"] = "native",
    **options: Unpack[Options],
) -> Any:
    """Load PERL, a data set of solutions to word problems with annotated premises and errors.

    Parameters
    ----------
    subset : {"gsm8k", "math", "metamathqa", "orcamath", "all"} or list of them
        Question sources.
    kind : {"negatives", "positives", "positives_perturbed", "all"} or list of them
        Kinds of solutions. "negatives" have a wrong final answer, "positives" have a correct final
        answer, and "positives_perturbed" have an inserted error.
    label : {"native", "any"}
        Whether to label a valid step that depends on an error as true ("native") or as false
        ("any"). Use "native" for a filter that uses the graph.
    data_home : path-like, optional
        Folder for downloaded files. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf``. Files are stored at paths such as
        ``perl/gsm8k/gsm8k_negatives.json``.
    {retry_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error for a problem with invalid premises or labels, or to drop the
        problem.
    {return_options}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and without features),
        ``labels`` (list of 0/1 int arrays), ``groups`` (question index of each problem),
        ``metadata`` (list of dict), ``feature_names`` (None), ``dropped`` (list of (id, reason)),
        and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown, or if a problem is invalid and ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Mukherjee et al., *Premise-Augmented Reasoning Chains Improve Error Identification
    in Math Reasoning with LLMs*, 2025, arXiv:2502.02362.
    """
    check_choice("label", label, ("native", "any"))
    of = chosen(subset=(subset, _PERL_SUBSETS), kind=(kind, _PERL_KINDS))
    file = "perl/{subset}/{subset}_{kind}.json"
    records = rows(file, "perl/{subset}_{kind}/{i}", options, **of)
    parse = partial(_parse_perl, label=label)
    return load("perl", records, parse, options, label=label, **of)


def _parse_perl(record, label):
    """Return the question, the steps, the premises and the step errors of a record."""
    steps = record["steps"]
    return {
        "problem": record["question"],
        "claims": steps,
        "edges": _premise_edges(record["premise_annotation"]["steps"], len(steps)),
        "labels": _perl_labels(record["error_annotation"], len(steps), label),
        "metadata": {key: record[key] for key in ("subset", "kind")},
    }


def _premise_edges(entries, n_steps):
    """Return the edges from premises to steps, as pairs of positions instead of step numbers."""
    entries = [entry for entry in entries if entry["step_number"] != 0]
    position = {entry["step_number"]: v for v, entry in enumerate(entries)}
    if len(position) != n_steps or len(entries) != n_steps:
        raise ValueError(
            f"premises must belong to one of the {n_steps} steps, got premises for the "
            f"steps {list(position)}"
        )
    cited = [(p[0], e["step_number"]) for e in entries for p in e["premises"] if p[0]]
    if unknown := [pair for pair in cited if pair[0] not in position]:
        parent, child = unknown[0]
        raise ValueError(
            f"the premises of step {child} must be existing steps, got {parent}"
        )
    return sorted({(position[parent], position[child]) for parent, child in cited})


def _perl_labels(annotation, n_steps, label):
    entries = annotation["error_annotations"]["step_level"]
    entries = sorted(entries, key=lambda entry: entry["step_number"])
    if len({entry["step_number"] for entry in entries}) != n_steps:
        raise ValueError(
            f"the error entries must cover all {n_steps} steps, got {len(entries)} entries"
        )
    return [int(not _is_false(entry, label)) for entry in entries]


def _is_false(entry, label):
    types = [error["error_type"] for error in entry["errors"]]
    step = entry["step_number"]
    verdict = entry["has_error"]
    if verdict is not bool(types):
        raise ValueError(
            f"step {step} must have errors if and only if has_error is True, got "
            f"has_error={verdict!r} and {len(types)} errors"
        )
    return any(label == "any" or kind != "Accumulation_Error" for kind in types)
