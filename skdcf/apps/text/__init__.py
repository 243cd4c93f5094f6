"""Split answers into sentences, which are used as claims, without calling a model."""

from ._layout import LAYOUT as LAYOUT
from ._layout import kept_text
from ._no_claim import pattern_of as pattern_of
from ._sentences import split_sentences
from ._split import AnswerSplitter
from ._split import clean_answer as clean_answer
from ._split import describe_removed as describe_removed
from ._split import read_answer as read_answer

__all__ = ["AnswerSplitter", "kept_text", "split_sentences"]
