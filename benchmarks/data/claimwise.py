"""Data sets in which people judged every claim of an answer."""

from skdcf._checks import check_choice
from skdcf.datasets.fetch import add_alternatives, chosen, parse_scored

from .reading import load, read, read_data

_PERL_SUBSETS = ("gsm8k", "math", "metamathqa", "orcamath")
_PERL_KINDS = ("negatives", "positives", "positives_perturbed")
_SUBSETS = {"factscore": "factscore", "nq": "nq", "math": "MATH"}
#: File names begin with the source of the questions, which depends on the setting.
_STEMS = {"accurate_context": "dolly", "noisy_context": "msmarco", "zero_context": "nq"}
_NAMES = "alpaca_7B chatgpt claude2 davinci001 falcon_40B_instruct gpt4 llama2_70b_chat"


def fetch_conformal_factuality(subset="factscore", *, data_home=None):
    """Load the Conformal Factuality data set of 50 answers with scored and labelled claims.

    Parameters
    ----------
    subset : {"factscore", "nq", "math"}
        Source of the questions: biographies, Natural Questions or MATH problems.
    data_home : path-like, optional
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts), ``labels`` (list of 0/1 int
        arrays), ``groups`` (question index of each problem), ``feature_names``, ``dropped`` (list
        of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Mohri, Hashimoto, *Language Models with Conformal Factuality Guarantees*, 2024,
    arXiv:2402.10978.
    """
    check_choice("subset", subset, _SUBSETS)
    file = f"conformal_factuality/{_SUBSETS[subset]}_subclaims_with_scores.jsonl"
    records = {
        f"conformal_factuality/{subset}/{i}": record
        for i, record in enumerate(read_data(file, data_home))
    }
    return load("conformal_factuality", records, _parse_factuality)


def _parse_factuality(record):
    verdicts = {"Y": 1, "S": 1, "N": 0, "U": 0}
    return parse_scored(record, "annotation", verdicts) | {"edges": []}


def fetch_refchecker(setting="all", *, data_home=None):
    """Load RefChecker, a data set of human-labelled triplets from the answers of seven models.

    Parameters
    ----------
    setting : {"accurate_context", "noisy_context", "zero_context", "all"} or list
        Parts of the data set to load. The parts differ in the context that the models received
        with the question.
    data_home : path-like, optional
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

    Returns
    -------
    dataset : Bunch
        The data set, with the same attributes as in `fetch_mr_ben`. The graphs have no
        questions and no edges.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Hu et al., *RefChecker: Reference-based Fine-grained Hallucination Checker and
    Benchmark for Large Language Models*, 2024, arXiv:2405.14486.
    """
    records = {}
    for name in chosen("setting", setting, list(_STEMS)):
        for model in _NAMES.split():
            file = f"refchecker/{name}/{_STEMS[name]}_{model}_answers.json"
            for i, record in enumerate(read(file, data_home)):
                group = f"{name}/{record['id']}"
                place = {"setting": name, "model": model, "group": group}
                records[f"refchecker/{name}/{model}/{i}"] = record | place
    add_alternatives(records, "group", "model", "response")
    return load("refchecker", records, _parse_refchecker)


def _parse_refchecker(record):
    triplets = record["claude2_response_kg"]
    verdicts = [entry["human_label"] for entry in triplets]
    # A neutral claim was judged, and is not supported.
    words = {"Entailment": 1, "Contradiction": 0, "Neutral": 0}
    return {
        "claims": [" ".join(entry["triplet"]) for entry in triplets],
        "edges": [],
        "labels": [words[verdict] for verdict in verdicts],
        "alternatives": record["alternatives"],
        "group": record["group"],
        "metadata": {key: record[key] for key in ("model", "setting")}
        | {"question": record["id"], "verdicts": verdicts},
    }


def fetch_qags(subset="all", *, data_home=None):
    """Load QAGS, a data set of summaries in which people compared each sentence with the article.

    Parameters
    ----------
    subset : {"cnndm", "xsum", "all"} or list of them
        Source of the articles. Each summary has three sentences for CNN/DailyMail ("cnndm") and
        one sentence for XSum ("xsum").
    data_home : path-like, optional
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

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
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Wang, Cho, Lewis, *Asking and Answering Questions to Evaluate the Factual Consistency
    of Summaries*, ACL 2020, arXiv:2004.04228.
    """
    records = {
        f"qags/{name}/{i}": record | {"subset": name}
        for name in chosen("subset", subset, ("cnndm", "xsum"))
        for i, record in enumerate(read(f"qags/mturk_{name}.jsonl", data_home))
    }
    return load("qags", records, _parse_qags)


def _parse_qags(record):
    sentences = record["summary_sentences"]
    return {
        "claims": [entry["sentence"] for entry in sentences],
        "edges": [],
        "context": [record["article"]],
        "labels": [_majority(s["responses"]) for s in sentences],
        "group": record["article"],
        "provenance": {"label_meaning": "supported"},
        "metadata": {"subset": record["subset"]},
    }


def _majority(responses):
    votes = sum({"yes": 1, "no": -1}[response["response"]] for response in responses)
    if not votes:
        raise ValueError(f"the {len(responses)} responses must have a majority")
    return int(votes > 0)


def fetch_perl(subset=("gsm8k", "math"), kind="all", label="native", *, data_home=None):
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
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

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
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Mukherjee et al., *Premise-Augmented Reasoning Chains Improve Error Identification
    in Math Reasoning with LLMs*, 2025, arXiv:2502.02362.
    """
    check_choice("label", label, ("native", "any"))
    records = {}
    for name in chosen("subset", subset, _PERL_SUBSETS):
        for each in chosen("kind", kind, _PERL_KINDS):
            file = f"perl/{name}/{name}_{each}.json"
            for i, record in enumerate(read(file, data_home)):
                place = {"subset": name, "kind": each, "label": label}
                records[f"perl/{name}_{each}/{i}"] = record | place
    return load("perl", records, _parse_perl)


def _parse_perl(record):
    """Return the question, the steps, the premises and the step errors of a record."""
    steps = record["steps"]
    return {
        "problem": record["question"],
        "claims": steps,
        "edges": _premise_edges(record["premise_annotation"]["steps"], len(steps)),
        "labels": _perl_labels(record["error_annotation"], len(steps), record["label"]),
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
