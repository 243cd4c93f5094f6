"""Published data that only benchmarks and tests read: counts of the published tables."""

import pytest
from counts import counts_of

sets = pytest.importorskip("benchmarks.data")

COUNTS = [
    # Problems, claims, edges, false claims, unknown claims, questions
    ("fetch_perl", {"label": "any"}, (294, 1709, 1607, 698, 0, 206)),
    ("fetch_perl", {}, (294, 1709, 1607, 280, 0, 206)),
    ("fetch_conformal_factuality", {}, (50, 408, 0, 121, 0, 50)),
    ("fetch_conformal_factuality", {"subset": "nq"}, (50, 294, 0, 18, 0, 50)),
    ("fetch_conformal_factuality", {"subset": "math"}, (50, 293, 0, 31, 0, 50)),
    ("fetch_qags", {"subset": "cnndm"}, (235, 714, 0, 183, 0, 235)),
    ("fetch_qags", {"subset": "xsum"}, (239, 239, 0, 123, 0, 239)),
    (
        "fetch_refchecker",
        {"setting": ["accurate_context", "noisy_context"]},
        (1400, 7414, 0, 1285, 0, 200),
    ),
]


@pytest.mark.parametrize(("name", "options", "expected"), COUNTS)
def test_counts(data_home, name, options, expected):
    if not (data_home / name.removeprefix("fetch_")).is_dir():
        pytest.skip(f"no real data: SKDCF_DATA has no {name.removeprefix('fetch_')}/")
    data = getattr(sets, name)(**options, data_home=data_home)
    assert counts_of(data) == expected
    assert "Source: https://" in data.DESCR
