"""LangGraph: a node that interrupts a run before a doubtful tool call and asks a person.

The person approves or corrects the step. After an approval, the person must approve every later
step as well, and the guarantee holds for the run. After a correction, a new segment begins.
"""

import operator
import tempfile
from pathlib import Path
from typing import Annotated

import offline
from booking import (
    ALPHA,
    N_STEPS,
    fitted_filter,
    is_right,
    may_be_carried_out,
    proposed,
    question,
    save_review,
)
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    messages_to_dict,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

offline.print_versions("langgraph", "langchain-core")
cf = fitted_filter()


class Run(TypedDict):
    """State of a run, where ``start`` is the position of the first message of the last segment."""

    task: int
    messages: Annotated[list, add_messages]
    start: int
    segments: int
    asked: Annotated[list, operator.add]


def step_of(state):
    """Return the number of executed steps."""
    return sum(isinstance(message, ToolMessage) for message in state["messages"])


def agent(state):
    """Return the next scripted call, in place of a language model."""
    guests = proposed(state["task"], step_of(state))
    call = {"name": "book", "args": {"guests": guests}, "id": str(step_of(state))}
    return {"messages": [AIMessage(content="", tool_calls=[call])]}


def as_dicts(messages):
    """Convert messages to the format of `from_runs`."""
    return [message["data"] for message in messages_to_dict(messages)]


def check(state):
    """Ask a person about a step that the filter does not keep."""
    first, *rest = state["messages"]
    segment = as_dicts([first, *rest[max(state["start"] - 1, 0) :]])
    if may_be_carried_out(cf, state["task"], segment):
        return {}
    call = rest[-1].tool_calls[0]
    guests = interrupt({"step": step_of(state), "call": call["args"]})
    asked = [step_of(state)]
    if guests == call["args"]["guests"]:
        return {"asked": asked}

    # The corrected call is executed, and the following steps form a new problem.
    corrected = AIMessage(
        id=rest[-1].id, content="", tool_calls=[call | {"args": {"guests": guests}}]
    )
    return {
        "asked": asked,
        "messages": [corrected],
        "segments": state["segments"] + 1,
        "start": len(state["messages"]) + 1,
    }


def tools(state):
    """Execute the step."""
    call = state["messages"][-1].tool_calls[0]
    return {"messages": [ToolMessage(content="booked", tool_call_id=call["id"])]}


def goes_on(state):
    """Return the next node, or END after the last step."""
    return END if step_of(state) == N_STEPS else "agent"


graph = StateGraph(Run)
for node in (agent, check, tools):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "agent")
graph.add_edge("agent", "check")
graph.add_edge("check", "tools")
graph.add_conditional_edges("tools", goes_on)
app = graph.compile(checkpointer=InMemorySaver())

asked_about, verdicts = [], {}
n_runs = 40
n_segments = n_wrong = 0
for task in range(1000, 1000 + n_runs):
    thread = {"configurable": {"thread_id": str(task)}}
    state = {"task": task, "messages": [HumanMessage(question(task))], "start": 0}
    result = app.invoke(state | {"segments": 1, "asked": []}, thread)
    while "__interrupt__" in result:
        # Record the run as it was shown to the person.
        messages = app.get_state(thread).values["messages"]
        step = result["__interrupt__"][0].value["step"]
        verdict = "true" if is_right(task, step) else "false"
        verdicts[len(asked_about), step] = verdict
        asked_about.append({"task": task, "messages": as_dicts(messages)})
        guests = messages[-1].tool_calls[0]["args"]["guests"]
        answer = guests if verdict == "true" else guests[:1]
        result = app.invoke(Command(resume=answer), thread)
    asked = result["asked"]
    n_segments += result["segments"]
    n_wrong += any(
        not is_right(task, step) for step in range(N_STEPS) if step not in asked
    )
    if result["segments"] == 1 and asked:  # every step after an approval needs approval
        assert asked == [*range(asked[0], N_STEPS)]

print(f"{n_runs} runs of {N_STEPS} steps: a person was asked {len(asked_about)} times")
print(
    f"{n_wrong} runs executed a wrong step without approval (for {n_segments} segments, "
    f"the guarantee allows {ALPHA * n_segments:.1f} on average)"
)
with tempfile.TemporaryDirectory() as folder:
    save_review(Path(folder), cf, asked_about, verdicts)
assert 0 < len(asked_about) < n_runs * N_STEPS and n_wrong <= 2 * ALPHA * n_segments
offline.finish("langgraph")
