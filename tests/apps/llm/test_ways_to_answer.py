"""The ways in which servers answer, and the table that ``tests/ways_to_answer.py`` printed."""

import pytest
import ways_to_answer

#: Up to eight calls are refused before the first one teaches the others.
TIMED = ("log odds", "one slot", "schemas", "no system")


@pytest.mark.long
def test_the_table_is_as_printed(model, checkout):
    text = (checkout / "tests/ways_to_answer.tsv").read_text(encoding="utf-8")
    printed = {}
    for line in text.splitlines():
        name, _, *counts = line.split("\t")
        printed[name] = [int(count) for count in counts]
    rows = ways_to_answer.table()
    assert rows.keys() == printed.keys()
    for name, (n_requests, *kept) in rows.items():
        expected, *expected_kept = printed[name]
        assert kept == expected_kept, name
        assert abs(n_requests - expected) <= 8 * name.startswith(TIMED), name


def test_the_printed_table_spoils_nothing(checkout):
    text = (checkout / "tests/ways_to_answer.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    assert all(spoiled == "0" for *_, spoiled in rows)
    assert sum(kept == "15" for *_, kept, _ in rows) >= 38
    refused = [kept for name, *_, kept, _ in rows if name.startswith("no verdict")]
    assert refused == ["0"] * 4
