"""Convert recorded agent runs to problems with one claim per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.utils import Bunch

from .._checks import check_choice
from ..datasets.records import build_dataset
from ..datasets.runs import answers_of_other_runs, read_run


def from_runs(
    runs: Sequence[Mapping[str, Any]],
    *,
    edges: str = "chain",
    alternatives: bool = False,
) -> Bunch:
    """Convert recorded agent runs to problems with one claim per step.

    Each assistant message is one step, which includes the text and all tool calls, because the
    agent decided on these calls together. Thoughts (reasoning content) are ignored, and a message
    that contains only thoughts is not a step. A run may end with a call, so a call without a tool
    result is valid. A tool result without an earlier call raises an error. Call arguments that
    are not a JSON object are kept as text and are not used for ``edges="data"``.

    If a message cannot be read completely, an error that lists the keys of the message is raised.
    Examples of messages that cannot be read completely are an assistant message without text or
    calls, a message part without text, and a message with a list or an object under an unknown
    key. An image or a file in the question is replaced by its type in brackets, such as
    "[image]".

    Parameters
    ----------
    runs : list of dict
        Each run has ``messages``, a list of dictionaries in one of the supported formats. The
        supported formats are those of the OpenAI Chat Completions and Responses APIs, the OpenAI
        Agents SDK (including hosted calls such as ``web_search_call``), Anthropic, Gemini,
        Bedrock, LangChain (including the output of ``messages_to_dict`` and ``dumpd``),
        pydantic-ai, Inspect, the Vercel AI SDK, and A2A. A message may also be a complete API
        response. The calls in one response and the text that precedes them form one step. Instead
        of ``messages``, a run may contain OpenTelemetry ``spans``, as a list or as the content of
        an OTLP file (``resourceSpans``). The messages of a span are read from its ``gen_ai.*``
        attributes. If a run contains spans, only the messages of the top-level agent, which calls
        all other agents, are used. Each run also has a ``task``, which is a string or an integer
        that identifies the task of the run. All runs of a task are kept together in every split.
        The keys ``id`` and ``labels`` are optional. ``labels`` is a dict that maps the position
        of the (first) message of each step to 1 (not wrong), 0 (wrong) or -1 (unknown). Steps
        that are missing from ``labels`` have unknown labels.
    edges : {"chain", "data"}
        With "chain", each step depends on the previous step. Use "chain" for an agent that is
        stopped at its first doubtful step. Use "data" for completed runs. With "data", a step
        that contains tool calls depends on each earlier step whose tool results contain one of
        the call arguments. A step without tool calls depends on all earlier steps.
    alternatives : bool
        Whether to compare each run with the other runs of its task. The other runs of the task
        must be complete, and the number of runs per task must be the same for calibration and
        prediction. The last steps of the other runs become the ``alternatives``. An additional
        feature measures the agreement between a step without tool calls and the last steps of the
        other runs.

    Returns
    -------
    dataset : Bunch
        The data set, as returned by `skdcf.datasets.build_dataset`. The features ``position``,
        ``log_length`` (log of 1 + number of characters) and ``n_calls`` of a step depend only on
        this step and the steps before it. With ``alternatives=True``, the feature
        ``answer_agreement`` is the proportion of words in the shorter of two answers that also
        occur in the longer answer, averaged over the other runs. For a step that contains tool
        calls, ``answer_agreement`` is 1. The metadata contain the message positions of the steps.

    Raises
    ------
    ValueError
        If a run has no task or no step, if a message has an unknown role or cannot be read
        completely, if a tool result precedes its call, if the spans are from several agents or do
        not contain all tool calls, or if a label does not belong to a step. ValueError is also
        raised if ``edges="data"`` and a run has more than 2,000 steps, or if
        ``alternatives=True`` and a task has only one run.

    Examples
    --------
    >>> from skdcf.adapters import from_runs
    >>> call = {"id": "a", "function": {"name": "search", "arguments": '{"query": "Rome"}'}}
    >>> messages = [
    ...     {"role": "user", "content": "How old is Rome?"},
    ...     {"role": "assistant", "content": "", "tool_calls": [call]},
    ...     {"role": "tool", "tool_call_id": "a", "content": "founded in 753 BC"},
    ...     {"role": "assistant", "content": "It was founded in 753 BC."},
    ... ]
    >>> data = from_runs([{"task": 7, "messages": messages, "labels": {1: 1, 3: 1}}])
    >>> data.graphs[0].claims
    ('search({"query": "Rome"})', 'It was founded in 753 BC.')
    >>> data.graphs[0].edges.tolist(), data.labels[0].tolist()
    ([[0, 1]], [1, 1])
    """
    check_choice("edges", edges, ("chain", "data"))
    if isinstance(runs, Mapping | str):
        raise ValueError(
            f"runs must be a list of runs, got {type(runs).__name__}. Pass [run] for a "
            "single run"
        )
    other_runs = answers_of_other_runs(runs) if alternatives else [None] * len(runs)
    records = []
    for number, run in enumerate(runs):
        if not isinstance(run, Mapping):
            raise ValueError(
                f"run {number} must be a dict with messages and a task, got a "
                f"{type(run).__name__}"
            )
        name = run.get("id")
        name = f"run/{number}" if name is None else name
        records.append((name, (run, other_runs[number])))
    return build_dataset(records, lambda record: read_run(record[0], edges, record[1]))
