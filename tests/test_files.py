"""Files that are there as a whole or not at all, seen through what writes them."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import skdcf
from skdcf import save_threshold
from skdcf.datasets import make_reasoning_graphs, write_jsonl

GRAPHS, Y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and kills of POSIX")


@pytest.fixture(scope="module")
def fitted():
    return skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS, Y)


WRITERS = {
    "model": skdcf.save,
    "threshold": save_threshold,
    "lines": lambda cf, path: write_jsonl(path, GRAPHS, Y),
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
