"""From raw answers to reasoning graphs and back to text, with a language model.

Models are reached through `ChatClient`: any endpoint that speaks the chat-completions
protocol (hosted, vLLM, Ollama, llama.cpp), or any function. The extra ``llm`` is
for endpoints. Keys are read from the environment when calls are made, and stored nowhere.
"""

from ._calls import Answer, CallError, EndpointError, Reply, Usage
from ._claims import Decompose, DeduceGraph, SampleAnswers, split_sentences
from ._client import ChatClient
from ._extractor import ClaimExtractor
from ._judges import Frequency, Merge, SemanticJudge, Verify, join_claims, judge_labels
from ._pipeline import ConformalFactualityPipeline, FilteredAnswer

__all__ = ["CallError", "ChatClient", "ClaimExtractor", "ConformalFactualityPipeline"]
__all__ += ["Decompose", "DeduceGraph", "EndpointError", "FilteredAnswer", "Frequency"]
__all__ += ["Merge", "Reply", "SampleAnswers", "SemanticJudge", "Usage", "Verify"]
__all__ += ["Answer", "join_claims", "judge_labels", "split_sentences"]
