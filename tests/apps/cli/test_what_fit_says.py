"""A line that `fit` prints says something."""

import pytest

from skdcf.apps.cli import _commands


@pytest.mark.parametrize(
    ("curve", "n_lines"), [([2.33, 2.331, 2.334, 2.334], 0), ([2.33, 2.4, 2.5, 2.6], 1)]
)
def test_checks_are_mentioned_only_if_they_add_something(monkeypatch, curve, n_lines):
    answers = [None], [[1]]
    monkeypatch.setattr(_commands, "_calibrating", lambda filter, data: answers)
    monkeypatch.setattr(_commands.labelling, "review_curve", lambda *_: curve)
    assert len(list(_commands._checks_to_spend(None, None))) == n_lines
