"""A simulated agent that books rooms, its recorded runs, and a filter that can stop it.

The agent is a script in place of a language model. The more guests a call names at once, the more
often it is wrong. Both examples use it, each in its framework.
"""

import json

import numpy as np

from skdcf import CoherentConformalFilter, save
from skdcf.adapters import from_runs
from skdcf.apps.cli import main
from skdcf.apps.labelling import LabelStore
from skdcf.datasets import read_jsonl, write_jsonl

ALPHA = 0.2
N_STEPS = 4


def question(task):
    """Return the request of the user."""
    return f"Book rooms for party {task}."


def proposed(task, step):
    """Return the guests whom the agent names in a call."""
    rng = np.random.default_rng((task, step))
    return [f"guest {k}" for k in range(rng.integers(1, 20))]


def is_right(task, step):
    """Return the verdict of a person on a call."""
    chance = (len(proposed(task, step)) / 25) ** 2
    return bool(np.random.default_rng((task, step, 1)).random() > chance)


def recorded(task):
    """Return a logged run, with labels keyed by the position of the message."""
    messages = [{"role": "user", "content": question(task)}]
    labels = {}
    for step in range(N_STEPS):
        arguments = json.dumps({"guests": proposed(task, step)})
        call = {"id": str(step), "function": {"name": "book", "arguments": arguments}}
        labels[len(messages)] = int(is_right(task, step))
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": str(step), "content": "booked"},
        ]
    return {"task": task, "messages": messages, "labels": labels}


def fitted_filter():
    """Return a filter that was fitted on the runs of 300 tasks."""
    data = from_runs([recorded(task) for task in range(300)])
    cf = CoherentConformalFilter(online=True, alpha=ALPHA, random_state=0)
    return cf.fit(data.graphs, data.labels)


def may_be_carried_out(cf, task, messages):
    """Return whether the filter keeps the last step of a run."""
    run = from_runs([{"task": task, "messages": messages}])
    return bool(cf.predict(run.graphs)[0][-1])


def save_review(folder, cf, runs, verdicts):
    """Save the verdicts of a person, which can be used for training but not for calibration.

    The runs end with the step that was asked about, and ``verdicts`` are by number of the run
    and of the step. They stand where the page of ``skdcf label --review`` would put them.
    """
    filter, problems, reviewed = (
        str(folder / name) for name in ("filter.skops", "asked.jsonl", "reviewed.jsonl")
    )
    save(cf, filter)
    graphs = from_runs(runs).graphs
    write_jsonl(problems, graphs)
    store = LabelStore(graphs, f"{problems}.review", purpose="review")
    for (run, step), verdict in verdicts.items():
        store.label(run, step, verdict, by="the person on duty")
    command = ["label", problems, "--review", filter, "--no-page", "-o", reviewed]
    print("skdcf label asked.jsonl --review filter.skops:", flush=True)
    if main([*command, "--annotator", "the person on duty"]):
        raise SystemExit("the review cannot be read")
    data = read_jsonl(reviewed)
    try:
        cf.calibrate(data.graphs, data.labels)
    except ValueError as error:
        print(f"calibrating on these verdicts raises an error: {str(error)[:70]}...")
    else:
        raise SystemExit("verdicts of a review have calibrated a filter")
