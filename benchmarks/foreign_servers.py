"""The same extraction against servers that other people wrote: run by hand, `make foreign`.

``--url`` names a server that runs already, and may be given several times, each with its
model: ``--url http://127.0.0.1:8080/v1 my-model``. Without it, what is installed of
llama.cpp (``pip install llama-cpp-python[server]``, with ``--gguf FILE``) and LiteLLM
(``pip install litellm[proxy]``, in front of the scripted server of the tests) is started.
Printed are, per server, how many answers were extracted, flagged and failed, the calls, the
requests that were made again, and the calls of a second run, which has to be 0 where all
replies could be read. A model with random weights talks nonsense: what counts is that
nothing breaks, and that nothing of it is kept by mistake.
"""

import argparse
import importlib.util
import random
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from chat_server import ChatServer  # noqa: E402
from scripted_model import ScriptedModel, make_question  # noqa: E402

from skdcf.llm import (  # noqa: E402
    ChatClient,
    ClaimExtractor,
    EndpointError,
    Frequency,
    SampleAnswers,
    Verify,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", nargs=2, action="append", metavar=("URL", "MODEL"))
    parser.add_argument("--gguf", help="file of a model for llama.cpp")
    parser.add_argument("--n-answers", type=int, default=10)
    options = parser.parse_args()
    with ExitStack() as stack:
        servers = [(url, url, model) for url, model in options.url or ()]
        if not servers:
            servers = list(start_all(stack, options.gguf))
        if not servers:
            sys.exit("no server: pass --url, or install llama-cpp-python or litellm")
        for name, url, model in servers:
            measure(name, url, model, options.n_answers)


def start_all(stack, gguf):
    """Name, address and model of each server that can be started here."""
    if gguf and importlib.util.find_spec("llama_cpp"):
        port = free_port()
        command = [sys.executable, "-m", "llama_cpp.server", "--model", gguf]
        stack.enter_context(running([*command, "--port", str(port)], port))
        yield "llama.cpp", f"http://127.0.0.1:{port}/v1", "local"
    if importlib.util.find_spec("litellm"):
        port, scripted = free_port(), stack.enter_context(ChatServer(ScriptedModel()))
        command = [
            Path(sys.executable).with_name("litellm"),
            "--model",
            "openai/scripted",
        ]
        command += ["--api_base", scripted.url, "--port", str(port)]
        stack.enter_context(running([str(part) for part in command], port))
        yield "LiteLLM", f"http://127.0.0.1:{port}/v1", "openai/scripted"


@contextmanager
def running(command, port):
    """A server in a process of its own, once it listens."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < end:
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.5)
            yield
        finally:
            process.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(name, url, model, n):
    """Extract twice, and print what became of it."""
    rng, scripted = random.Random(0), ScriptedModel()
    questions = [make_question(rng) for _ in range(n)]
    answers = [(q, scripted.solve(q, rng)) for q in questions]
    with tempfile.TemporaryDirectory() as folder:
        client = ChatClient(
            url, cache=f"{folder}/replies.sqlite", key_variable=None, max_tokens=400
        )
        extractor = ClaimExtractor(
            model,
            client,
            sample=SampleAnswers(1),
            features=[Frequency(), Verify()],
            on_failure="abstain",
        )
        for run in ("first", "second"):
            begin = time.perf_counter()
            try:
                done = extractor.extract(answers)
            except EndpointError as error:
                print(f"{name}, {run} run: {error}")
                break
            usage, seconds = extractor.usage_, time.perf_counter() - begin
            failed = sum(e.graph.n_claims == 0 for e in done)
            print(
                f"{name}, {run} run: {n} answers, {failed} without claims, "
                f"{sum(bool(e.flags) for e in done)} flagged, {usage.calls} calls, "
                f"{usage.retries} made again, {usage.cached} cached, {seconds:.1f} s"
            )
        client.close()


if __name__ == "__main__":
    main()
