"""Answers whose claims were judged by a model, with the passages that they go back to."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any, Unpack

from .fetch import Names, Options, Rule, chosen, fetcher, load, read, read_words, rows

_SUBSETS = ("medication_qa", "live_qa", "kqa_silver_wogold", "kqa_golden")
_LARGE = _SUBSETS[:3]
_SCORE = "similarity-score"
#: The authors' code writes "not factual" in two ways.
_VERDICTS = {"S": 1, "I": 0, "U": 0, "N": 0, "NF": 0}
_FIRST, _LAST, _SOURCE = "page_content='", " metadata=", "{'source': "


@fetcher()
def fetch_conformal_rag(
    subset: Names = _LARGE,
    *,
    irrelevant: bool = False,
    graph: Rule = "none",
    **options: Unpack[Options],
) -> Any:
    """Load the data of Conformal-RAG: long answers to medical questions, with passages.

    Parameters
    ----------
    subset : {"medication_qa", "live_qa", "kqa_silver_wogold", "kqa_golden", "all"} or list
        Parts of MedLFQA that the questions come from. "kqa_golden" has 202 answers and is
        left out unless asked for.
    irrelevant : bool
        Whether a claim that is true but does not answer the question counts as true.
    graph : {"none", "chain"} or callable
        The claims stand alone, each builds on the one before it, or
        ``graph(claims, problem)`` gives pairs (parent, child), as in `skdcf.edges`.
    data_home : path-like, optional
        Where files are kept. None takes the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf``.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    n_retries : int
        How often a download that failed is tried again.
    delay : float
        Seconds before it is tried again.
    on_invalid : {"raise", "drop"}
        What happens to an answer with an unknown verdict, or without passages.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.
    return_groups : bool
        Return ``(graphs, labels, groups)``. Only with ``return_X_y=True``.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with passages as context, and the authors' score as the one
        feature), ``labels`` (list of 0/1 int arrays: 1 where a model said that the claim is
        supported), ``groups`` (a number per question), ``metadata`` (list of dict, with
        the verdicts), ``feature_names``, ``dropped`` (list of (id, reason)), ``DESCR``.

    Raises
    ------
    ValueError
        On an unknown name, or a broken answer with ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Feng et al., *Response Quality Assessment for Retrieval-Augmented Generation via
    Conditional Conformal Factuality*, SIGIR 2025, arXiv:2506.20978.
    """
    of = chosen(subset=(subset, _SUBSETS))
    passages = {name: _passages_of(name, options) for name in of["subset"]}
    file = "conformal_rag/{subset}_subclaims_with_scores.jsonl"  # but it is one object
    records = rows(file, "conformal_rag/{subset}/{i}", options, **of)
    verdicts = _VERDICTS | {"I": int(irrelevant)}
    parse = partial(_parse_answer, passages=passages, verdicts=verdicts)
    said = "true" if irrelevant else "false"
    return load(
        "conformal_rag", records, parse, options, graph=graph, irrelevant=said, **of
    )


def _passages_of(subset, options):
    """The passages of every question, in the order of the file."""
    passages = defaultdict(list)
    for _, text in read(f"conformal_rag/{subset}_ref_docs_texts.json", options):
        # The text itself may hold quotation marks; what describes it is always a dict.
        content, _, about = text.rpartition(_LAST)
        # It is written as Python prints it, and is compared with a question printed so.
        source, _, _ = about.removeprefix(_SOURCE).rpartition(", 'file_path': ")
        passages[source].append(content[len(_FIRST) : -1])
    return passages


def _parse_answer(record, passages, verdicts):
    question, claims = record["prompt"], record["claims"]
    texts = [
        text.removeprefix(f"{question}:").strip()
        for text in passages[record["subset"]].get(repr(question), ())
    ]
    # A few passages hold the question alone.
    context = [text for text in texts if text]
    if not context:
        raise ValueError(f"no passage belongs to the question {question!r}")
    sentences = [claim["annotation"] for claim in claims]
    return {
        "problem": question,
        "claims": [claim["subclaim"].strip() for claim in claims],
        "context": context,
        "features": [[float(claim[_SCORE])] for claim in claims],
        "n_features": 1,  # since one answer has no claims
        "feature_names": [_SCORE],
        "labels": read_words("annotation", sentences, verdicts),
        "metadata": {
            "label_meaning": "supported",
            "subset": record["subset"],
            "verdicts": sentences,
        },
    }
