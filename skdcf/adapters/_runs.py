"""Convert recorded agent runs to problems whose claims are steps."""

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
    """Convert recorded agent runs to problems whose claims are steps.

    Every assistant message, with its content and all its calls, is one step, because the agent
    decided on these calls together. Thoughts are ignored, and a message that contains only
    thoughts is not a step. A call without an answer is valid, because a run may end with a call.
    An answer without an earlier call raises an error. Arguments that are not a JSON object are
    kept as text and are not used for ``edges="data"``.

    A message that cannot be read completely raises an error that lists the keys. Examples are
    an assistant message without text and calls, a part without text, and a list or an object
    under an unknown key. An image or a file in the question is replaced by its type in
    brackets.

    Parameters
    ----------
    runs : list of dict
        Each run has ``messages``, a list of dictionaries in the format of one of these tools: the
        OpenAI Chat Completions and Responses APIs and the OpenAI Agents SDK (including hosted calls
        such as ``web_search_call``), Anthropic, Gemini, Bedrock, LangChain (also as written by
        ``messages_to_dict`` and ``dumpd``), pydantic-ai, Inspect, the Vercel AI SDK, or A2A. A
        message may also be the whole response of an API. The calls of one response and the text
        before them are one step. Instead of messages, a run may have
        OpenTelemetry ``spans`` with messages in ``gen_ai.*`` attributes, as a list or as a whole
        OTLP file (``resourceSpans``). In this case, the messages of the top-level agent, which
        calls all other agents, are used. Each run also has a ``task``, a string or an integer that
        identifies its task. Runs of one task are kept together in every split. The keys ``id``
        and ``labels`` are optional. ``labels`` is a dict that maps the position of the (first)
        message of a step to 1 (not wrong), 0 (wrong) or -1 (unknown). Steps that are missing in
        ``labels`` have unknown labels.
    edges : {"chain", "data"}
        With "chain", each step depends on the previous step. Use "chain" for an agent that is
        stopped at its first doubtful step. Use "data" for completed runs. With "data", a step
        depends on the steps whose observations contain an argument of its calls, and a step
        without calls depends on all earlier steps.
    alternatives : bool
        Whether to compare each run with the other runs of its task. The other runs must be
        complete, and calibration must use the same number of runs per task as prediction. The
        last steps of the other runs become the ``alternatives``, and an additional column
        measures the agreement of a step without calls with these alternatives.

    Returns
    -------
    Bunch
        The data set, as returned by `skdcf.datasets.build_dataset`. The feature columns
        ``position``, ``log_length`` (log of 1 + number of characters) and ``n_calls`` depend only
        on a step and the steps before it. If ``alternatives=True``, there is an additional column
        ``answer_agreement``, the proportion of words in the shorter of two answers that are also in
        the longer answer, averaged over the other runs. The value is 1 for a step with calls. The
        metadata contain the positions of the steps among the messages.

    Raises
    ------
    ValueError
        If a run has no task or no step, if a message has an unknown role or cannot be read
        completely, if an answer precedes its call, if spans are from several agents or lack a
        call, or if a label does not belong to a step. If ``edges="data"`` and a run has more
        than 2,000 steps. If ``alternatives=True`` and a task has only one run.

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
