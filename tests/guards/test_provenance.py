"""Problems must be made as in calibration, and one answer to each question calibrates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.edges import chain_edges
from skdcf.evaluation import compare_filters, evaluate_filter
from skdcf.exceptions import GuaranteeWarning
from skdcf.features import GivenColumns, GraphFeatures
from skdcf.guarantees import NoFalseClaim
from skdcf.monitoring import CoverageMonitor
from skdcf.scorers import ClassifierScorer
from skdcf.uses import seen


def problem(seed=0, edges=((0, 1),), **more):
    x = np.random.default_rng(seed).normal(size=(2, 1))
    return ReasoningGraph(x, edges, **more)


def problems(n, start=0, **more):
    X = [problem(seed, **more) for seed in range(start, start + n)]
    return X, [[1, 1], [1, 0]] * (n // 2)


# --- edges, context and alternatives


@pytest.mark.parametrize("calibrated", [((0, 1),), ()])
def test_unknown_edges_are_refused(calibrated):
    X, y = problems(20, edges=calibrated)
    cf = HardCF(0).fit(X, y)
    new = [*X, problem(49, None)]
    for use in (cf.predict, cf.path_risk, cf.confidence, cf.filter):
        with pytest.raises(ValueError, match=r"edges of 1 of 21 "):
            use(new)
    with pytest.raises(ValueError, match=r"edges.*none"):
        HardCF(0).fit(new, [*y, [1, 1]])
    HardCF(0).fit([*X, ReasoningGraph([[1.0]], None)], [*y, [1]])


@pytest.mark.parametrize(
    "settings",
    [
        {"edges": "none"},
        {"edges": "none", "features": GivenColumns(["x0"])},
        {"edges": chain_edges},
    ],
)
def test_filters_that_read_no_edges_need_none(settings):
    X, y = problems(20, claims=["a", "b"])
    cf = HardCF(0, **settings).fit(X, y, groups=False)
    cf.predict([problem(99, None, claims=["a", "b"])])


def test_columns_read_edges_only_if_those_of_calibration_were_known():
    X, y = problems(20)
    bare, _ = problems(20, edges=None)
    for one, other in ((X, bare), (bare, X)):
        cf = HardCF(0, edges="none", features=GraphFeatures()).fit(one, y)
        cf.predict(one)
        cf.set_params(features=None)  # The fitted columns are used.
        with pytest.raises(ValueError, match="known edges"):
            cf.predict(other)


@pytest.mark.parametrize("n_without", [0, 2])
def test_problems_of_which_none_has_edges_are_doubted(n_without):
    X = problems(20 - n_without)[0] + problems(n_without, 20, edges=())[0]
    cf = HardCF(0).fit(X, problems(20)[1])
    share = 100 - 5 * n_without
    with pytest.warns(GuaranteeWarning, match=rf"has edges.*{share}%"):
        cf.predict(problems(20, 50, edges=())[0])
    cf.predict(problems(19, 50, edges=())[0])
    cf.predict([problem(), *problems(19, 50, edges=())[0]])


@pytest.mark.parametrize("name", ["alternatives", "context"])
def test_fields_must_be_there_as_in_calibration(name):
    with_it = problems(20, **{name: ["another text"]})
    without = problems(20)
    for one, other in ((with_it, without), (without, with_it)):
        cf = HardCF(0).fit(*one, groups=False)
        with pytest.raises(ValueError, match=name):
            cf.predict([*one[0], other[0][0]])


def test_no_field_or_setting_is_assumed():
    X, y = problems(20)
    cf = HardCF(0).fit(X, y)
    del cf._record.origin["fields"]["context"]
    with pytest.raises(KeyError, match="context"):
        cf.predict(X)
    del cf._record.settings["ties"]
    with pytest.raises(ValueError, match=r"ties .* was None and is 'exclude'"):
        cf.predict(X)


@pytest.mark.parametrize(("n_now", "warns"), [(1, True), (4, False), (9, True)])
def test_another_number_of_alternatives_gives_a_warning(n_now, warns, recwarn):
    X = [problem(i, alternatives=["another"] * (3 + i % 3)) for i in range(30)]
    cf = HardCF(0).fit(X, problems(30)[1], groups=False)
    new, _ = problems(4, 50, alternatives=["another"] * n_now + [" "])
    if warns:
        with pytest.warns(GuaranteeWarning, match=r"3 to 5 .*4 of 4 problems"):
            cf.predict(new)
    else:
        cf.predict(new)


# --- provenance

ROWS = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)), min_size=2, max_size=8
)


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@given(ROWS, ROWS)
def test_values_are_compared_key_by_key(calibrated, new):
    """Values that calibration did not have are refused, and unknown keys give one warning."""
    X, y = problems(2 * len(calibrated))
    rows = [*calibrated, *calibrated]
    X = [g.replace(provenance=row) for g, row in zip(X, rows, strict=True)]
    cf = HardCF(0, alpha=0.5).fit(X, y)
    asked = [problem(50 + i, provenance=row) for i, row in enumerate(new)]
    before, now = (
        {key: {row.get(key) for row in rows} for key in "abc"}
        for rows in (calibrated, new)
    )
    known = {key: values - {None} for key, values in before.items()}
    is_new = any(known[key] and now[key] - {None} - known[key] for key in "abc")
    is_one_sided = [
        key
        for key in "abc"
        if (None in now[key] and None not in before[key])
        or (before[key] == {None}) != (now[key] == {None})
    ]
    if is_new:
        with pytest.raises(ValueError, match=r"provenance\['[abc]'\] must be one of"):
            cf.predict(asked)
    elif is_one_sided:
        with pytest.warns(GuaranteeWarning, match="set only") as found:
            cf.predict(asked)
        assert len(found) == 1
        assert all(repr(key) in str(found[0].message) for key in is_one_sided)
    else:
        cf.predict(asked)


def test_only_the_last_calibration_problems_are_compared():
    m, n, k = (problems(20, provenance={"model": name}) for name in "mnk")
    cf = HardCF(ClassifierScorer(), calibration_size=0).fit(*k)
    for X, y in (m, n):
        cf.calibrate(X, y, groups=False).predict(X)
        with pytest.raises(ValueError, match=r"model.*'k'"):
            cf.predict(k[0])
    parts = [cf.calibration_part(*part, groups=False) for part in (m, n)]
    cf.calibrate_parts(parts).predict([*m[0], *n[0]])
    assert cf.provenance_["model"] == ["m", "n"]


def test_keys_of_labels_are_compared_only_with_labels():
    X, y = problems(20, provenance={"label_meaning": "true"})
    new, labels = problems(20, provenance={"label_meaning": "supported"})
    cf = HardCF(0, alpha=0.3).fit(X, y)
    cf.predict(new)
    for use in (
        cf.score,
        CoverageMonitor().fit(cf).update,
        lambda *data: evaluate_filter(cf, *data),
    ):
        with pytest.raises(ValueError, match="label_meaning"):
            use(new, labels)


@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_filters_that_hold_out_one_question_compare_it_with_all(protocol):
    X = [problem(i, context=["a passage"] if i % 2 else None) for i in range(60)]
    X = [g.replace(provenance={"model": "mn"[i % 3 > 0]}) for i, g in enumerate(X)]
    y = [[1, 1], [1, 0], [1, 1]] * 20
    filter = HardCF(ClassifierScorer(), random_state=0)
    run = {"protocol": protocol, "random_state": 0, "cv": 2}
    assert len(compare_filters({"cf": filter}, X, y, [0.3], **run).rows) == 1


# --- questions


def asked(n, start=0):
    names = range(start, start + n)
    X = [ReasoningGraph([[i * 0.1]], (), problem=f"question {i}") for i in names]
    return X, [[i % 3 > 0] for i in range(n)]


def test_training_questions_do_not_calibrate():
    X, y = asked(40)
    cf = HardCF(random_state=0).fit(X, y)
    again = [ReasoningGraph([[9.0]], (), problem=x.problem) for x in X]
    for new in (X, again):
        with pytest.raises(ValueError, match=r"train.*filter"):
            cf.calibrate(new, y)
    trained, calibrated = seen(cf, X)
    assert trained.sum() + calibrated.sum() == 40 and not (trained & calibrated).any()
    cf.calibrate(*asked(40, 100))
    assert seen(cf, asked(40, 100)[0])[1].sum() == cf.n_calibration_


def test_several_answers_to_a_question_give_one_warning():
    X, y = asked(20)
    cf = HardCF(0).fit(X, y)
    for use in (cf.predict, cf.filter):
        with pytest.warns(GuaranteeWarning, match="3 answers to 1 question") as found:
            use([*X[:5], X[0], X[0]])
        assert len(found) == 1
    named = [g.replace(metadata={"group": i // 2}) for i, g in enumerate(X)]
    with pytest.warns(GuaranteeWarning, match="20 answers to 10 questions"):
        cf.predict(named)


def answers(n_questions, n_answers):
    """Near-copies: answers to a question share most of their risk and their truth."""
    rng = np.random.default_rng(0)
    question = np.repeat(np.arange(n_questions), n_answers)
    x, merit = rng.normal(size=(2, len(question))) / 10
    common = rng.normal(size=n_questions)[question]
    return (common + x)[:, None], common + merit > 0, question


def test_one_answer_to_each_question_calibrates_whatever_the_order():
    X, y, groups = answers(30, 5)
    cf = HardCF(0).fit(X, y, groups=groups)
    assert cf.n_calibration_ == 29  # of rank 3, like 30
    assert HardCF(0).fit(X, y, groups=False).n_calibration_ == 149
    order = np.random.default_rng(1).permutation(len(X))
    again = HardCF(0, random_state=7).fit(X[order], y[order], groups=groups[order])
    scores = cf.nonconformity_scores_
    np.testing.assert_array_equal(again.nonconformity_scores_, scores)
    parts = [cf.calibration_part(X[r], y[r], groups[r]) for r in np.split(order, 3)]
    cf.calibrate_parts(parts)
    np.testing.assert_allclose(cf.nonconformity_scores_, scores, rtol=1e-12)


def test_one_answer_to_each_question_calibrates_in_each_group():
    X, y, question = answers(40, 4)
    part = np.tile([0, 0, 1, 1], 40).tolist()
    names = [
        {"part": p, "group": q} for p, q in zip(part, question.tolist(), strict=True)
    ]
    batch = GraphBatch.from_arrays(X, np.arange(161), metadata=names)
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="part"))
    cf.fit(batch, y.astype(int))
    assert [one.n for one in cf.calibration_.steps] == [39, 39]
    plain = HardCF(0, alpha=0.2).fit(batch, y.astype(int))
    np.testing.assert_array_equal(cf.max_path_risks_, plain.max_path_risks_)
