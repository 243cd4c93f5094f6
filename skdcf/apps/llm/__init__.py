"""Use a language model to convert answers to reasoning graphs, and to label claims.

Models are called through `ChatClient`, which wraps a Python function or an endpoint that uses the
chat-completions protocol, such as a hosted service, vLLM, Ollama or llama.cpp. Calls to an
endpoint require the extra ``apps``. API keys are read from the environment when a call is made,
and are never stored.
"""

from ._client import ChatClient
from ._errors import CallError, EndpointError
from ._extractor import Answer, ClaimExtractor
from ._labels import judge_labels
from ._no_claim import NoClaimList as NoClaimList
from ._no_claim import no_claim_list as no_claim_list
from ._reply import Reply, Usage
from ._sentences import join as join
from ._sentences import split_sentences as split_sentences
from ._sentences import splitter_of as splitter_of
from ._split import AnswerReader as AnswerReader
from ._split import AnswerSplitter as AnswerSplitter
from ._steps import (
    Decompose,
    DeduceGraph,
    Frequency,
    SampleAnswers,
    SemanticJudge,
)
from ._steps import Verify as Verify

__all__ = ["CallError", "ChatClient", "ClaimExtractor"]
__all__ += ["Decompose", "DeduceGraph", "EndpointError", "Frequency"]
__all__ += [
    "Reply",
    "SampleAnswers",
    "SemanticJudge",
    "Usage",
    "Verify",
]
__all__ += ["Answer", "join", "judge_labels", "split_sentences"]
