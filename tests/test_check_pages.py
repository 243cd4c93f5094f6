"""The check of built pages finds links that lead nowhere, and what comes from outside."""

import subprocess
import sys

import pytest

GOOD = '<h1 id="here">a</h1><a href="b.html#there">b</a><a href="https://x.org">x</a>'
OTHER = '<h1 id="there">b</h1><a href="#there">up</a><a href="a.html">a</a>'


@pytest.fixture
def check(checkout, tmp_path):
    def run(first):
        (tmp_path / "a.html").write_text(first, "utf-8")
        (tmp_path / "b.html").write_text(OTHER, "utf-8")
        command = [sys.executable, str(checkout / ".ci/check_pages.py"), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


def test_good_pages_pass(check):
    assert check(GOOD) == (0, "2 pages, 0 errors\n")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ('<a href="c.html">', "a.html: no file c.html"),
        ('<a href="b.html#nowhere">', "a.html: no anchor b.html#nowhere"),
        ('<a href="#nowhere">', "a.html: no anchor #nowhere"),
        ('<img src="gone.png">', "a.html: no file gone.png"),
        ('<img src="https://x.org/a.png">', "a.html: loads https://x.org/a.png"),
        ('<script src="//x.org/a.js"></script>', "a.html: loads //x.org/a.js"),
        ("<td><ul><li></li></ul></td>", "a.html: an empty bullet"),
        (
            '<link rel="stylesheet" href="http://x.org/a.css">',
            "loads http://x.org/a.css",
        ),
        (
            "<style>@import url(https://x.org/f.css)</style>",
            "loads https://x.org/f.css",
        ),
    ],
)
def test_faults_are_found(check, part, said):
    code, shown = check(GOOD + part)
    assert code == 1
    assert said in shown


def test_style_sheets_are_read(check, tmp_path):
    (tmp_path / "s.css").write_text("a{src:url('https://x.org/font.woff2')}", "utf-8")
    code, shown = check(GOOD)
    assert code == 1
    assert "s.css: loads https://x.org/font.woff2" in shown


def test_an_empty_folder_is_no_success(checkout, tmp_path):
    command = [sys.executable, str(checkout / ".ci/check_pages.py"), str(tmp_path)]
    assert subprocess.run(command, capture_output=True).returncode == 2
