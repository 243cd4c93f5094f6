"""Runs of agents that somebody recorded, as problems whose claims are steps."""

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
    """Take over recorded runs of agents, whose steps are claims.

    Every assistant message is one step: its content and its calls. Several calls in one
    message are one step, because they are decided on together. Thoughts are left out, and a
    message of thoughts alone is no step. A call without an answer is allowed, since a run may
    end there; an answer to a call that was not made before it is an error. Arguments that
    are not a JSON object are kept as text, and no data flows through them.

    A message is read completely or refused. An assistant message with neither text nor calls,
    a part without text, or a list or an object under a key that no tool is known to use
    raises an error that names the keys. An image or a file in the question reads as its type
    in brackets.

    Parameters
    ----------
    runs : list of dict
        Each with ``messages``, a list of dictionaries as one of these tools writes them:
        chats or Responses of OpenAI and items of its Agents SDK (hosted calls such as
        ``web_search_call``, too), Anthropic, Gemini, Bedrock, LangChain (also as
        ``messages_to_dict`` and ``dumpd`` write them), pydantic-ai, Inspect, or the AI SDK
        of Vercel. The calls of one response are one step with the text before them. Instead
        of messages a run may have ``spans``, those of OpenTelemetry with messages in
        ``gen_ai.*`` attributes, as a list or as a whole OTLP file (``resourceSpans``). The
        run is that of the agent that calls all others.
        And with ``task``, a text or a whole number that says which task it is: runs of one
        task are held together in every split. It may have an ``id``, and ``labels``: a dict
        from the position of a step's (first) message to 1 (not wrong), 0 (wrong) or -1
        (unknown); steps that it leaves out are unknown.
    edges : {"chain", "data"}
        "chain": each step builds on the one before it, as an agent that is stopped at
        its first doubtful step needs. "data", for runs that are over: a step builds on
        those whose observations hold an argument of its calls, and a step without calls
        builds on all steps before it.
    alternatives : bool
        Whether each run is compared with the other runs of its task, which have to be over
        and as many as there are in use. Their last steps become the ``alternatives``, and a
        column says how far a step without calls agrees with them.

    Returns
    -------
    Bunch
        As from `skdcf.datasets.build_dataset`. Columns of ``graphs``, each computed from
        the step and what stands before it: ``position``, ``log_length`` (log of 1 + the
        characters of the step) and ``n_calls``; with alternatives also
        ``answer_agreement``: of the shorter of two answers the share of words that the
        longer has, on average over the other runs, and 1 for a step with calls. The
        positions of the steps among the messages are in the metadata.

    Raises
    ------
    ValueError
        If a run has no task, or no step; if a message has no known role, or something in it
        is not read; if an answer comes before its call; if spans are those of several agents,
        or miss a call; or if a label belongs to no step. With ``edges="data"`` also
        if a run has more than 2,000 steps, and with ``alternatives=True`` if a task has one
        run alone.

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
            f"runs is a {type(runs).__name__}, but must be a list of runs: pass [run]"
        )
    other_runs = answers_of_other_runs(runs) if alternatives else [None] * len(runs)
    records = []
    for number, run in enumerate(runs):
        if not isinstance(run, Mapping):
            raise ValueError(
                f"run {number} is a {type(run).__name__}, but must be a dict with "
                "messages and a task"
            )
        name = run.get("id")
        name = f"run/{number}" if name is None else name
        records.append((name, (run, other_runs[number])))
    return build_dataset(records, lambda record: read_run(record[0], edges, record[1]))
