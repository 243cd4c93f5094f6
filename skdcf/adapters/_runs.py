"""Runs of agents, as the messages of a chat: every message of the agent is a step.

What tools answer is never the context of the problem: the context belongs to all steps,
and a step that is judged before it is carried out would see what tools answer later.

On AgentProcessBench (250 runs of 50 tasks) four more columns gained nothing on random
splits by task and were left out: whether a call is no JSON, whether the same call was made
before, the share of arguments that were seen before, and whether nothing was observed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.utils import Bunch

from .._checks import check_choice
from ..datasets.records import build_dataset

#: Columns of a step, each computed from the messages up to it.
_COLUMNS = (
    "position",
    "log_length",
    "n_calls",
)
#: What stands for a step without content and calls, and for what is no text.
_NO_CONTENT = "(no content)"
#: Shorter arguments occur in observations by chance.
_SHORTEST_ARGUMENT = 3
_MOST_STEPS = 2000  # of which each is compared with all before it


def from_runs(runs: Sequence[Mapping[str, Any]], *, edges: str = "chain") -> Bunch:
    """Take over recorded runs of agents, whose steps are claims.

    Every assistant message is one step: its content and its calls. Several calls in one
    message are one step, because they are decided on together. A step without content
    and calls reads "(no content)"; an image or another part that is no text reads as its
    type in brackets. A call without an answer is allowed, since a run may end there; an
    answer to a call that was not made before it is an error. Arguments that are no JSON
    object are kept as text, and no data flows through them.

    Parameters
    ----------
    runs : list of dict
        Each with ``messages``, a list of chat messages (``role``, ``content``,
        ``tool_calls``, ``tool_call_id``), and ``task``, a text or a whole number that
        says which task it is: runs of one task are held together in every split. It may
        have an ``id``, and ``labels``: a dict from the position of an assistant message
        to 1 (not wrong), 0 (wrong) or -1 (unknown); steps that it leaves out are unknown.
    edges : {"chain", "data"}
        "chain": each step builds on the one before it, as an agent that is stopped at
        its first doubtful step needs. "data", for runs that are over: a step builds on
        those whose observations hold an argument of its calls, and a step without calls
        builds on all steps before it.

    Returns
    -------
    Bunch
        As from `skdcf.datasets.build_dataset`. Columns of ``graphs``, each computed from
        the step and what stands before it: ``position``, ``log_length`` (log of 1 + the
        characters of the step) and ``n_calls``. The positions of the steps among the
        messages are in the metadata.

    Raises
    ------
    ValueError
        If a run has no task, or no step; if a message has no known role; if an answer
        comes before its call; or if a label belongs to no step. With ``edges="data"`` also
        if a run has more than 2,000 steps.

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
    records = []
    for number, run in enumerate(runs):
        if not isinstance(run, Mapping):
            raise ValueError(
                f"run {number} is a {type(run).__name__}, but must be a dict with "
                "messages and a task"
            )
        name = run.get("id")
        records.append((f"run/{number}" if name is None else name, run))
    return build_dataset(records, lambda run: _read_run(run, edges))


def _read_run(run, edges):
    """A run as a line of JSON Lines."""
    task = run.get("task")
    if isinstance(task, bool) or not isinstance(task, str | int) or task == "":
        raise ValueError(
            f"task is {task!r}, but must be a text or a whole number that says which "
            "task this is a run of"
        )
    steps = _Steps()
    for position, message in enumerate(run["messages"]):
        steps.read(position, message)
    if not steps.texts:
        raise ValueError("no message has the role 'assistant': the run has no step")

    n_steps = len(steps.texts)
    pairs = [(v - 1, v) for v in range(1, n_steps)]
    if edges == "data":
        pairs = steps.data_flow()

    record = {
        "claims": steps.texts,
        "problem": steps.question,
        "features": steps.rows,
        "feature_names": list(_COLUMNS),
        "edges": pairs,
        "group": str(task),
        "metadata": {"messages": steps.positions},
    }
    if run.get("labels") is not None:
        record["labels"] = _labels_of(run["labels"], steps.positions)
    return record


def _labels_of(labels, positions):
    """The label of each step, -1 where nobody judged it."""
    by_position = {int(position): label for position, label in labels.items()}
    strangers = sorted(set(by_position) - set(positions))
    if strangers:
        raise ValueError(
            f"labels name message {strangers[0]}, which is not an assistant's: steps "
            f"are the messages {positions}"
        )
    return [by_position.get(position, -1) for position in positions]


class _Steps:
    """The steps of a run, read message by message: nothing looks ahead."""

    def __init__(self):
        self.question = None
        self.texts = []
        self.rows = []
        self.positions = []
        self.arguments = []
        self.observed = []
        self.caller = {}

    def read(self, position, message):
        role = message.get("role")
        text = _text_of(message.get("content"))
        if role == "assistant":
            self._add_step(position, text, message.get("tool_calls") or ())
        elif role == "tool":
            self._add_answer(position, text, message.get("tool_call_id"))
        elif role in ("user", "system", "developer"):
            if role == "user" and self.question is None:
                self.question = text
        else:
            raise ValueError(
                f"message {position} has the role {role!r}, but must have one of "
                "'system', 'developer', 'user', 'assistant' and 'tool'"
            )

    def _add_answer(self, position, text, name):
        if name not in self.caller:
            raise ValueError(
                f"message {position} answers the call {name!r}, which no message before "
                "it makes"
            )
        self.observed[self.caller[name]] += "\n" + text

    def _add_step(self, position, text, calls):
        lines = [text] if text.strip() else []
        arguments = []
        for call in calls:
            function = call["function"]
            written, values = _arguments_of(function.get("arguments"))
            arguments += values
            lines.append(f"{function['name']}({written})")
            self.caller[call.get("id")] = len(self.texts)

        step = "\n".join(lines) or _NO_CONTENT
        row = {
            "position": len(self.texts),
            "log_length": math.log1p(len(step)),
            "n_calls": len(calls),
        }
        self.texts.append(step)
        self.rows.append([float(row[name]) for name in _COLUMNS])
        self.positions.append(position)
        self.arguments.append(None if not calls else arguments)
        self.observed.append("")

    def data_flow(self):
        """Pairs (step whose observation is used, step that uses it)."""
        if len(self.texts) > _MOST_STEPS:
            raise ValueError(
                f'the run has {len(self.texts):,} steps, and with edges="data" each is '
                f"compared with all before it, up to {_MOST_STEPS:,} steps: use "
                'edges="chain", or cut the run into parts'
            )
        pairs = []
        for v, arguments in enumerate(self.arguments):
            for u in range(v):
                if arguments is None or any(
                    len(value) >= _SHORTEST_ARGUMENT and value in self.observed[u]
                    for value in arguments
                ):
                    pairs.append((u, v))
        return pairs


def _text_of(content):
    """The text of a message; other parts, such as images, read as their type."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = []
    for part in content:
        if part.get("text") is not None:
            parts.append(part["text"])
        else:
            parts.append(f"[{part['type']}]")
    return "\n".join(parts)


def _arguments_of(arguments):
    """Arguments as they are written, and the values in a JSON object."""
    if isinstance(arguments, Mapping):  # some frameworks have parsed them already
        return json.dumps(arguments, ensure_ascii=False), _leaves(arguments)
    written = "" if arguments is None else str(arguments)
    try:
        parsed = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return written, []
    return written, _leaves(parsed) if isinstance(parsed, Mapping) else []


def _leaves(value):
    """The texts and numbers in nested arguments, as texts."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    if value is None or isinstance(value, bool):
        return []
    return [str(value)]
