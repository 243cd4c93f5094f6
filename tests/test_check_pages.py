"""The check of built pages finds links that lead nowhere, and what comes from outside."""

import subprocess
import sys

import pytest

GOOD = '<h1 id="a">a</h1><a href="b.html#a">b</a><a href="https://x.org">x</a>'
FAULTS = {
    '<a href="c.html">': "no file c.html",
    '<a href="b.html#nowhere">': "no anchor b.html#nowhere",
    '<img src="https://x.org/a.png">': "loads https://x.org/a.png",
    "<style>@import url(//x.org/f.css)</style>": "loads //x.org/f.css",
    "<td><ul><li></li></ul></td>": "an empty bullet",
}


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_faults_are_found(checkout, tmp_path, fault):
    (tmp_path / "a.html").write_text(GOOD + fault, "utf-8")
    (tmp_path / "b.html").write_text(GOOD, "utf-8")
    command = [sys.executable, checkout / ".ci/check_pages.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == bool(fault)
    assert FAULTS.get(fault, "2 pages, 0 errors") in done.stdout
