"""What scikit-learn is not given is refused in words of the package.

The page "With scikit-learn" has the table of these, and prints the errors.
"""

import ast
import pickle
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_consistent_length, resample
from sklearn.utils.validation import has_fit_parameter

import skdcf
from skdcf import HardCF
from skdcf.datasets import (
    build_dataset,
    make_reasoning_graphs,
    make_word_problems,
    read_jsonl,
    write_jsonl,
)
from skdcf.exceptions import GuaranteeWarning
from skdcf.guarantees import NoFalseClaim

GRAPHS, LABELS = make_reasoning_graphs(60, random_state=0, return_X_y=True)
CF = HardCF("frequency-score", alpha=0.3).fit(GRAPHS, LABELS)
MASKS = CF.predict(GRAPHS)
ONES = np.ones(60)


def scored(scoring):
    return cross_val_score(
        CF, GRAPHS, LABELS, cv=2, scoring=scoring, error_score="raise"
    )


NO_TABLE = "a GraphBatch cannot be converted to a numeric array"
ROWS = {
    "permutation_importance": (
        lambda: permutation_importance(CF, GRAPHS, LABELS),
        NO_TABLE,
    ),
    "sample_weight": (
        lambda: CF.fit(GRAPHS, LABELS, sample_weight=ONES),
        "sample_weight",
    ),
    "sample_weight of a search": (
        lambda: GridSearchCV(CF, {"scorer": [0]}, cv=2, error_score="raise").fit(
            GRAPHS, LABELS, sample_weight=ONES
        ),
        "sample_weight",
    ),
    "StandardScaler": (
        lambda: make_pipeline(StandardScaler(), CF).fit(GRAPHS, LABELS),
        NO_TABLE,
    ),
    "BaggingClassifier": (
        lambda: BaggingClassifier(CF).fit(GRAPHS, LABELS),
        NO_TABLE,
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_is_refused_in_words_of_the_package(row):
    call, words = ROWS[row]
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_no_weights_are_promised_to_scikit_learn():
    assert not has_fit_parameter(CF, "sample_weight")


def equal(one, other):
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def test_labels_are_the_list_that_they_were():
    plain = list(LABELS)
    assert isinstance(LABELS, list)
    assert equal(LABELS + LABELS[:2], plain + plain[:2])
    assert equal(LABELS[5:9], plain[5:9])
    assert LABELS[-1] is plain[-1]
    assert LABELS[np.int64(3)] is plain[3]
    with pytest.raises(IndexError):
        LABELS[60]
    np.testing.assert_array_equal(np.concatenate(LABELS), np.concatenate(plain))
    objects = np.array(LABELS, dtype=object)
    assert objects.shape == (60,)
    assert equal(objects, plain)
    column = np.empty(60, dtype=object)
    column[:] = LABELS
    assert equal(column, plain)
    check_consistent_length(GRAPHS, LABELS)
    for again in (
        pickle.loads(pickle.dumps(LABELS)),
        LABELS[np.arange(60)],
        LABELS[np.full(60, True)],
        LABELS[:],
    ):
        assert type(again) is type(LABELS)
        assert equal(again, plain)
    assert joblib.hash(LABELS) == joblib.hash(pickle.loads(pickle.dumps(LABELS)))


def test_labels_of_one_length_are_the_table_that_a_list_is():
    rows = LABELS[[0, 1]]
    rows[:] = [np.array([1, 0]), np.array([0, 1])]
    np.testing.assert_array_equal(np.asarray(rows), [[1, 0], [0, 1]])
    assert np.array(rows, dtype=object).shape == (2, 2)


def test_a_column_of_pandas_takes_them_as_a_list():
    assert equal(pd.Series(LABELS), LABELS)
    assert equal(pd.Series(list(LABELS)), LABELS)
    assert equal(pd.Series(MASKS), MASKS)


def test_scikit_learn_divides_labels_as_it_divides_lists():
    plain = list(LABELS)
    for one, other in zip(
        train_test_split(GRAPHS, LABELS, random_state=0)[2:],
        train_test_split(GRAPHS, plain, random_state=0)[2:],
        strict=True,
    ):
        assert type(one) is type(LABELS)
        assert equal(one, other)
    assert equal(
        resample(LABELS, random_state=0, n_samples=9),
        resample(plain, random_state=0, n_samples=9),
    )
    for y in (LABELS, plain):
        np.testing.assert_array_equal(
            cross_val_score(CF, GRAPHS, y, cv=KFold(2)),
            cross_val_score(CF, list(GRAPHS), plain, cv=2),
        )


def test_what_a_filter_says_is_the_array_that_it_was():
    plain = np.empty(60, dtype=object)
    plain[:] = list(MASKS)
    assert isinstance(MASKS, np.ndarray)
    assert MASKS.dtype == object
    assert MASKS.shape == (60,)
    assert type(MASKS[0]) is np.ndarray
    np.testing.assert_array_equal(np.concatenate(MASKS), np.concatenate(plain))
    assert equal(MASKS[[3, 1]], plain[[3, 1]])
    assert equal(np.concatenate([MASKS, MASKS]), np.concatenate([plain, plain]))
    assert equal(pickle.loads(pickle.dumps(MASKS)), plain)
    assert type(np.asarray(MASKS)) is np.ndarray
    said = cross_val_predict(CF, GRAPHS, LABELS, cv=2)
    assert [len(row) for row in said] == [len(row) for row in LABELS]


def test_labels_of_all_sources_are_such_lists(tmp_path):
    write_jsonl(tmp_path / "log.jsonl", GRAPHS, labels=LABELS)
    records = [{"claims": ["a", "b"], "edges": [], "labels": [1, 0]}]
    kinds = {
        type(read_jsonl(tmp_path / "log.jsonl").labels),
        type(build_dataset(enumerate(records), dict).labels),
        type(make_word_problems(2).labels),
        type(make_reasoning_graphs(2).labels),
    }
    assert kinds == {type(LABELS)}


def private_imports(path):
    """Private names of scikit-learn that a module imports, as ``module.name``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "sklearn"
        ):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names if a.name.startswith("sklearn")]
        else:
            continue
        yield from (name for name in names if "._" in name)


def test_one_module_imports_private_names_of_scikit_learn():
    package = Path(skdcf.__file__).parent
    found = {p.name: [*private_imports(p)] for p in package.rglob("*.py")}
    assert {name for name, imports in found.items() if imports} == {"_sklearn.py"}
    assert len(found["_sklearn.py"]) == 9


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("alpha", [0.3, 0.4]),
        ("ties", ["include", "jitter"]),
        ("guarantee__max_false", [0, 1]),
        ("edges", ["none", "given"]),
    ],
)
def test_a_search_over_the_guarantee_is_warned_of(name, values):
    cf = HardCF("frequency-score", alpha=0.3)
    if name.startswith("guarantee"):
        cf.set_params(guarantee=NoFalseClaim())
    search = GridSearchCV(
        make_pipeline("passthrough", cf), {f"hardcf__{name}": values}, cv=2
    )
    with pytest.warns(GuaranteeWarning, match="score compares only filters"):
        search.fit(GRAPHS, LABELS)
    GridSearchCV(CF, {"scorer": ["frequency-score"]}, cv=2).fit(GRAPHS, LABELS)
