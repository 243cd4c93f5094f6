"""The same extraction against servers that other people wrote: run by hand, `make foreign`.

``--url`` names a server that runs already, and may be given several times, each with its
model: ``--url http://127.0.0.1:8080/v1 my-model``. Without it two are started, each installed
in an environment of its own, because neither gets on with all that the tests need::

    python -m venv llama && llama/bin/pip install xllamacpp gguf
    python -m venv lite && lite/bin/pip install "litellm[proxy]"
    make foreign FOREIGN_ARGS="--llama llama/bin/python --litellm lite/bin/litellm"

The first is llama.cpp's own server (xllamacpp brings it built; llama-cpp-python[server],
which has to be compiled, will do as well), with a tiny model of random weights that is made
on the spot. The second is LiteLLM's proxy in front of the scripted server of the tests.
Printed are, per server, how many answers were extracted, flagged and failed, the calls, the
requests that were made again, and the calls of a second run, which has to be 0 where all
replies could be read. A model with random weights talks nonsense: what counts is that
nothing breaks, and that nothing of it is kept by mistake.
"""

import argparse
import os
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
        servers = [(url, url, model, None) for url, model in options.url or ()]
        if not servers:
            servers = list(start_all(stack, options.llama, options.litellm))
        if not servers:
            sys.exit("no server: pass --url, or --llama and --litellm")
        for server in servers:
            measure(*server, options.n_answers, options.max_tokens)


def start_all(stack, llama, litellm):
    """Name, address, model and variable of the key of each server that is to be started."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    if llama:
        port = free_port()
        command = [llama, "-c", LLAMA, str(folder / "random.gguf"), str(port)]
        stack.enter_context(running(command, port, folder / "llama.log"))
        yield "llama.cpp", f"http://127.0.0.1:{port}/v1", "local", None
    if litellm:
        port, scripted = free_port(), stack.enter_context(ChatServer(ScriptedModel()))
        os.environ |= {KEY: "sk-of-the-proxy-alone", "OPENAI_API_KEY": "sk-behind-it"}
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
        command = [litellm, "--model", "openai/scripted", "--api_base", scripted.url]
        command += ["--port", str(port)]
        stack.enter_context(running(command, port, folder / "litellm.log"))
        yield "LiteLLM", f"http://127.0.0.1:{port}/v1", "openai/scripted", KEY


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


def measure(name, url, model, key, n, max_tokens):
    """Extract twice, and print what became of it."""
    rng, scripted = random.Random(0), ScriptedModel()
    questions = [make_question(rng) for _ in range(n)]
    answers = [(q, scripted.solve(q, rng)) for q in questions]
    with tempfile.TemporaryDirectory() as folder:
        cache = f"{folder}/replies.sqlite"
        client = ChatClient(url, cache=cache, key_variable=key, max_tokens=max_tokens)
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
                f"{usage.retries} made again, {usage.cached} cached, {seconds:.1f} s",
                flush=True,
            )
        client.close()


if __name__ == "__main__":
    main()
