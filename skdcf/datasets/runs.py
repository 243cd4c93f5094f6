"""Convert agent runs, given as chat messages, to problems with one claim per agent message.

The context of a problem never includes tool results. The context is available to all steps. If
the context contained tool results, a step that is judged before its execution would depend on
later results.

A feature is included if it increased the proportion of kept good steps on AgentProcessBench by at
least two standard errors of the paired difference. The comparison used 250 runs on 50 tasks and
40 splits by task. The script ``benchmarks/guarantees/agents.py`` prints the paired difference for
each feature. The features that did not qualify indicate whether a call repeats an earlier call,
what proportion of its words occurred before, whether the last call failed, and how long the last
tool result is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .fetch import other_answers
from .messages import chat_messages
from .records import BROKEN

#: Names of the step columns, which are computed from the messages up to the step.
_COLUMNS = (
    "position",
    "log_length",
    "n_calls",
)
#: Minimum length of an argument, because shorter arguments may appear in tool results by chance.
_SHORTEST_ARGUMENT = 3
# maximum number of steps, because each step is compared with all earlier steps
_MOST_STEPS = 2000
_AGREEMENT = "answer_agreement"
_THOUGHT = re.compile(r"(?s)<think>.*?</think>")
_ANSWER = re.compile(r"(?s)<answer>(.*?)(?:</answer>|\Z)")
_WORD = re.compile(r"\w+")


def answers_of_other_runs(runs: Sequence[Any]) -> list[list[str]]:
    """Return, for each run, the last steps of the other runs of its task.

    Parameters
    ----------
    runs : list of dict
        The runs, as in `skdcf.adapters.from_runs`. Invalid runs do not contribute a last step.

    Returns
    -------
    answers : list of list of str
        For each run, the last steps of the other runs of its task.
    """
    tasks: list[str | None] = []
    answers: list[str] = []
    for run in runs:
        try:
            answers.append(read_run(run, "chain")["claims"][-1])
            tasks.append(str(run["task"]))
        except BROKEN:
            answers.append("")
            tasks.append(None)
    return other_answers(tasks, [""] * len(answers), answers)


def read_run(
    run: Mapping[str, Any], edges: str, alternatives: Sequence[str] | None = None
) -> dict[str, Any]:
    """Convert a run to a record in the format of the JSON schema.

    Parameters
    ----------
    run : dict
        As in `skdcf.adapters.from_runs`.
    edges : {"chain", "data"}
        As in `skdcf.adapters.from_runs`.
    alternatives : list of str, optional
        The last steps of the other runs of the task, which are compared with each step.

    Returns
    -------
    record : dict
        An object that matches the published schema.

    Raises
    ------
    ValueError
        If the run is invalid.
    """
    task = run.get("task")
    if isinstance(task, bool) or not isinstance(task, str | int) or task == "":
        raise ValueError(
            f"task must be a string or an integer that identifies the task, got {task!r}"
        )
    steps = _Steps()
    for position, message in chat_messages(run):
        steps.read(position, message)
    if not steps.texts:
        raise ValueError(
            "each run must have at least one step, but no message has the role "
            "'assistant'"
        )

    n_steps = len(steps.texts)
    pairs = [[v - 1, v] for v in range(1, n_steps)]
    if edges == "data":
        pairs = steps.data_flow()

    record: dict[str, Any] = {
        "claims": steps.texts,
        "problem": steps.question,
        "features": steps.rows,
        "feature_names": list(_COLUMNS),
        "edges": pairs,
        "group": str(task),
        "metadata": {"messages": steps.positions},
    }
    if alternatives is not None:
        if not alternatives:
            raise ValueError(
                "alternatives=True requires several runs of each task, because answers are "
                f"compared between runs, but the task {task!r} has only one run"
            )
        record["alternatives"] = list(alternatives)
        record["feature_names"].append(_AGREEMENT)
        for row, text, arguments in zip(
            steps.rows, steps.texts, steps.arguments, strict=True
        ):
            row.append(1.0 if arguments is not None else _agreement(text, alternatives))
    if run.get("labels") is not None:
        record["labels"] = _labels_of(run["labels"], steps.positions)
    return record


def read_beginning(run: Mapping[str, Any]) -> dict[str, Any]:
    """Read the messages that precede the first step of a run.

    Parameters
    ----------
    run : dict
        A run whose ``messages`` all precede the first step. The run may also contain
        ``alternatives``.

    Returns
    -------
    beginning : dict
        The question and the feature names, in the format of the published schema.

    Raises
    ------
    ValueError
        If a message is invalid or is a step.
    """
    steps = _Steps()
    for position, message in chat_messages(run):
        steps.read(position, message)
    if steps.texts:
        raise ValueError(
            "the initial messages of a run must not contain a step, but message "
            f"{steps.positions[0]} is a step. Send only the messages before the first step"
        )
    names = [*_COLUMNS, *([_AGREEMENT] if run.get("alternatives") else [])]
    asked = {} if steps.question is None else {"question": steps.question}
    return {"feature_names": names, **asked}


def _agreement(text, alternatives):
    """Return the agreement of a step without tool calls with the last steps of other runs.

    The agreement with a text is the proportion of words in the shorter text that are also in the
    longer text. The agreements with the other runs are averaged.
    """
    words = _words_of_answer(text)
    shares = []
    for words_of_other in map(_words_of_answer, alternatives):
        shorter = min(len(words), len(words_of_other))
        shares.append(len(words & words_of_other) / max(shorter, 1))
    return sum(shares) / len(shares)


def _words_of_answer(text):
    """Return the words of the marked final answer, or of the whole text except its thoughts."""
    text = _THOUGHT.sub("", text)
    marked = _ANSWER.findall(text)
    return set(_WORD.findall((marked[-1] if marked else text).casefold()))


def _labels_of(labels, positions):
    """Return the label of each step, or -1 if the step was not judged."""
    try:
        by_position = {int(position): label for position, label in labels.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            "labels must be a dict that maps the message position of each step to 1, 0 "
            f"or -1, got {labels!r:.40}"
        ) from error
    strangers = sorted(set(by_position) - set(positions))
    if strangers:
        raise ValueError(
            f"each key of labels must be one of the step positions {positions}, got "
            f"{strangers[0]}"
        )
    return [by_position.get(position, -1) for position in positions]


class _Steps:
    """The steps of a run, which are read message by message and do not depend on later messages."""

    def __init__(self):
        self.question = None
        self.texts = []
        self.rows = []
        self.positions = []
        self.arguments = []
        self.observed = []
        self.caller = {}

    def read(self, position, message):
        if message.role == "assistant":
            self._add_step(position, message)
        elif message.role == "tool":
            self._add_answer(position, message)
        elif message.role == "user" and self.question is None:
            self.question = message.text

    def _add_answer(self, position, message):
        name = message.answers
        if name not in self.caller:
            raise ValueError(
                f"message {position} answers the call {name!r}, but no earlier "
                "message contains this call"
            )
        self.observed[self.caller[name]] += "\n" + message.text

    def _add_step(self, position, message):
        lines = [message.text] if message.text.strip() else []
        arguments = []
        for call in message.calls:
            written, values = _arguments_of(call.arguments)
            arguments += values
            lines.append(f"{call.name}({written})")
            self.caller[call.id] = len(self.texts)

        step = "\n".join(lines)
        row = {
            "position": len(self.texts),
            "log_length": math.log1p(len(step)),
            "n_calls": len(message.calls),
        }
        self.texts.append(step)
        self.rows.append([float(row[name]) for name in _COLUMNS])
        self.positions.append(position)
        self.arguments.append(None if not message.calls else arguments)
        self.observed.append("")

    def data_flow(self):
        """Return the edges for ``edges="data"``, as pairs of step positions."""
        if len(self.texts) > _MOST_STEPS:
            raise ValueError(
                f'each run must have at most {_MOST_STEPS:,} steps if edges="data", got '
                f"{len(self.texts):,}. Each step is compared with all earlier steps. "
                'Use edges="chain", or split the run into parts'
            )
        pairs = []
        for v, arguments in enumerate(self.arguments):
            for u in range(v):
                if arguments is None or any(
                    len(value) >= _SHORTEST_ARGUMENT and value in self.observed[u]
                    for value in arguments
                ):
                    pairs.append([u, v])
        return pairs


def _arguments_of(arguments):
    """Return the arguments of a call as text, and a list of the values in these arguments."""
    written = arguments
    # Some frameworks store parsed arguments instead of a JSON string.
    if not isinstance(arguments, str):
        written = json.dumps(arguments, ensure_ascii=False)
    try:
        parsed = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return written, []
    return written, _leaves(parsed) if isinstance(parsed, Mapping) else []


def _leaves(value):
    """Return the texts and numbers in nested arguments as a list of strings."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    if value is None or isinstance(value, bool):
        return []
    return [str(value)]
