"""Kill commands at random moments: nothing half-written is ever trusted.

    python tests/attacks/kills.py [--kills 50] [--seed 0]

Each command runs again and again, and writes to the same place. It is killed 50 times, by SIGINT or
SIGKILL, and what it left is read each time. The exit code is 1 if anything was wrong.
"""

import argparse
import faulthandler
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import openai  # noqa: F401  or each child would be killed while it imports this

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from chat_server import ChatServer
from scripted_model import ScriptedModel

import skdcf
from skdcf.apps.cli import main as skdcf_command
from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl

warnings.simplefilter("ignore")
LONGEST = 300  # seconds without a kill, after which the program says where it waits
GRAPHS, Y = make_reasoning_graphs(300, random_state=0, return_X_y=True)


def child(arguments, said):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(said, "w") as sys.stderr, open(os.devnull, "w") as sys.stdout:
        command(arguments)


def killed(arguments, path, rng):
    """Run a command and kill it at a random moment; whether it was still running.

    A command that fails by itself is an error: nothing would ever be caught running.
    """
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    said = Path(f"{path}.said")
    start = multiprocessing.get_context("fork")
    process = start.Process(target=child, args=(arguments, said))
    process.start()
    process.join(rng.uniform(0, 1))
    running = process.is_alive()
    if running:
        os.kill(process.pid, rng.choice((signal.SIGINT, signal.SIGKILL)))
    process.join(10)
    process.kill()  # if the interrupt came before Python could notice it
    process.join()
    if not running and process.exitcode != 0:
        raise AssertionError(said.read_text()[-3000:])
    return running


def command(arguments):
    """Run a command again and again."""
    while True:
        assert skdcf_command(arguments) == 0


def check(path):
    """Read what a command left."""
    if path.suffix == ".skops":
        skdcf.load(path).predict(GRAPHS)
    elif path.suffix == ".jsonl":
        assert len(read_jsonl(path).graphs) in (5, 150)
    else:
        assert path.read_text("utf-8").rstrip().endswith("</html>")


def make_commands(folder, url):
    """Return the arguments of each command, and the suffix of the file that it writes."""
    graphs = [
        graph.replace(claims=[f"claim {v} of {i}" for v in range(graph.n_claims)])
        for i, graph in enumerate(GRAPHS)
    ]
    old, new, model = folder / "old.jsonl", folder / "new.jsonl", folder / "model.skops"
    write_jsonl(old, graphs[:150], Y[:150])
    write_jsonl(new, graphs[150:], Y[150:])
    skdcf.save(skdcf.HardCF(0, alpha=0.2).fit(graphs[:150], Y[:150]), model)
    answers = folder / "answers.jsonl"
    answers.write_text('{"problem": "What is 1 + 2?", "answer": "1 + 2 = 3."}\n' * 5)
    endpoint = f"--model m --base-url {url} --cache {folder / 'cache'}"
    return {
        "fit": (f"fit {old} --scorer logistic --alpha 0.2", ".skops"),
        "calibrate": (f"calibrate {model} {new}", ".skops"),
        "filter": (f"filter {model} {new} --json", ".jsonl"),
        "report": (f"report {model} {new}", ".html"),
        "extract": (f"extract {answers} {endpoint}", ".jsonl"),
        "label": (f"label {new} --no-page --annotator ann", ".jsonl"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    os.environ["OPENAI_API_KEY"] = "sk-kills"
    with tempfile.TemporaryDirectory() as folder, ChatServer(ScriptedModel()) as server:
        for name, (words, suffix) in make_commands(Path(folder), server.url).items():
            path = Path(folder, f"out-{name}{suffix}")
            n_kills = 0
            while n_kills < options.kills:
                n_kills += killed([*words.split(), "-o", str(path)], path, rng)
                if path.exists():
                    check(path)
            print(f"{name:12} {n_kills} kills, nothing wrong")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
