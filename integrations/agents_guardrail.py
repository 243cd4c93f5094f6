"""OpenAI Agents SDK: a tool guardrail that stops a run before the first doubtful step."""

import asyncio
import json

import offline
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailTripwireTriggered,
    Usage,
    function_tool,
    set_tracing_disabled,
    tool_input_guardrail,
)
from booking import (
    ALPHA,
    N_STEPS,
    fitted_filter,
    is_right,
    may_be_carried_out,
    proposed,
    question,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

set_tracing_disabled(True)
offline.print_versions("openai-agents", "openai")
cf = fitted_filter()


class Script(Model):
    """Model that returns the scripted calls of a task, in place of a language model."""

    def __init__(self, task):
        self.task = task

    async def get_response(self, system_instructions, input, *args, **options):
        """Return the next call, or a final message after the last step."""
        done = sum(item.get("type") == "function_call_output" for item in input)
        if done == N_STEPS:
            text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
            item = ResponseOutputMessage(
                id="m",
                content=[text],
                role="assistant",
                status="completed",
                type="message",
            )
        else:
            arguments = json.dumps({"guests": proposed(self.task, done)})
            item = ResponseFunctionToolCall(
                call_id=str(done),
                name="book",
                arguments=arguments,
                type="function_call",
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args, **options):
        """Raise an error, because this example does not stream."""
        raise NotImplementedError


class Decide(RunHooks):
    """Hooks that filter each response of the model before its tools are called."""

    async def on_llm_start(self, context, agent, system_prompt, input_items):
        """Store the messages that precede the response."""
        context.context["before"] = list(input_items)

    async def on_llm_end(self, context, agent, response):
        """Store whether the filter keeps the step, which is the whole response."""
        step = [item.model_dump(exclude_unset=True) for item in response.output]
        messages = [*context.context["before"], *step]
        task = context.context["task"]
        context.context["keep"] = may_be_carried_out(cf, task, messages)


@tool_input_guardrail
def first_doubtful_step(data):
    """Stop the run if the filter does not keep the step."""
    if data.context.context["keep"]:
        return ToolGuardrailFunctionOutput.allow()
    return ToolGuardrailFunctionOutput.raise_exception("a doubtful step")


booked = {}


@function_tool(tool_input_guardrails=[first_doubtful_step])
def book(guests: list[str]) -> str:
    """Book a room for each guest."""
    booked["n"] += 1
    return "booked"


async def run(task):
    """Return the number of executed steps, and whether the run was stopped."""
    booked["n"] = 0
    agent = Agent(name="booking", model=Script(task), tools=[book])
    context = {"task": task}
    try:
        await Runner.run(
            agent,
            question(task),
            context=context,
            hooks=Decide(),
            max_turns=N_STEPS + 2,
        )
    except ToolInputGuardrailTripwireTriggered:
        return booked["n"], True
    return booked["n"], False


n_runs = 60
n_stopped = n_wrong = 0
for task in range(1000, 1000 + n_runs):
    n_steps, stopped = asyncio.run(run(task))
    n_stopped += stopped
    n_wrong += any(not is_right(task, step) for step in range(n_steps))
    assert stopped or n_steps == N_STEPS
print(f"{n_stopped} of {n_runs} runs were stopped, and {n_wrong} executed a wrong step")
print(f"(the guarantee allows {ALPHA * n_runs:.0f} on average)")
assert 0 < n_stopped < n_runs and n_wrong <= 2 * ALPHA * n_runs
offline.finish("openai-agents")
