"""A real cross-encoder of sentence-transformers as a verifier: tiny, and drawn at random.

Skipped where sentence-transformers is not installed: ``pip install '.[verify]'``. No weights
are downloaded; model and vocabulary are made here, on disk.
"""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdcf import HardCF, ReasoningGraph
from skdcf.features import PairFeature, reasoning_features

with warnings.catch_warnings():  # of its own dependencies, while they are imported
    warnings.simplefilter("ignore")
    library = pytest.importorskip("sentence_transformers", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore:::(torch|transformers|sentence_trans)")
WORDS = [
    "the",
    "bridge",
    "opened",
    "in",
    "was",
    "built",
    "by",
    "john",
    "bradfield",
    "took",
    "years",
    "to",
    "build",
]
NUMBERS = [str(number) for number in range(1900, 1960)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model of random weights, as `CrossEncoder` reads it from disk."""
    import torch
    import transformers

    path = tmp_path_factory.mktemp("model")
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ","]
    vocabulary = [*marks, *WORDS, *NUMBERS]
    (path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=1,
        initializer_range=0.5,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(path)
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "model_max_length": 64,
    }
    (path / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    transformers.BertTokenizer(str(path / "vocab.txt")).save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def verdict(folder):
    """The feature as the guide page writes it."""
    model = library.CrossEncoder(folder, num_labels=1, device="cpu")
    return PairFeature(
        lambda texts, claims: model.predict(
            list(zip(texts, claims, strict=True)), show_progress_bar=False
        ),
        chunk_words=8,
        name="verdict",
    )


def answer(year):
    passage = f"The bridge, which took years to build, opened in {year}."
    claims = [f"The bridge opened in {year}.", "John Bradfield built the bridge."]
    return ReasoningGraph(None, [], claims=claims, context=[passage, "Built by John."])


def judged(folder, text, claim):
    """What the model says of one pair, asked without sentence-transformers."""
    import torch
    import transformers

    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    model = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(**tokenizer(text, claim, return_tensors="pt")).logits
    return float(torch.sigmoid(logits))


def test_column_is_the_largest_verdict_over_chunks(folder, verdict):
    graph = answer(1932)
    chunks = [
        "The bridge, which took years to build, opened",
        "in 1932.",
        "Built by John.",
    ]
    expected = [max(judged(folder, c, claim) for c in chunks) for claim in graph.claims]
    found = verdict.fit_transform([graph]).features[:, 0]
    assert_allclose(found, expected, atol=1e-4)
    assert abs(found[0] - found[1]) > 1e-3  # the model tells the claims apart


def test_filter_with_a_cross_encoder(verdict):
    from sklearn.pipeline import make_pipeline

    answers, labels = [answer(year) for year in range(1900, 1960)], [[1, 0]] * 60
    columns = make_pipeline(reasoning_features(), verdict)
    cf = HardCF(features=columns, alpha=0.1, random_state=0).fit(
        answers[:50], labels[:50]
    )
    assert "verdict" in cf.transform_features(answers[50:]).feature_names
    kept = cf.predict(answers[50:])
    alone = [cf.predict([one])[0] for one in answers[50:]]
    np.testing.assert_array_equal(np.stack(kept), np.stack(alone))
    assert np.stack(kept).any()
