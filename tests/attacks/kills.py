"""Kill whatever writes, at random moments: nothing half-written is ever trusted.

    python tests/attacks/kills.py [--kills 50] [--seed 0] [--only commands | COMMAND ...]

The commands fit, calibrate, filter, report, extract and label are killed while they run again
and again, as are the functions that write. Each job is killed 50 times (half of them by SIGINT,
half by SIGKILL) while it writes, and what it left is looked at each time. Then two downloads run
at once, and, where a small disk can be mounted (root on Linux), everything is written to a full
and to a read-only one. Prints a table; the exit code is 1 if anything was wrong.
"""

import argparse
import contextlib
import faulthandler
import functools
import hashlib
import http.server
import io
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import skdcf
from skdcf.apps.cli import main as skdcf_command
from skdcf.datasets import fetch, make_reasoning_graphs, read_jsonl, write_jsonl
from skdcf.persistence import load_threshold, save_threshold

warnings.simplefilter("ignore")
_LONGEST = 300  # seconds without a kill, after which the program says where it waits
GRAPHS, Y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
FILTERS = [skdcf.HardCF(i, random_state=0).fit(GRAPHS, Y) for i in range(2)]
START = multiprocessing.get_context("fork")
CONTENT = bytes(range(256)) * 2000
NAME = "slow/file.bin"
COMMANDS = ("fit", "calibrate", "filter", "report", "extract", "label")


def save_again_and_again(path):
    for cf in itertools.cycle(FILTERS):
        skdcf.save(cf, path)
        save_threshold(cf, f"{path}.json")


def write_again_and_again(path):
    for n in itertools.cycle((100, 300)):
        write_jsonl(path, GRAPHS[:n], Y[:n])


def download(path):
    fetch.published_file(NAME, path)


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
    with open(said, "w") as sys.stderr:
        job(path)


def killed(job, path, rng, longest):
    """Run a job and kill it at a random moment; whether it was still running.

    A job that fails by itself is an error: nothing would ever be caught running.
    """
    faulthandler.dump_traceback_later(_LONGEST, exit=True)
    said = f"{path}.said"
    process = START.Process(target=child, args=(job, path, said))
    process.start()
    process.join(rng.uniform(0, longest))
    running = process.is_alive()
    if running:
        os.kill(process.pid, rng.choice((signal.SIGINT, signal.SIGKILL)))
    process.join(10)
    process.kill()  # if the interrupt came before Python could notice it
    process.join()
    if not running and process.exitcode != 0:
        raise AssertionError(Path(said).read_text()[-3000:])
    return running


def same(one, other):
    return all(map(np.array_equal, one, other))


def check_saved(path):
    if os.path.exists(path):
        back = skdcf.load(path)
        assert same(back.predict(GRAPHS), FILTERS[back.scorer].predict(GRAPHS))
    if os.path.exists(f"{path}.json"):
        found = load_threshold(f"{path}.json").threshold
        assert found in [cf.threshold_ for cf in FILTERS]


def check_written(path):
    if os.path.exists(path):
        data = read_jsonl(path)
        assert len(data.graphs) in (100, 300)
        assert list(data.graphs) == list(GRAPHS[: len(data.graphs)])


def check_download(path):
    file = Path(path) / NAME
    if file.exists():
        assert file.read_bytes() == CONTENT


def run_kills(name, job, check, folder, longest, kills, rng):
    """Kill a job until it was caught running so many times."""
    caught = 0
    os.makedirs(folder, exist_ok=True)
    while caught < kills:
        path = os.path.join(folder, name)
        caught += killed(job, path, rng, longest)
        check(path)
    left = sum(p.name.endswith(".part") for p in Path(folder).rglob("*"))
    print(f"{name:12} {caught} kills, nothing wrong ({left} hidden parts left behind)")


def command(path, *arguments):
    """Run a command again and again, writing to the same place."""
    while True:
        with contextlib.redirect_stdout(io.StringIO()):
            assert skdcf_command([*map(str, arguments), "-o", str(path)]) == 0


def check_model(path):
    if os.path.exists(path):
        assert len(skdcf.load(path).predict(GRAPHS)) == len(GRAPHS)


def check_lines(n, path):
    if os.path.exists(path):
        assert len(read_jsonl(path).graphs) == n


def check_page(path):
    if os.path.exists(path):
        text = Path(path).read_text("utf-8")
        assert text.startswith("<!DOCTYPE html>") and "</html>" in text[-20:]


def run_commands(folder, names, kills, rng):
    """Kill commands, and look at what each one left; then let it end once."""
    import openai  # noqa: F401  or each child would be killed while it imports this
    from chat_server import ChatServer
    from scripted_model import ScriptedModel

    place = Path(folder)
    graphs = [
        graph.replace(claims=[f"claim {v} of {i}" for v in range(graph.n_claims)])
        for i, graph in enumerate(GRAPHS)
    ]
    old, new, model = place / "old.jsonl", place / "new.jsonl", place / "model.skops"
    write_jsonl(old, graphs[:150], Y[:150])
    write_jsonl(new, graphs[150:], Y[150:])
    skdcf.save(skdcf.HardCF(0, alpha=0.2).fit(graphs[:150], Y[:150]), model)
    answers = place / "answers.jsonl"
    answers.write_text('{"problem": "What is 1 + 2?", "answer": "1 + 2 = 3."}\n' * 5)
    with ChatServer(ScriptedModel()) as server:
        os.environ["OPENAI_API_KEY"] = "sk-kills"
        endpoint = ["--model", "m", "--base-url", server.url, "--cache"]
        endpoint += [place / "cache"]
        jobs = {
            "fit": (["fit", old, "--scorer", "logistic", "--alpha", 0.2], check_model),
            "calibrate": (["calibrate", model, new], check_model),
            "filter": (
                ["filter", model, new, "--json"],
                functools.partial(check_lines, 150),
            ),
            "report": (["report", model, new], check_page),
            "extract": (
                ["extract", answers, *endpoint],
                functools.partial(check_lines, 5),
            ),
            "label": (
                ["label", new, "--no-page", "--annotator", "ann"],
                functools.partial(check_lines, 150),
            ),
        }
        for name in names:
            arguments, check = jobs[name]
            path = place / f"out-{name}"
            job = functools.partial(run_command_at, arguments)
            caught = 0
            while caught < kills:
                caught += killed(job, path, rng, 1.0)
                check(path)
            with contextlib.redirect_stderr(io.StringIO()):
                assert skdcf_command([*map(str, arguments), "-o", str(path)]) == 0
            check(path)
            print(f"{name:12} {caught} kills, nothing wrong")


def run_command_at(arguments, path):
    command(path, *arguments)


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/file.bin"
    fetch.SOURCES[NAME] = (url, hashlib.sha256(CONTENT).hexdigest())


def two_at_once(folder):
    both = [
        START.Process(target=child, args=(download, folder, os.devnull))
        for _ in range(2)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    check_download(folder)
    print("two downloads of one file at once: both succeed")


def on_bad_disks(folder):
    """A full disk and one that cannot be written: an OSError, and the old file stays."""
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        print("no disk could be mounted: full and read-only ones were not tried")
        return
    try:
        jobs = {
            "save": (lambda path: skdcf.save(FILTERS[0], path), check_saved),
            "write": (lambda path: write_jsonl(path, GRAPHS, Y), check_written),
            "download": (download, check_download),
        }
        small = os.path.join(disk, "save")
        skdcf.save(FILTERS[1], small)
        for state in ("full", "read-only"):
            if state == "read-only":
                subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            for name, (job, check) in jobs.items():
                refuses(name, job, os.path.join(disk, name), state)
                check(os.path.join(disk, name))
        assert skdcf.load(small).scorer == 1
    finally:
        subprocess.run(["umount", disk], check=True)


def fill(disk):
    """Until not even a few bytes have a place."""
    with (
        contextlib.suppress(OSError),
        open(os.path.join(disk, "filling"), "wb") as file,
    ):
        while True:
            file.write(b"x" * 512)
            file.flush()


def refuses(name, job, path, state):
    try:
        if state == "full":
            fill(os.path.dirname(path))
        job(path)
    except OSError as error:
        print(f"{state:9} disk, {name:8}: {type(error).__name__}: {str(error)[:60]}")
    else:
        raise AssertionError(f"{name} on a {state} disk did not say so")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    known = ("commands", "functions", *COMMANDS)
    parser.add_argument("--only", nargs="+", choices=known, default=known[:2])
    options = parser.parse_args()
    rng = random.Random(options.seed)
    whole = COMMANDS if "commands" in options.only else options.only
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name in COMMANDS if name in whole]
        run_commands(folder, names, options.kills, rng)
    if "functions" not in options.only:
        return
    serve()
    with tempfile.TemporaryDirectory() as folder:
        run_kills(
            "save", save_again_and_again, check_saved, folder, 0.3, options.kills, rng
        )
        run_kills(
            "write",
            write_again_and_again,
            check_written,
            folder,
            0.3,
            options.kills,
            rng,
        )
        home = os.path.join(folder, "home")
        run_kills("download", download, check_download, home, 0.15, options.kills, rng)
        two_at_once(os.path.join(folder, "two"))
        on_bad_disks(folder)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
