"""What only an extra installs: where it is missing, a sentence says how to get it."""

import sys
from configparser import ConfigParser

import pytest

from skdcf import HardCF, XGBoostCF, plots
from skdcf.adapters import to_frame
from skdcf.datasets import make_reasoning_graphs
from skdcf.metrics import evaluate_filter

GRAPHS, LABELS = make_reasoning_graphs(40, random_state=0, return_X_y=True)


def draw(cf):
    plots.ReportDisplay.from_estimator(cf, GRAPHS, LABELS)


CALLS = [
    ("matplotlib", "plot", draw),
    (
        "matplotlib",
        "plot",
        lambda cf: plots.ReasoningGraphDisplay.from_graph(GRAPHS[0]),
    ),
    ("xgboost", "xgboost", lambda cf: XGBoostCF(alpha=0.2).fit(GRAPHS, LABELS)),
    ("pandas", "frame", lambda cf: to_frame(GRAPHS, LABELS)),
    (
        "pandas",
        "frame",
        lambda cf: evaluate_filter(cf, GRAPHS, LABELS, [0.2]).to_frame(),
    ),
    ("narwhals", "frame", lambda cf: to_frame(GRAPHS, LABELS)),
]


@pytest.mark.parametrize(("package", "extra", "call"), CALLS)
def test_a_missing_extra_ends_in_one_sentence(monkeypatch, package, extra, call):
    cf = HardCF("frequency-score", alpha=0.2).fit(GRAPHS, LABELS)
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        call(cf)
    sentence = f'{package} is not installed: pip install "skdcf[{extra}]"'
    assert str(caught.value) == sentence and caught.value.name == package


def test_each_extra_that_a_sentence_names_exists(checkout):
    setup = ConfigParser()
    setup.read(checkout / "setup.cfg")
    assert {extra for _, extra, _ in CALLS} <= set(setup["options.extras_require"])
