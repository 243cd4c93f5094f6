"""Use a language model to convert answers to reasoning graphs, and to label claims.

Models are called through `ChatClient`, which wraps a Python function or an endpoint that uses the
chat-completions protocol, such as a hosted service, vLLM, Ollama or llama.cpp. Calls to an
endpoint require the extra ``apps``. API keys are read from the environment when a call is made,
and are never stored.
"""

from ._extractor import Answer, ClaimExtractor
from ._model import CallError, ChatClient, EndpointError
from ._replies import Reply, Usage
from ._steps import (
    Decompose,
    DeduceGraph,
    Frequency,
    SampleAnswers,
    SemanticJudge,
    Verify,
    judge_labels,
)

__all__ = ["Answer", "CallError", "ChatClient", "ClaimExtractor"]
__all__ += ["Decompose", "DeduceGraph", "EndpointError", "Frequency"]
__all__ += [
    "Reply",
    "SampleAnswers",
    "SemanticJudge",
    "Usage",
    "Verify",
    "judge_labels",
]
