"""Kill commands and a download at random moments: nothing half-written is ever trusted.

    python tests/attacks/kills.py [--kills 50] [--seed 0] [--only JOB ...]

Each job runs again and again, and writes to the same place. It is killed 50 times, by SIGINT or
SIGKILL, and what it left is read each time. The exit code is 1 if anything was wrong.
"""

import argparse
import faulthandler
import functools
import hashlib
import http.server
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import openai  # noqa: F401  or each child would be killed while it imports this

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from chat_server import ChatServer
from scripted_model import ScriptedModel

import skdcf
from skdcf.apps.cli import main as skdcf_command
from skdcf.datasets import fetch, make_reasoning_graphs, read_jsonl, write_jsonl

warnings.simplefilter("ignore")
LONGEST = 300  # seconds without a kill, after which the program says where it waits
GRAPHS, Y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
CONTENT = b"[%s1]" % (b"1," * 250_000)
NAME = "slow/file.bin"
JOBS = ("fit", "calibrate", "filter", "report", "extract", "label", "download")


class Slow(http.server.BaseHTTPRequestHandler):
    """Sends a file so slowly that a download can be killed on the way."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        for start in range(0, len(CONTENT), 1 << 15):
            try:
                self.wfile.write(CONTENT[start : start + (1 << 15)])
            except OSError:  # the other side was killed
                return
            time.sleep(0.005)

    def log_message(self, *arguments):
        pass


def child(job, path, said):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(said, "w") as sys.stderr, open(os.devnull, "w") as sys.stdout:
        job(path)


def killed(job, path, rng):
    """Run a job and kill it at a random moment; whether it was still running.

    A job that fails by itself is an error: nothing would ever be caught running.
    """
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    said = Path(f"{path}.said")
    start = multiprocessing.get_context("fork")
    process = start.Process(target=child, args=(job, path, said))
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


def command(arguments, path):
    """Run a command again and again."""
    while True:
        assert skdcf_command([*map(str, arguments), "-o", str(path)]) == 0


def download(path):
    fetch.read_published(NAME, path)


def check_model(path):
    assert len(skdcf.load(path).predict(GRAPHS)) == len(GRAPHS)


def check_lines(n, path):
    assert len(read_jsonl(path).graphs) == n


def check_page(path):
    text = path.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and "</html>" in text[-20:]


def check_download(path):
    if (path / NAME).exists():
        assert (path / NAME).read_bytes() == CONTENT


def make_jobs(folder, url):
    """Return the function that runs and the one that checks, for each job."""
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
    endpoint = ["--model", "m", "--base-url", url, "--cache", folder / "cache"]
    all_lines = functools.partial(check_lines, 150)
    commands = {
        "fit": (["--scorer", "logistic", "--alpha", 0.2], [old], check_model),
        "calibrate": ([], [model, new], check_model),
        "filter": (["--json"], [model, new], all_lines),
        "report": ([], [model, new], check_page),
        "extract": (endpoint, [answers], functools.partial(check_lines, 5)),
        "label": (["--no-page", "--annotator", "ann"], [new], all_lines),
    }
    jobs = {
        name: (functools.partial(command, [name, *files, *options]), check)
        for name, (options, files, check) in commands.items()
    }
    return jobs | {"download": (download, check_download)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=JOBS)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    os.environ["OPENAI_API_KEY"] = "sk-kills"
    slow = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=slow.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{slow.server_port}/file.bin"
    fetch.SOURCES[NAME] = (url, hashlib.sha256(CONTENT).hexdigest())
    with tempfile.TemporaryDirectory() as folder, ChatServer(ScriptedModel()) as server:
        jobs = make_jobs(Path(folder), server.url)
        for name in options.only:
            job, check = jobs[name]
            path = Path(folder, f"out-{name}")
            n_kills = 0
            while n_kills < options.kills:
                n_kills += killed(job, path, rng)
                if path.exists():
                    check(path)
            print(f"{name:12} {n_kills} kills, nothing wrong")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
