"""From raw answers to reasoning graphs and back to text, with a language model.

Models are reached through `ChatClient`: any endpoint that speaks the chat-completions
protocol (hosted, vLLM, Ollama, llama.cpp), or any function. Install ``skdcf[llm]`` for
endpoints. Keys are read from the environment when calls are made, and stored nowhere.
"""

from ._calls import (
    Answer,
    CallError,
    EndpointError,
    Extraction,
    Prompt,
    Reply,
    Usage,
    load_prompt,
)
from ._claims import (
    Decompose,
    DeducedGraph,
    DeduceGraph,
    SampleAnswers,
    split_sentences,
)
from ._client import ChatClient, Estimate
from ._extractor import ClaimExtractor
from ._judges import (
    DomainFlags,
    Frequency,
    Merge,
    MergedText,
    SemanticJudge,
    Verify,
    join_claims,
    judge_labels,
)
from ._pipeline import ConformalFactualityPipeline, FilteredAnswer

__all__ = [
    "Answer",
    "CallError",
    "ChatClient",
    "ClaimExtractor",
    "ConformalFactualityPipeline",
    "Decompose",
    "DeduceGraph",
    "DeducedGraph",
    "DomainFlags",
    "EndpointError",
    "Estimate",
    "Extraction",
    "FilteredAnswer",
    "Frequency",
    "Merge",
    "MergedText",
    "Prompt",
    "Reply",
    "SampleAnswers",
    "SemanticJudge",
    "Usage",
    "Verify",
    "join_claims",
    "judge_labels",
    "load_prompt",
    "split_sentences",
]
