"""The copy of skops that does not import all of scikit-learn."""

import subprocess
import sys

import pytest

pytest.importorskip("skops")


def test_estimators_are_those_that_skops_trusts():
    from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES

    from skdcf.persistence._skops import is_estimator

    # Skops has imported all modules, so all classes are there.
    names = {
        f"{thing.__module__}.{thing.__qualname__}"
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "sklearn"
        for thing in list(vars(module).values())
        if isinstance(thing, type)
    }
    assert len(names) > 500
    found = set(filter(is_estimator, names))
    assert found == set(SKLEARN_ESTIMATOR_TYPE_NAMES)


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "sklearn.base.BaseEstimator",
        "sklearn.tests.test_base.MyEstimator",
        "sklearn.nothing.LogisticRegression",
        "sklearn.linear_model.LogisticRegression",  # its module is a private one
        "sklearn.utils._mocking.CheckingClassifier",
        "sklearn.tree._tree.Tree",
        "LogisticRegression",
    ],
)
def test_other_names_are_no_estimators(name):
    from skdcf.persistence._skops import is_estimator

    assert not is_estimator(name)


PROGRAM = """
import sys
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
import skdcf
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ClassifierScorer

graphs, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
scorer = ClassifierScorer(LinearDiscriminantAnalysis())
cf = skdcf.HardCF(scorer).fit(graphs, y)
back = skdcf.load(skdcf.save(cf, sys.argv[1]))
assert all((a == b).all() for a, b in zip(cf.predict(graphs), back.predict(graphs)))
assert "sklearn.neural_network" not in sys.modules
assert "skops.io" not in sys.modules

import skops.io
from sklearn.linear_model import LogisticRegression
assert not skops.io.get_untrusted_types(data=skops.io.dumps(LogisticRegression()))
assert skdcf.load(sys.argv[1]).alpha == cf.alpha
"""


def test_a_file_is_loaded_without_all_of_scikit_learn(tmp_path):
    """The skops that a user imports trusts all estimators, as ever."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / "cf.skops"],
        check=True,
    )
