"""Use a language model to convert answers to reasoning graphs, and to label claims.

Models are called through `ChatClient`, which wraps a Python function or an endpoint that uses the
chat-completions protocol, such as a hosted service, vLLM, Ollama or llama.cpp. Calls to an
endpoint require the extra ``apps``. API keys are read from the environment when a call is made,
and are never stored.
"""

from ._extractor import ClaimExtractor
from ._model import CallError, ChatClient, EndpointError
from ._replies import Reply
from ._steps import (
    Decompose,
    DeduceGraph,
    Frequency,
    SampleAnswers,
    SemanticJudge,
    Verify,
    judge_labels,
)

__all__ = [
    "CallError",
    "ChatClient",
    "ClaimExtractor",
    "Decompose",
    "DeduceGraph",
    "EndpointError",
    "Frequency",
    "Reply",
    "SampleAnswers",
    "SemanticJudge",
    "Verify",
    "judge_labels",
]
