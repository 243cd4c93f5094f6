"""Data set of answers with retrieved passages, in which a language model judged every claim."""

from collections import defaultdict
from functools import partial

from skdcf.datasets.fetch import chosen

from .reading import load, read, read_data

_SUBSETS = ("medication_qa", "live_qa", "kqa_silver_wogold", "kqa_golden")
_LARGE = _SUBSETS[:3]
_SCORE = "similarity-score"
#: The authors' code uses two labels for "not factual", which are "N" and "NF".
_VERDICTS = {"S": 1, "I": 0, "U": 0, "N": 0, "NF": 0}
_FIRST, _LAST, _SOURCE = "page_content='", " metadata=", "{'source': "


def fetch_conformal_rag(subset=_LARGE, *, data_home=None):
    """Load the Conformal-RAG data set of long answers to medical questions, with passages.

    Parameters
    ----------
    subset : {"medication_qa", "live_qa", "kqa_silver_wogold", "kqa_golden", "all"} or list
        Parts of MedLFQA. The default excludes "kqa_golden", which has 202 answers.
    data_home : path-like, optional
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch, with the passages as context and the
        authors' score as the only feature), ``labels`` (list of 0/1 int arrays: 1 if a model judged
        the claim to be supported), ``groups`` (question index of each problem), ``metadata`` (list
        of dict, with the verdicts), ``feature_names``, ``dropped`` (list of (id, reason)), and
        ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Feng et al., *Response Quality Assessment for Retrieval-Augmented Generation via
    Conditional Conformal Factuality*, SIGIR 2025, arXiv:2506.20978.
    """
    subsets = chosen("subset", subset, _SUBSETS)
    passages = {name: _passages_of(name, data_home) for name in subsets}
    records = {}
    for name in subsets:
        file = f"conformal_rag/{name}_subclaims_with_scores.jsonl"
        for i, record in enumerate(read_data(file, data_home)):
            records[f"conformal_rag/{name}/{i}"] = record | {"subset": name}
    return load("conformal_rag", records, partial(_parse_answer, passages))


def _passages_of(subset, data_home):
    """Return the passages of each question, in file order."""
    passages = defaultdict(list)
    for _, text in read(f"conformal_rag/{subset}_ref_docs_texts.json", data_home):
        # The text may contain quotation marks, but it is always followed by a dict.
        content, _, description = text.rpartition(_LAST)
        # The source is the repr of a Python string, so it is compared with the repr of the
        # question.
        source, _, _ = description.removeprefix(_SOURCE).rpartition(", 'file_path': ")
        passages[source].append(content[len(_FIRST) : -1])
    return passages


def _parse_answer(passages, record):
    question = record["prompt"]
    claims = record["claims"]
    texts = [
        text.removeprefix(f"{question}:").strip()
        for text in passages[record["subset"]].get(repr(question), ())
    ]
    # A few passages contain only the question.
    context = [text for text in texts if text]
    if not context:
        raise ValueError(
            "the retrieved data must contain a passage for each question, but there is "
            f"none for {question!r}"
        )
    sentences = [claim["annotation"] for claim in claims]
    return {
        "problem": question,
        "claims": [claim["subclaim"].strip() for claim in claims],
        "edges": [],
        "context": context,
        "features": [[float(claim[_SCORE])] for claim in claims],
        # One of the answers has no claims, so the number of features must be passed.
        "n_features": 1,
        "feature_names": [_SCORE],
        "labels": [_VERDICTS[word] for word in sentences],
        "provenance": {"label_meaning": "supported"},
        "metadata": {
            "subset": record["subset"],
            "verdicts": sentences,
        },
    }
