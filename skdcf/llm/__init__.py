"""From raw answers to reasoning graphs and back to text, with a language model.

Models are reached through `ChatClient`: any endpoint that speaks the chat-completions
protocol (hosted, vLLM, Ollama, llama.cpp), or any function. Install ``skdcf[llm]`` for
endpoints. Keys are read from the environment when calls are made, and stored nowhere.
"""

from ._answers import Answer, Extraction
from ._calls import CallError, EndpointError, Reply, Usage
from ._client import ChatClient
from ._decompose import Decompose, split_sentences
from ._deduce import DeducedGraph, DeduceGraph
from ._estimate import Estimate
from ._extractor import ClaimExtractor
from ._judge import Frequency, SemanticJudge
from ._labels import judge_labels
from ._merge import Merge, MergedText, join_claims
from ._pair import PairFeature, PairScorer
from ._pipeline import ConformalFactualityPipeline, FilteredAnswer
from ._prompts import Prompt, load_prompt
from ._sample import SampleAnswers
from ._topics import DomainFlags
from ._verify import Verify

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
    "PairFeature",
    "PairScorer",
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
