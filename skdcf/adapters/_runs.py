"""Convert recorded runs of agents to problems whose claims are steps."""

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
    """Convert recorded runs of agents to problems whose claims are steps.

    Every assistant message is one step, with its content and its calls. Several calls in one
    message are one step, because the agent decided on them together. Thoughts are ignored, and
    a message that contains only thoughts is not a step. A call without an answer is valid,
    since a run may end there. An answer without an earlier call is an error. Arguments that
    are not a JSON object are kept as text, and are not used for ``edges="data"``.

    A message is either read completely or refused. An error that lists the keys is raised for
    an assistant message with neither text nor calls, for a part without text, and for a list or
    an object under an unknown key. An image or a file in the question is replaced by its type
    in brackets.

    Parameters
    ----------
    runs : list of dict
        Each run has ``messages``, a list of dictionaries as written by one of these tools:
        chats or Responses of OpenAI and items of its Agents SDK (including hosted calls such as
        ``web_search_call``), Anthropic, Gemini, Bedrock, LangChain (also as written by
        ``messages_to_dict`` and ``dumpd``), pydantic-ai, Inspect, or the AI SDK of Vercel. The
        calls of one response and the text before them are one step. Instead of messages, a run
        may have ``spans`` of OpenTelemetry with messages in ``gen_ai.*`` attributes, as a list
        or as a whole OTLP file (``resourceSpans``). The run is then that of the agent that
        calls all others.
        Each run also has a ``task``, a text or a whole number that identifies its task. Runs of
        one task are kept together in every split. Optional keys are ``id`` and ``labels``, a
        dict from the position of a step's (first) message to 1 (not wrong), 0 (wrong) or -1
        (unknown). Missing steps are unknown.
    edges : {"chain", "data"}
        "chain": each step depends on the previous one. Use it for an agent that is stopped at
        its first doubtful step. "data", for completed runs: a step depends on the steps whose
        observations contain an argument of its calls, and a step without calls depends on all
        earlier steps.
    alternatives : bool
        Whether each run is compared with the other runs of its task, which must be completed,
        and equal in number to those in use. Their last steps become the ``alternatives``, and
        an additional column measures how far a step without calls agrees with them.

    Returns
    -------
    Bunch
        As in `skdcf.datasets.build_dataset`. The columns of ``graphs`` depend only on a step
        and the steps before it: ``position``, ``log_length`` (log of 1 + number of characters)
        and ``n_calls``. With alternatives also ``answer_agreement``: the share of the words of
        the shorter of two answers that are also in the longer one, averaged over the other
        runs, and 1 for a step with calls. The positions of the steps among the messages are in
        the metadata.

    Raises
    ------
    ValueError
        If a run has no task or no step, if a message has an unknown role or cannot be read
        completely, if an answer precedes its call, if spans are from several agents or lack a
        call, or if a label does not belong to a step. With ``edges="data"`` also if a run has
        more than 2,000 steps, and with ``alternatives=True`` if a task has only one run.

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
            f"runs must be a list of runs, got a {type(runs).__name__}. For one run, pass [run]"
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
