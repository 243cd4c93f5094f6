"""Files that are there as a whole or not at all, seen through what writes them."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import skdcf
from skdcf import save_threshold
from skdcf.apps.cli import main
from skdcf.apps.reporting import write_report
from skdcf.datasets import make_reasoning_graphs, write_jsonl

GRAPHS, Y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and kills of POSIX")


@pytest.fixture(scope="module")
def fitted():
    return skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS, Y)


def filter_text(cf, path):
    problems = f"{path}.problems"
    model = f"{path}.model"
    write_jsonl(problems, GRAPHS)
    skdcf.save(cf, model)
    assert main(["filter", model, problems, "-o", str(path), "--json"]) == 0


WRITERS = {
    "model": skdcf.save,
    "threshold": save_threshold,
    "lines": lambda cf, path: write_jsonl(path, GRAPHS, Y),
    "report": lambda cf, path: write_report(path, cf, GRAPHS, Y),
    "command": filter_text,
}


@POSIX
@pytest.mark.parametrize("name", WRITERS)
def test_who_may_read_a_file_stays_as_it_was(fitted, tmp_path, name):
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o640)
    WRITERS[name](fitted, path)
    assert path.read_bytes() != b"before"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_that_may_not_be_written_is_refused(tmp_path):
    """Root may write it, and it stays what it was; for anybody else it is protected."""
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        write_jsonl(path, GRAPHS, Y)
        assert stat.S_IMODE(path.stat().st_mode) == 0o444
    else:
        with pytest.raises(PermissionError) as error:
            write_jsonl(path, GRAPHS, Y)
        assert Path(error.value.filename).name == "file"
        assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]  # no half file next to it
    path.chmod(0o644)  # Windows removes no file that is protected


@POSIX
def test_a_new_file_follows_the_umask(fitted, tmp_path):
    before = os.umask(0o027)
    try:
        skdcf.save(fitted, tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.long
@POSIX
def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    program = (
        "import sys; from skdcf._files import replaced\n"
        "for i in range(200):\n"
        "    with replaced(sys.argv[1]) as file: file.write(sys.argv[2] * 1000)\n"
    )
    path = tmp_path / "a"
    writers = [
        subprocess.Popen([sys.executable, "-c", program, path, letter])
        for letter in "abc"
    ]
    end = time.monotonic() + 240
    while any(w.poll() is None for w in writers) and time.monotonic() < end:
        if path.exists():
            assert len(set(path.read_text())) == 1
    assert [w.wait(120) for w in writers] == [0, 0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.long
@POSIX
def test_what_is_no_file_is_written_to_as_it_is(tmp_path):
    """As root, /dev/null was replaced by a file."""
    os.mkfifo(tmp_path / "pipe")
    command = "import sys; from skdcf.datasets import *; " + (
        f"write_jsonl({str(tmp_path / 'pipe')!r}, "
        "make_reasoning_graphs(5, random_state=0).graphs)"
    )
    with subprocess.Popen([sys.executable, "-c", command]) as writer:
        lines = (tmp_path / "pipe").read_text().splitlines()
        assert writer.wait(60) == 0
    assert len([json.loads(line) for line in lines]) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]
