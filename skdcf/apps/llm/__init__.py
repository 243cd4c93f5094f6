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
from ._reply import Reply, Usage
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
__all__ += ["Answer", "judge_labels"]
