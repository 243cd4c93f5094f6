"""The ways in which servers answer, and the table that ``tests/ways_to_answer.py`` printed."""

import pytest
import ways_to_answer

#: Numbers of requests that depend on which of several calls came first.
TIMED = ("429", "overloaded", "log odds", "one slot", "schemas", "no system")
QUICK = ("as asked", "LaTeX, all single", "no verdict: two verdicts")


@pytest.mark.long
@pytest.mark.parametrize("names", [QUICK, None])
def test_the_table_is_as_printed(model, checkout, names):
    text = (checkout / "tests/ways_to_answer.tsv").read_text(encoding="utf-8")
    printed = {}
    for line in text.splitlines():
        name, _, *counts = line.split("\t")
        printed[name] = [int(count) for count in counts]
    rows = ways_to_answer.table(names)
    assert rows.keys() == (printed.keys() if names is None else {*names})
    for name, (n_requests, *kept) in rows.items():
        expected, *expected_kept = printed[name]
        assert kept == expected_kept, name
        # A second of the simulated clock takes 10 ms, so a busy machine changes the pauses.
        assert abs(n_requests - expected) <= 24 * name.startswith(TIMED), name


def test_the_printed_table_spoils_nothing(checkout):
    text = (checkout / "tests/ways_to_answer.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    assert all(spoiled == "0" for *_, spoiled in rows)
    assert sum(kept == "15" for *_, kept, _ in rows) >= 38
    refused = [kept for name, *_, kept, _ in rows if name.startswith("no verdict")]
    assert refused == ["0"] * 4
