"""Split answers into sentences, which are used as claims, without calling a model.

Sentences are split by sentencex, which the extra ``apps`` installs.
"""

from ._layout import LAYOUT as LAYOUT
from ._layout import kept_text
from ._no_claim import NoClaimList as NoClaimList
from ._no_claim import no_claim_list
from ._sentences import split_sentences
from ._split import AnswerReader as AnswerReader
from ._split import AnswerSplitter
from ._split import describe_removed as describe_removed

__all__ = ["AnswerSplitter", "kept_text", "no_claim_list", "split_sentences"]
