"""The ways to answer, and the table that ``python tests/ways_to_answer.py`` printed."""

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

import ways_to_answer

#: Counts of calls that depend on which of several calls came first.
TIMED = ("429", "overloaded", "log odds refused", "one slot", "schemas", "no system")
QUICK = ("as asked", "LaTeX, all single", "verdict: a last sentence")
QUICK += ("no verdict: two verdicts", "server-sent events")


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """What the script sets for its clock is set back."""
    module = ways_to_answer.pace_module
    monkeypatch.setattr(module, "back_off", module.back_off)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ways-123456")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def printed(checkout):
    """Calls, claims kept whole and claims kept spoiled, of each way."""
    text = (checkout / "tests/ways_to_answer.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    return {name: tuple(map(int, counts)) for name, _, *counts in rows}


def check(rows, expected):
    for name, (n_calls, n_kept, n_spoiled) in rows.items():
        calls, kept, spoiled = expected[name]
        assert (n_kept, n_spoiled) == (kept, spoiled), name
        # A second of the simulated clock takes 10 ms, so a busy machine changes the pauses.
        slack = 24 if name.startswith(TIMED) else 0
        assert abs(n_calls - calls) <= slack, name


@pytest.mark.long
def test_ways_that_are_quick(checkout):
    check(ways_to_answer.table(QUICK), printed(checkout))


@pytest.mark.long
def test_all_ways(checkout):
    expected = printed(checkout)
    rows = ways_to_answer.table()
    assert rows.keys() == expected.keys() and len(rows) >= 40
    check(rows, expected)
    refused = [name for name in rows if name.startswith("no verdict")]
    for name, (_, n_kept, n_spoiled) in rows.items():
        assert (n_kept, n_spoiled) == (0 if name in refused else 15, 0)
