"""Features that measure the lexical support for each claim in retrieved passages."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, groupby, pairwise

import numpy as np

from ..graphs import GraphBatch
from ._cleaning import list_names, unify
from ._text import find_all_numbers
from ._transformers import OptionalColumns

# maximum number of characters in a context, which takes a few seconds and 200 MB to process
_LONGEST = 2_000_000
# A sentence ends at a period before a space, at an empty line, or before a list marker.
_split_sentences = re.compile(
    r"[.!?\n。！？](?:(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])|(?<=\n)\s*(?=[-*•#\d\n]))"  # noqa: RUF001
).split
# A word is a sequence of letters and digits, or a single Chinese or Japanese character.
_find_words = re.compile(r"[぀-ヿ㐀-鿿]|[^\W_぀-ヿ㐀-鿿]+").findall
_BLANKS = {c: c if chr(c).isalnum() else " " for c in range(128)}


class ContextFeatures(OptionalColumns):
    """Lexical support for each claim in the passages of ``context``.

    Words are compared in lower case. A word, number or sequence of words is *found* if one of the
    passages contains it. For bigrams and trigrams, the denominator of the proportion is increased
    by 1. As a result, the longer of two claims that are fully copied from a passage has the
    larger proportion.

    ========================  =========================================================
    column                    value for claim v
    ========================  =========================================================
    ``context_words``         proportion of the distinct words of v that are found
    ``context_bigrams``       proportion of the bigrams of v that are found
    ``context_trigrams``      proportion of the trigrams of v that are found
    ``context_numbers``       proportion of the numbers of v that are found, 1 if it has none
    ``context_names``         proportion of the names in v that are found, 1 if it has none
    ``context_sentence``      largest proportion of the distinct words of v in one sentence
    ``context_longest_run``   length of the longest run found, as a proportion of the words
    ========================  =========================================================

    Numbers are extracted as in `TextFeatures`. *Names* are words with an upper-case letter,
    except the first word of a claim. Names are compared without regard to case. A *run* is a
    sequence of at least two words of a claim.

    If a problem has no passages (``context=()``), nothing is found.

    Parameters
    ----------
    optional : bool, default=False
        If True and no problem seen during `fit` has a context, no columns are added and no error
        is raised. `reasoning_features` sets ``optional=True``.

    Attributes
    ----------
    used_ : bool
        Whether the transformer adds columns.

    Raises
    ------
    ValueError
        If the context of a problem is unknown (None) or has more than 2,000,000 characters, or if
        a claim has no text. An empty tuple means that there are no passages.

    Notes
    -----
    The passages are part of the problem. Retrieve the passages in the same way for
    calibration and prediction. Passages are indexed in linear time, once for all answers that share
    them. The computing time for a claim is proportional to its number of words times the number of
    sentences. Only the first 1,000 words of a claim and the first 10,000 sentences of a passage are
    compared.

    The features work in any language, but some are less informative in some languages. In German,
    all nouns are capitalised, so ``context_names`` is a proportion of nouns. Chinese and Japanese
    are written without spaces or upper case, so each character is treated as a word and
    ``context_names`` is 1. In inflected languages, each form of a word is treated as a separate
    word.

    Text copied from a passage is strong evidence that a claim is true if answers usually quote
    their passages, and weak evidence if answers usually paraphrase them.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import ContextFeatures
    >>> graph = ReasoningGraph(
    ...     None,
    ...     claims=["The bridge opened in 1932.", "It was built by John Bradfield."],
    ...     context=["The bridge, which took eight years to build, opened in 1932."],
    ... )
    >>> batch = ContextFeatures().fit_transform([graph])
    >>> for name in "context_words", "context_trigrams", "context_numbers":
    ...     print(name, batch.features[:, batch.feature_names.index(name)].round(2))
    context_words [1. 0.]
    context_trigrams [0.25 0.  ]
    context_numbers [1. 1.]
    """

    reads_edges = False
    field = "context"
    columns = list_names("""
        context_words context_bigrams context_trigrams context_numbers context_names
        context_sentence context_longest_run
    """)

    def _check(self, batch):
        super()._check(batch)
        for i in range(len(batch) if self.used_ else 0):
            sizes = list(map(len, batch.context[i]))
            if sum(sizes) > _LONGEST:
                raise ValueError(
                    f"the context of {batch.name_of(i)} must have at most {_LONGEST:,} "
                    f"characters, got {sum(sizes):,}, including {max(sizes):,} in passage "
                    f"{np.argmax(sizes)}. Pass only the retrieved passages instead of the whole "
                    "collection"
                )

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        # The batch has been validated, so contexts exist.
        assert batch.context is not None
        assert batch.claims is not None
        table = np.zeros((batch.n_claims, len(self.columns)))
        # Long passages are cached only during a single call.
        read = lru_cache(4)(_Passage)
        # Process answers with the same passages consecutively, so the passages stay in the cache.
        for i in sorted(range(len(batch)), key=batch.context.__getitem__):
            passages = [
                # maximum number of characters in a passage that is cached
                _read_short(text) if len(text) <= 10_000 else read(text)
                for text in batch.context[i]
            ]
            for v in range(*batch.offsets[i : i + 2]):
                table[v] = _compare(batch.claims[v], passages)
        return table


class _Passage:
    """Index of the words, sentences and numbers in a passage."""

    def __init__(self, text):
        text = unify(text).casefold()
        # maximum number of sentences per passage (later sentences are ignored)
        sentences = [_split(piece) for piece in _split_sentences(text, 10_000 - 1)]
        words = list(chain.from_iterable(sentences))
        self.sentences = [frozenset(sentence) for sentence in sentences]
        self.words = frozenset(words)
        self.pairs = frozenset(pairwise(words))
        self.triples = frozenset(_list_triples(words))
        self.numbers = find_all_numbers(text, self.words)
        self.text = f" {' '.join(words)} "

    def find_longest_run(self, words, triples):
        """Return the length of the longest run of words in the passage, or 0 if it is below 3."""
        longest = 0
        in_passage = [triple in self.triples for triple in triples]
        for is_there, places in groupby(range(len(triples)), in_passage.__getitem__):
            if is_there:
                triple_numbers = list(places)
                run = words[triple_numbers[0] : triple_numbers[-1] + 3]
                length = len(run) if self._holds(run) else self._slide(run)
                longest = max(longest, length)
        return longest

    def _slide(self, words):
        """Return the length of the longest run, given words whose trigrams are all found."""
        start = 0
        size = 3
        while start + size < len(words):
            if self._holds(words[start : start + size + 1]):
                size += 1
            else:
                start += 1
        return size

    def _holds(self, words):
        return f" {' '.join(words)} " in self.text


_read_short = lru_cache(64)(_Passage)  # A passage of 600 words takes about 150 KB.


def _split(text):
    return text.translate(_BLANKS).split() if text.isascii() else _find_words(text)


def _list_triples(words):
    return list(zip(words, words[1:], words[2:], strict=False))


def _compare(text, passages):
    """Compute one claim's columns."""
    text = unify(text)
    # maximum number of words per claim (later words are ignored)
    written = _split(text)[:1000]
    words = " ".join(written).casefold().split(" ")
    if not written or not passages:
        return 0.0
    names = {b for a, b in zip(written[1:], words[1:], strict=True) if a != b}
    different = frozenset(words)
    pairs = list(pairwise(words))
    triples = _list_triples(words)
    numbers = find_all_numbers(text.casefold(), different)
    in_pairs = _count_found(pairs, [p.pairs for p in passages])
    in_triples = _count_found(triples, [p.triples for p in passages])
    longest = max([p.find_longest_run(words, triples) for p in passages])
    best = max(len(different & s) for p in passages for s in p.sentences)
    in_words = [p.words for p in passages]
    return (
        _share_found(different, in_words),
        in_pairs / (len(pairs) + 1),
        in_triples / (len(triples) + 1),
        _share_found(numbers, [p.numbers for p in passages]),
        _share_found(names, in_words),
        best / len(different),
        max(longest, 2 * (in_pairs > 0)) / len(words),
    )


def _count_found(wanted, sets):
    """Return the number of items that are in at least one of the sets."""
    found = set().union(*[known.intersection(wanted) for known in sets])
    return sum(map(found.__contains__, wanted))


def _share_found(wanted, sets):
    """Return the proportion of items in at least one of the sets, or 1 if there are no items."""
    return _count_found(wanted, sets) / len(wanted) if wanted else 1.0
