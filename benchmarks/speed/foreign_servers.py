"""Test the extraction with servers of other projects. Run this program manually.

``make foreign`` is a different test, which runs all steps with a small language model
(benchmarks/guarantees/foreign_model.py).

``--url`` names a running server and its model, and may be repeated: ``--url
http://127.0.0.1:8080/v1 my-model``. Without ``--url``, two servers are started. Each server is
installed in a separate environment, because its dependencies conflict with those of the tests::

    python -m venv llama && llama/bin/pip install xllamacpp gguf
    python -m venv lite && lite/bin/pip install "litellm[proxy]"
    python benchmarks/speed/foreign_servers.py --llama llama/bin/python --litellm lite/bin/litellm

The first is llama.cpp's server with a tiny model, which is created with random weights. xllamacpp
contains a compiled server. llama-cpp-python[server], which must be compiled, can also be used. The
second is LiteLLM's proxy for the scripted server of the tests. For each server, the program prints
the number of answers that were extracted, flagged and failed, the number of calls and of repeated
requests, and the number of calls of a second run, which must be 0 if all replies were readable. The
replies of a model with random weights are meaningless. The test checks that no step fails, and that
no meaningless claim is kept.

Then a question with a passage is sent to ``skdcf answer`` and to ``POST /v1/answer`` of ``skdcf
serve``. The filter was calibrated on answers of the scripted model with the same name. The program
prints the results. For our own server, it also prints whether the request for the answer contained
the passage.
"""

import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS))

from chat_server import ChatServer  # noqa: E402
from scripted_model import ScriptedModel, is_right, make_question  # noqa: E402

from skdcf import HardCF, save  # noqa: E402
from skdcf.apps.llm import (  # noqa: E402
    ChatClient,
    ClaimExtractor,
    EndpointError,
    Frequency,
    SampleAnswers,
    Verify,
)

KEY = "LITELLM_MASTER_KEY"  # without one the proxy does not start
# Letters and bytes as tokens, two layers, random weights: half a megabyte.
LLAMA = """
import sys, time
import gguf
import numpy as np

rng, width, n_layers = np.random.default_rng(0), 64, 2
special, kind = ["<unk>", "<s>", "</s>"], gguf.TokenType
letters = [chr(c) for c in range(33, 127)] + [chr(0x2581)]
tokens = [*special, *(f"<0x{b:02X}>" for b in range(256)), *letters]
kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256]
kinds += [kind.NORMAL] * len(letters)
out = gguf.GGUFWriter(sys.argv[1], "llama")
out.add_context_length(8192)
out.add_embedding_length(width)
out.add_block_count(n_layers)
out.add_feed_forward_length(2 * width)
out.add_head_count(4)
out.add_head_count_kv(4)
out.add_layer_norm_rms_eps(1e-5)
out.add_rope_dimension_count(width // 4)
out.add_tokenizer_model("llama")
out.add_tokenizer_pre("default")
out.add_token_list([token.encode() for token in tokens])
out.add_token_scores([0.0] * len(tokens))
out.add_token_types(kinds)
out.add_bos_token_id(1)
out.add_eos_token_id(2)
out.add_chat_template("{% for m in messages %}{{ m['content'] }}\\n{% endfor %}")
shapes = {"token_embd": (len(tokens), width), "output": (len(tokens), width)}
for i in range(n_layers):
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        shapes[f"blk.{i}.{name}"] = (width, width)
    for name in ("ffn_gate", "ffn_up"):
        shapes[f"blk.{i}.{name}"] = (2 * width, width)
    shapes[f"blk.{i}.ffn_down"] = (width, 2 * width)
    for name in ("attn_norm", "ffn_norm"):
        out.add_tensor(f"blk.{i}.{name}.weight", np.ones(width, np.float32))
out.add_tensor("output_norm.weight", np.ones(width, np.float32))
for name, shape in shapes.items():
    out.add_tensor(f"{name}.weight", rng.normal(0, 0.05, shape).astype(np.float32))
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
try:
    from xllamacpp import CommonParams, Server
except ImportError:
    from llama_cpp.server.__main__ import main
    sys.argv[1:] = ["--model", sys.argv[1], "--port", sys.argv[2], "--n_ctx", "8192"]
    main()
else:
    given = CommonParams()
    given.model.path, given.port, given.n_ctx = sys.argv[1], int(sys.argv[2]), 32768
    given.n_parallel, given.cpuparams.n_threads = 4, 1
    server = Server(given)
    while True:
        time.sleep(60)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", nargs=2, action="append", metavar=("URL", "MODEL"))
    parser.add_argument("--llama", help="python with xllamacpp and gguf")
    parser.add_argument("--litellm", help="command that starts LiteLLM's proxy")
    parser.add_argument("--n-answers", type=int, default=10)
    parser.add_argument("--max-tokens", type=int, default=400)
    options = parser.parse_args()
    with ExitStack() as stack:
        servers = [Foreign(url, url, model) for url, model in options.url or ()]
        if not servers:
            servers = list(start_all(stack, options.llama, options.litellm))
        if not servers:
            sys.exit("no server: pass --url, or --llama and --litellm")
        for server in servers:
            measure(server, options.n_answers, options.max_tokens)
            ask_with_a_passage(server, options.max_tokens)


@dataclass
class Foreign:
    """A server: its name, address, model and variable of the key, and what is behind it."""

    name: str
    url: str
    model: str
    key: str | None = None
    behind: ChatServer | None = None


def start_all(stack, llama, litellm):
    """Each server that is to be started."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    if llama:
        port = free_port()
        command = [llama, "-c", LLAMA, str(folder / "random.gguf"), str(port)]
        stack.enter_context(running(command, port, folder / "llama.log"))
        yield Foreign("llama.cpp", f"http://127.0.0.1:{port}/v1", "local")
    if litellm:
        port, scripted = free_port(), stack.enter_context(ChatServer(ScriptedModel()))
        os.environ |= {KEY: "sk-of-the-proxy-alone", "OPENAI_API_KEY": "sk-behind-it"}
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
        command = [litellm, "--model", "openai/scripted", "--api_base", scripted.url]
        command += ["--port", str(port)]
        stack.enter_context(running(command, port, folder / "litellm.log"))
        url = f"http://127.0.0.1:{port}/v1"
        yield Foreign("LiteLLM", url, "openai/scripted", key=KEY, behind=scripted)


@contextmanager
def running(command, port, log):
    """A server in a process of its own, once it listens; the end of its log, if it dies."""
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said) as process,
    ):
        try:
            end = time.monotonic() + 300
            while process.poll() is None and time.monotonic() < end:
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.5)
            else:
                sys.exit(f"{command[0]} did not start: {log.read_text()[-2000:]}")
            yield
        finally:
            process.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(server, n, max_tokens):
    """Extract twice, and print what became of it."""
    name = server.name
    rng, scripted = random.Random(0), ScriptedModel()
    questions = [make_question(rng) for _ in range(n)]
    answers = [(q, scripted.solve(q, rng)) for q in questions]
    with tempfile.TemporaryDirectory() as folder:
        cache = f"{folder}/replies.sqlite"
        client = ChatClient(
            server.url, cache=cache, key_variable=server.key, max_tokens=max_tokens
        )
        extractor = ClaimExtractor(
            server.model,
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
                f"{usage.retries} made again, {usage.cached} cached, {seconds:.1f} s",
                flush=True,
            )
        client.close()


QUESTION = "Start with 12, add 5, then multiply by 3. What comes out?"
PASSAGE = "Sums are sums, whoever does them."


def calibrated(model):
    """A filter that calibrated on answers over passages, which the scripted model wrote."""
    rng = random.Random(0)
    items = [{"problem": make_question(rng), "answer": None} for _ in range(40)]
    items = [item | {"context": [PASSAGE]} for item in items]
    with ChatServer(ScriptedModel(slips=0.3)) as server:
        client = ChatClient(server.url, key_variable=None)
        extractor = ClaimExtractor(model, client, features=[Verify()])
        graphs = [done.graph for done in extractor.extract(items, write=True)]
        client.close()
    labels = [[int(is_right(text)) for text in graph.claims] for graph in graphs]
    return HardCF("judge_log_odds", alpha=0.3).fit(graphs, labels)


def ask_with_a_passage(server, max_tokens):
    """Ask a question by the command and by the service, and print how both ended."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        passage = folder / "passage.txt"
        passage.write_text(PASSAGE)
        save(calibrated(server.model), folder / "m.skops")
        program = [sys.executable, "-m", "skdcf"]
        options = ["--base-url", server.url, "--max-tokens", str(max_tokens)]
        options += ["--key-variable", server.key or ""]

        command = [*program, "answer", str(folder / "m.skops"), "-q", QUESTION]
        command += ["--context", str(passage), "--json", *options]
        n_before = n_requests(server)
        ended = subprocess.run(command, capture_output=True, text=True)
        last = (ended.stdout or ended.stderr).strip().splitlines()[-1:]
        print(f"{server.name}, skdcf answer: exit code {ended.returncode}, {last}")
        print_what_was_seen(server, n_before)

        port = free_port()
        command = [*program, "serve", str(folder / "m.skops"), "--port", str(port)]
        n_before = n_requests(server)
        with running([*command, *options], port, folder / "serve.log"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            content = json.dumps({"question": QUESTION, "context": [PASSAGE]})
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/answer", content, headers)
            reply = connection.getresponse()
            print(f"{server.name}, /v1/answer: {reply.status}, {reply.read()[:400]}")
        print_what_was_seen(server, n_before)


def n_requests(server):
    return 0 if server.behind is None else len(server.behind.requests)


def print_what_was_seen(server, n_before):
    """Say whether the passage stood in the request that wrote the answer."""
    if server.behind is not None:
        _, _, request = server.behind.requests[n_before]
        content = request["messages"][-1]["content"]
        is_seen = QUESTION in content and PASSAGE in content
        print(
            f"{server.name}: the passage stands in the request that writes: {is_seen}"
        )


if __name__ == "__main__":
    main()
