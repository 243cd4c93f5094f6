"""Each of these changes of the code passed all tests once: a test for each."""

import re
import warnings

import numpy as np
import pytest
from levels import thresholds
from scipy.stats import beta, binom
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from skdcf import GraphBatch, HardCF, IndependentFactuality, ReasoningGraph
from skdcf.estimators import check, fit_levels, seen
from skdcf.exceptions import CalibrationWarning, GuaranteeWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.inspection import explain
from skdcf.ops.conformal import claim_level, whole_count
from skdcf.ops.hard import last_safe_thresholds
from skdcf.scorers import Scorer

NO_EDGES = np.empty((0, 2), dtype=int)


def one_claim_each(columns, **more):
    columns = np.asarray(columns, dtype=float).reshape(len(columns), -1)
    return GraphBatch.from_arrays(
        columns, np.arange(len(columns) + 1), NO_EDGES, **more
    )


def test_left_over_numbers_are_rows_of_the_caller():
    """Answers that nobody judged come first, and are left out before others are chosen."""
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(90), metadata=[{"sampling": "random"}] * 90)
    y = np.where(np.arange(90) < 40, -1, rng.random(90) < 0.7).astype(int)
    y = y.reshape(-1, 1).tolist()
    cf = HardCF(0, alpha=0.2).fit(X, y)
    assert cf.n_calibration_ == 49 and len(cf.unused_indices_) == 1
    assert cf.unused_indices_.min() >= 40
    chosen = np.setdiff1d(np.arange(40, 90), cf.unused_indices_)
    again = HardCF(0, alpha=0.2).fit(X[chosen], [y[i] for i in chosen])
    assert again.threshold_ == cf.threshold_


def test_content_with_a_question_is_refused_where_its_key_is_another():
    """`fit` knew the question by a key that the caller gave, `calibrate` by its text."""
    rng = np.random.default_rng(0)
    texts = [f"What is {i}?" for i in range(60)]
    X = one_claim_each(
        rng.random(60), problems=texts, claims=[f"It is {i}." for i in range(60)]
    )
    y = [[i % 2] for i in range(60)]
    cf = HardCF(Learning(), alpha=0.2, random_state=0)
    cf.fit(X[:40], y[:40], groups=[f"key {i}" for i in range(40)])
    cf.calibrate(X[40:], y[40:])
    with pytest.raises(ValueError, match=r"trained the filter|questions? that trained"):
        cf.calibrate(X, y)


class Learning(Scorer):
    requires_fit = True

    def fit(self, batch, labels, task=None):
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


@pytest.mark.parametrize(("unmarked", "n"), [(0, 40), (1, 60)])
def test_one_answer_not_drawn_blindly_makes_the_unjudged_count(unmarked, n):
    """Who chose one answer by its looks may have chosen which others to leave."""
    rng = np.random.default_rng(1)
    marks = [{} if i < unmarked else {"sampling": "random"} for i in range(60)]
    X = one_claim_each(rng.random(60), metadata=marks)
    y = [[1] if i < 38 else [0] if i < 40 else [-1] for i in range(60)]
    cf = HardCF(0, alpha=0.4).fit(X, y)
    assert cf.n_calibration_ + len(cf.unused_indices_) == n


def test_an_unknown_claim_may_be_wrong_where_answers_are_released():
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0, -1], [50, 5, 4])
    cf = HardCF(0, alpha=0.2).fit(
        one_claim_each(rng.random(59)), y.reshape(-1, 1).tolist()
    )
    assert cf.n_calibration_ == 59
    assert np.isfinite(cf.whole_answer_scores_).sum() == 9


STEP = 2.0**-10  # of the hash of jitter, in a problem whose largest feature is 1
ON_A_BORDER = {
    "half a step": [1.0, 300.5 * STEP],
    "near half a step": [1.0, (300.5 + 3e-7) * STEP],
    "half a power of two": [2**0.5, 0.25],
}
APART = {
    "a step": [1.0, 300 * STEP],
    "a third of a step": [1.0, (300 + 1 / 3) * STEP],
    "a power of two": [2.0, 0.25],
    "far enough from half a step": [1.0, (300.5 + 3e-6) * STEP],
}


@pytest.mark.parametrize("name", [*ON_A_BORDER, *APART])
def test_no_noise_where_a_copy_might_get_other_noise(name):
    rows = {**ON_A_BORDER, **APART}[name]
    others = 0.5 + 0.01 * np.arange(40)[:, None] + np.zeros((40, 2))
    table = np.vstack([[rows], others + 1 / 3e3])
    cf = HardCF(0, alpha=0.2, ties="jitter", calibration_size=None, random_state=0)
    cf.fit(one_claim_each(table), [[0]] * 41)
    assert cf.n_calibration_ + len(cf.unused_indices_) == 41
    if 0 in cf.unused_indices_:
        pytest.skip("the problem is left over")
    gap = np.abs(cf.max_path_risks_ + rows[0])
    assert (gap.min() == 0) == (name in ON_A_BORDER)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_noise_is_the_same_for_copies_of_any_size(scale):
    """Columns are rounded in steps of their own size, so that the last bits do not matter."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(60), rng.random(60)]) * scale
    copies = table * np.array([1.0, 1 + 1e-12])
    cf = HardCF(0, alpha=0.2, ties="jitter", random_state=0)
    cf.fit(one_claim_each(table), [[0]] * 60)
    risks = np.concatenate(cf.path_risk(one_claim_each(table)))
    assert np.unique(risks + table[:, 0]).size > 30
    np.testing.assert_array_equal(
        np.concatenate(cf.path_risk(one_claim_each(copies))), risks
    )


@pytest.mark.parametrize("steps", [300.5, 300.505])
def test_columns_of_float32_have_wider_borders(steps):
    """What was computed in float32 comes back a hundredth of a step away."""
    others = np.random.default_rng(0).random((41, 2)) + 0.3
    table = np.vstack([[1.0, steps * STEP], others]).astype(np.float32).astype(float)
    cf = HardCF(0, alpha=0.2, ties="jitter", random_state=0)
    cf.fit(one_claim_each(table), [[0]] * 42)
    if 0 not in cf.unused_indices_:
        assert (cf.max_path_risks_ == -1.0).sum() == 1


class Peeping(Scorer):
    """Says that it learns nothing, and looks at the labels that it is given."""

    requires_fit = False

    def fit(self, batch, labels, task=None):
        self.labels_ = np.array(labels)
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


@pytest.mark.parametrize("calibration_size", [None, 0.5])
def test_labels_are_hidden_from_who_says_that_it_learns_nothing(calibration_size):
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(60))
    y = (rng.random((60, 1)) < 0.6).astype(int).tolist()
    cf = HardCF(Peeping(), alpha=0.2, calibration_size=calibration_size).fit(X, y)
    assert (cf.scorer_.labels_ == -1).all()


# -- found by tests/attacks/mutations.py: each of these passed the tests of its own file


def test_the_last_safe_threshold_by_a_walk():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, size=40)
    offsets = np.append(0, np.cumsum(sizes))
    risk = rng.random(offsets[-1]).round(1)
    scores = np.where(rng.random(40) < 0.2, np.inf, rng.random(40).round(1))
    expected = []
    for score, start, stop in zip(scores, offsets, offsets[1:], strict=False):
        own = sorted(risk[start:stop].tolist())
        grid = [own[0] - 0.5, *own, own[-1] + 0.5]
        safe = [t for t in grid if t < score or t == grid[0]]
        expected.append(grid[-1] if np.isinf(score) else max(safe))
    found = last_safe_thresholds(risk, scores, offsets, margin=0.5)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [20, 99, 250, 1000])
def test_levels_with_certainty_have_twelve_digits_and_are_never_too_small(n):
    below = np.arange(n)
    levels = claim_level(below, n, 0.05)
    for b, level in zip(below.tolist(), levels.tolist(), strict=True):
        assert float(f"{level:.12g}") == pytest.approx(level, rel=1e-15, abs=0)
        assert level == 1.0 or binom.cdf(b, n, level) <= 0.05 * (1 + 1e-9)
        assert level == 1.0 or binom.cdf(b, n, level * (1 - 1e-9)) > 0.05
        assert level / beta.isf(0.05, b + 1, n - b) - 1 < 1.1e-11


@pytest.mark.parametrize(
    ("n", "alpha", "count"),
    [(1, 0.1, 1), (2, 0.5, 1), (5, 0.1, 2), (9, 0.1, 3), (10, 0.01, 3), (30, 0.05, 9)],
)
def test_a_third_calibrates_where_so_few_cannot_reach_the_level(n, alpha, count):
    assert whole_count(n, alpha) == count


def test_columns_without_names_are_numbered():
    table = np.random.default_rng(0).random((40, 3))
    cf = HardCF(0, alpha=0.2).fit(one_claim_each(table), [[1], [0]] * 20)
    assert cf.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


class Shaky(Scorer):
    """Repeats itself to 1e-7, as what a float32 product makes of another batch."""

    requires_fit = False

    def confidence(self, batch):
        return batch.features[:, 0] + 1e-7 * (len(batch) % 7)


def test_what_a_scorer_does_not_repeat_lowers_the_scores():
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(59))
    y = [[0]] * 59
    exact = HardCF(0, alpha=0.2).fit(X, y).nonconformity_scores_
    shaky = HardCF(Shaky(), alpha=0.2).fit(X, y).nonconformity_scores_
    assert (exact - shaky > 1e-6).all()  # ten times what was measured


class Odd(Scorer):
    """Gives one claim no number."""

    def confidence(self, batch):
        return np.where(batch.features[:, 0] > 0.9, np.nan, 0.5)


def test_a_single_confidence_that_is_no_number_is_refused():
    X = one_claim_each([0.1, 0.95, *np.linspace(0, 0.8, 30)])
    with pytest.raises(ValueError, match=r"problem 1, claim 0 is nan: .* finite"):
        HardCF(Odd(), alpha=0.2).fit(X, [[0]] * 32)


def test_one_answer_of_each_question_calibrates_in_each_group():
    rng = np.random.default_rng(0)
    names = np.repeat(np.arange(40), 3)
    kinds = [{"kind": "ab"[i % 2]} for i in names]
    X = one_claim_each(rng.random(120), metadata=kinds)
    y = (rng.random((120, 1)) < 0.6).astype(int).tolist()
    cf = HardCF(0, alpha=0.2).fit(X, y, groups=names)
    assert cf.n_calibration_ + len(cf.unused_indices_) == 40
    by = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="kind"))
    by.fit(X, y, groups=names)
    chosen = [part.n for part in by.calibration_.parts]
    assert sum(chosen) + len(by.unused_indices_) == 40
    assert min(chosen) == max(chosen) == 19  # floor(.2 * 20) is 4, and so it is for 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"edges": "none"},
            "a part has edges = 'given', and is to calibrate with 'none'",
        ),
        ({"ties": "jitter"}, "a part has ties = "),
        ({"online": True}, "a part has online = False"),
    ],
)
def test_a_part_of_other_settings_is_refused(change, message):
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(60))
    y = (rng.random((60, 1)) < 0.6).astype(int).tolist()
    part = HardCF(0, alpha=0.2).fit(X, y).calibration_part(X, y)
    other = HardCF(0, alpha=0.2, **change).fit(X, y)
    with pytest.raises(ValueError, match=message):
        other.calibrate_parts([part])


@pytest.mark.parametrize(("n", "is_short"), [(8, True), (9, False)])
def test_groups_that_overlap_need_so_many_and_no_more(n, is_short):
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(n), metadata=[{"kind": ["a", "b"]}] * n)
    y = (rng.random((n, 1)) < 0.6).astype(int).tolist()
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="kind")).fit(X, y)
    assert cf.calibration_.n == n
    assert (cf.calibration_.shortage(0.1) is not None) == is_short
    assert cf.calibration_.keeps_nothing(0.1) == is_short


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_weights_of_any_size_need_as_many_problems(scale):
    guarantee = NoFalseClaim(weight=lambda batch: np.full(len(batch), scale))
    X = one_claim_each(np.random.default_rng(0).random(30))
    y = np.zeros((30, 1), dtype=int)
    cf = HardCF(0, alpha=0.1, guarantee=guarantee)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(thresholds(cf.fit(X[:20], y[:20]), X[20:])).all()
    with pytest.warns(CalibrationWarning):
        cf.fit(X[:8], y[:8])


@pytest.mark.parametrize("n_forward", [0, 1])
def test_edges_that_all_lead_back_are_doubted_and_others_are_not(n_forward):
    rng = np.random.default_rng(0)
    edges = [(2 * i + 1, 2 * i) for i in range(30)]
    edges[:n_forward] = [(0, 1)][:n_forward]
    X = GraphBatch.from_arrays(rng.random((60, 1)), np.arange(31) * 2, edges)
    y = [[1, 0]] * 30
    if n_forward:
        HardCF(0, alpha=0.2).fit(X, y)  # a warning would be an error here
    else:
        with pytest.warns(GuaranteeWarning, match="reversed"):
            HardCF(0, alpha=0.2).fit(X, y)


def test_columns_are_found_by_name_where_nothing_goes_by_their_place():
    rng = np.random.default_rng(0)
    table = rng.random((40, 2))
    y = (rng.random((40, 1)) < 0.6).astype(int).tolist()
    X = one_claim_each(table, feature_names=["a", "b"])
    turned = one_claim_each(table[:, ::-1], feature_names=["b", "a"])
    cf = HardCF("a", alpha=0.2).fit(X, y)
    for mask, other in zip(cf.predict(X), cf.predict(turned), strict=True):
        np.testing.assert_array_equal(mask, other)
    by_place = HardCF("a", alpha=0.2, ties="jitter", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="the feature names differ"):
        by_place.predict(turned)


def test_one_column_of_float32_is_enough_to_raise_a_risk():
    single = np.float32(np.linspace(0.1003, 0.4903, 40)).astype(float)
    X = one_claim_each(np.column_stack([single, np.ones(40)]))
    cf = HardCF(0, alpha=0.2).fit(X, [[0]] * 40)
    raised = np.concatenate(list(cf.path_risk(X)))
    np.testing.assert_allclose(raised + single, 1e-5 * (1 + single), rtol=1e-6)


def test_a_bound_on_the_count_is_used_up_by_one_claim():
    """With 19 answers without errors, one claim of a new one may be lost for .05."""
    X = one_claim_each(np.linspace(0, 1, 19))
    cf = HardCF(0, guarantee=ExpectedFalse("count", 0.05)).fit(X, [[1]] * 19)
    new = GraphBatch.from_arrays([[0.5], [0.4], [0.3]], [0, 3], NO_EDGES)
    for level, n_kept in ((0.049, 0), (0.05, 1), (0.1, 2), (0.15, 3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that .049 keeps nothing
            assert cf.predict(new, alpha=level)[0].sum() == n_kept


@pytest.mark.parametrize(("n", "keeps"), [(8, False), (9, True)])
def test_a_mean_loss_keeps_nothing_before_a_new_answer_may_lose_all(n, keeps):
    """Of n answers none is wrong before the first step, and the new one counts as lost."""
    X = one_claim_each(np.linspace(0.1, 0.9, n))
    cf = HardCF(0, guarantee=ExpectedFalse("share", 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing can be kept
        cf.fit(X, [[0]] * n)
        assert (cf.threshold_ > -np.inf) == keeps
        assert cf.predict(one_claim_each([0.99]))[0].all() == keeps


@pytest.mark.parametrize("alpha", [0.01, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("share_false", [0.25, 0.9])
def test_the_share_of_wrong_texts_by_draws_of_its_law(alpha, share_false):
    """Where nearly all claims are false, few texts are shown."""
    rng = np.random.default_rng(0)
    scores = rng.random(60)
    y = (scores > share_false).astype(int)[:, None].tolist()
    cf = HardCF(0, alpha=0.3).fit(one_claim_each(scores), y)
    n = cf.n_calibration_
    rank = int(np.floor(alpha * (n + 1)))
    if not rank:
        assert cf.calibration_.false_among_shown(alpha) is None
        return
    rank = min(rank, 1 + int((cf.nonconformity_scores_ < cf.threshold(alpha)).sum()))
    n_shown = round(n * cf.calibration_.shown(alpha))
    wrong = rng.beta(rank, n + 1 - rank, size=10**6)
    shown = rng.beta(n_shown + 0.5, n - n_shown + 0.5, size=10**6)
    expected = np.minimum(np.quantile(wrong / shown, [0.05, 0.95]), 1)
    bounds = cf.calibration_.false_among_shown(alpha)[1:]
    np.testing.assert_allclose(bounds, expected, rtol=0.01)


def test_a_group_that_looks_at_the_others_is_refused_where_few_problems_show_it():
    """The first problems are of the same group alone as among all."""
    scores = np.append([0.1, 0.1], np.linspace(0, 1, 58))
    y = (np.arange(60) % 3 > 0).astype(int)[:, None].tolist()
    above = NoFalseClaim(by=lambda batch: batch.features[:, 0] > batch.features.mean())
    with pytest.raises(ValueError, match="depend on its problem only"):
        HardCF(0, alpha=0.2, guarantee=above).fit(one_claim_each(scores), y)


def test_a_look_at_problems_leaves_nothing_on_a_filter_before_its_fit():
    cf = HardCF(0)
    before = dict(vars(cf))
    check(cf, one_claim_each([0.1, 0.9]))
    assert vars(cf) == before


def test_answers_of_one_claim_that_people_judged_calibrate_alone():
    rng = np.random.default_rng(0)
    sources = [
        {"label_sources": [{"kind": kind, "by": "a", "when": None, "version": None}]}
        for kind in ("human", "model")
    ]
    metadata = [sources[0] | {"sampling": "random"}] * 40 + [sources[1]] * 50
    X = one_claim_each(rng.random(90), metadata=metadata)
    y = (rng.random((90, 1)) < 0.6).astype(int).tolist()
    cf = HardCF(Learning(), alpha=0.2, random_state=0).fit(X, y)
    trained, calibrated = seen(cf, X)
    assert calibrated.tolist() == [True] * 40 + [False] * 50
    assert trained.tolist() == [False] * 40 + [True] * 50


def test_a_bad_score_that_does_not_rank_backwards_is_not_warned_of():
    """Of pairs of a true and a false claim .37 are in order: little, and surely so."""
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.6
    trust = rng.normal(size=2000) - 0.45 * y
    in_order = np.mean(trust[y][:, None] > trust[~y])
    assert 0.33 < in_order < 0.41
    HardCF(0, alpha=0.2).fit(trust[:, None], y)  # a warning would be an error here


def test_answers_without_claims_are_none_that_nobody_judged():
    """One claim of all is unknown, and a quarter of the answers hold no claim."""
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(80) % 4, 2, 0)
    offsets = np.append(0, np.cumsum(sizes))
    X = GraphBatch.from_arrays(rng.random((offsets[-1], 1)), offsets, NO_EDGES)
    labels = (rng.random(offsets[-1]) < 0.7).astype(int)
    labels[0] = -1
    HardCF(0, alpha=0.1).fit(X, labels)  # a warning would be an error here


@pytest.mark.parametrize("n", [5, 20])
def test_the_level_that_a_message_names_is_the_smallest_that_keeps_anything(n):
    X = one_claim_each(np.linspace(0.1, 0.9, n))
    cf = HardCF(0, alpha=0.05, guarantee=NoFalseClaim(delta=0.1))
    with pytest.warns(CalibrationWarning, match="alpha >= ") as record:
        cf.fit(X, [[0]] * n)
    level = float(re.search(r"alpha >= ([\d.]+\d)", str(record[0].message))[1])
    assert cf.calibration_.shortage(level - 1e-4) is not None
    assert cf.calibration_.shortage(level + 1e-4) is None


def test_a_rule_reads_its_edges_in_the_whole_answer_while_it_is_written():
    """Every claim builds on the first one, which the last two claims do not show."""

    def on_the_first(texts, question):
        return [(0, i) for i in range(1, len(texts))]

    rng = np.random.default_rng(0)
    answers = [
        ReasoningGraph(rng.random((4, 1)), (), claims=[f"{i} {j}" for j in range(4)])
        for i in range(80)
    ]
    y = (rng.random((80, 4)) < 0.8).astype(int)
    cf = HardCF(0, alpha=0.3, edges=on_the_first, online=True).fit(
        answers[:60], [*y[:60]]
    )
    masks = cf.predict(answers[60:])
    for answer, mask in zip(answers[60:], masks, strict=True):
        rows = zip(answer.claims, answer.features.tolist(), strict=True)
        claims = [{"text": text, "features": row} for text, row in rows]
        assert list(cf.stream(claims)) == mask.tolist()
    alone = HardCF(0, alpha=0.3, edges="none", online=True).fit(answers[:60], [*y[:60]])
    assert any(
        (a != b).any() for a, b in zip(masks, alone.predict(answers[60:]), strict=True)
    )


def test_a_fit_that_fails_leaves_nothing_behind():
    cf = HardCF(Odd(), alpha=0.2)
    before = dict(vars(cf))
    with pytest.raises(ValueError, match="finite"):
        cf.fit(one_claim_each([0.1, 0.95, 0.3]), [[0]] * 3)
    assert vars(cf) == before


class Noting(Learning):
    """Notes what it is fitted to."""

    def fit(self, batch, labels, task=None):
        self.rows_ = batch.features[:, 1].astype(int)
        self.labels_ = np.array(labels)
        self.groups_ = task.groups
        return self


def numbered(n):
    """Random columns and labels of n answers of one claim, with their numbers beside them."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(n), np.arange(n)])
    return one_claim_each(table), (rng.random((n, 1)) < 0.6).astype(int).tolist()


def test_a_scorer_is_told_which_answers_belong_together():
    X, y = numbered(60)
    names = np.arange(60) // 2
    scorer = HardCF(Noting(), alpha=0.2, random_state=0).fit(X, y, groups=names).scorer_
    pairs = set(zip(scorer.groups_, names[scorer.rows_], strict=True))
    assert len(pairs) == len(set(scorer.groups_)) == len(set(names[scorer.rows_]))
    assert len(pairs) < len(scorer.rows_)
    alone = HardCF(Noting(), alpha=0.2, random_state=0).fit(X, y).scorer_
    assert alone.groups_ is None


def test_answers_that_nobody_judged_teach_nothing():
    X, y = numbered(90)
    y[::5] = [[-1]] * 18
    scorer = HardCF(Noting(), alpha=0.4, random_state=0).fit(X, y).scorer_
    assert len(scorer.labels_) > 20
    assert (scorer.labels_ >= 0).all()


@pytest.mark.parametrize(("calibration_size", "n"), [(None, 60), (0.5, 30)])
def test_what_is_held_out_is_hidden_from_who_learns_nothing(calibration_size, n):
    X, y = numbered(60)
    cf = HardCF(Peeping(), alpha=0.2, calibration_size=calibration_size).fit(X, y)
    assert len(cf.scorer_.labels_) == n


class Large(Shaky):
    """As closely as `Shaky`, with confidences up to 1000."""

    def confidence(self, batch):
        return 1000 * super().confidence(batch)


def test_a_scorer_of_large_numbers_may_differ_by_as_much_more():
    X = one_claim_each(np.linspace(0, 1, 59))
    exact = -1000 * np.linspace(1, 0, 59)
    cf = HardCF(Large(), alpha=0.2).fit(X, [[0]] * 59)
    lowered = exact - cf.nonconformity_scores_
    assert (lowered > 1e-3).all()  # ten times what was measured
    assert (lowered < 1e-2).all()


@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_scores_that_even_two_problems_share_are_lowered(n_copies):
    column = np.linspace(0.1234, 0.9876, 59)
    column[:n_copies] = 0.0314159
    cf = HardCF(0, alpha=0.2).fit(one_claim_each(column), [[0]] * 59)
    lowered = np.sort(-column) - cf.nonconformity_scores_
    assert np.sum(lowered > 1e-7) == (n_copies if n_copies > 1 else 0)


def test_what_explains_a_count_of_kept_claims_says_what_is_kept():
    """The threshold of an answer is the path risk of its first claim that goes."""
    X = one_claim_each(np.linspace(0, 1, 19))
    cf = HardCF(0, guarantee=ExpectedFalse("count", 0.1)).fit(X, [[1]] * 19)
    new = GraphBatch.from_arrays([[0.5], [0.4], [0.3]], [0, 3], NO_EDGES)
    (explained,) = explain(cf, new)
    assert explained.kept.tolist() == cf.predict(new)[0].tolist()
    assert explained.kept.sum() == 2


def test_answers_without_edges_are_doubted_beside_answers_of_one_claim():
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(np.where(np.arange(60) % 10, 2, 1)))
    table = rng.random((offsets[-1], 1))
    pairs = [(start, start + 1) for start in offsets[:-1][np.diff(offsets) == 2]]
    X = GraphBatch.from_arrays(table, offsets, pairs)
    cf = HardCF(0, alpha=0.2).fit(X, (table[:, 0] > 0.3).astype(int))
    cf.predict(X)  # a warning would be an error here
    with pytest.warns(GuaranteeWarning, match="none of 54 problems .* has an edge"):
        cf.predict(GraphBatch.from_arrays(table, offsets, NO_EDGES))


def shown_by_weights(scale):
    rng = np.random.default_rng(0)
    kinds = [{"kind": "ab"[i % 2]} for i in range(60)]
    X = one_claim_each(rng.random(60), metadata=kinds)
    y = (rng.random((60, 1)) < 0.6).astype(int).tolist()
    guarantee = NoFalseClaim(by="kind", weight=lambda batch: np.full(len(batch), scale))
    return HardCF(0, alpha=0.3, guarantee=guarantee).fit(X, y).calibration_.shown(0.3)


def test_the_share_of_shown_texts_does_not_depend_on_the_size_of_weights():
    assert shown_by_weights(1e-3) == pytest.approx(shown_by_weights(1.0))
    assert shown_by_weights(1.0) > 0
    with pytest.warns(CalibrationWarning, match="weight 0"):
        assert shown_by_weights(0.0) == 0


@pytest.mark.parametrize("place", ["X but not in fit", "fit but not in X"])
def test_columns_that_are_named_at_one_door_alone_are_doubted(place):
    table, y = np.random.default_rng(0).random((40, 2)), [[1], [0]] * 20
    named = one_claim_each(table, feature_names=["a", "b"])
    plain = one_claim_each(table)
    first, second = (plain, named) if place.startswith("X") else (named, plain)
    cf = HardCF(0, alpha=0.2).fit(first, y)
    with pytest.warns(GuaranteeWarning, match=f"the features are named in {place}"):
        cf.predict(second)


def test_levels_that_share_a_split_share_the_columns_that_are_learnt_there():
    X, y = numbered(80)
    settings = {"features": PCA(1), "calibration_size": 0.5, "random_state": 0}
    levels = [0.1, 0.3]
    filters = fit_levels(HardCF(0, **settings), X, y, levels)
    for alpha, cf in zip(levels, filters, strict=True):
        alone = HardCF(0, alpha=alpha, **settings).fit(X, y)
        assert cf.threshold_ == alone.threshold_
        np.testing.assert_array_equal(
            cf.transform_features(X).features, alone.transform_features(X).features
        )


def test_parts_calibrate_no_filter_without_a_fit():
    X, y = numbered(20)
    part = HardCF(0, alpha=0.2).fit(X, y).calibration_part(X, y)
    with pytest.raises(NotFittedError):
        HardCF(0, alpha=0.2).calibrate_parts([part])


def test_independent_claims_take_no_edges():
    assert "edges" not in IndependentFactuality().get_params()
    with pytest.raises(TypeError, match="edges"):
        IndependentFactuality(edges="given")


def test_a_table_takes_labels_in_one_array_per_problem():
    table = np.random.default_rng(0).random((40, 2))
    flat = np.tile([1, 0], 20)
    arrays = np.empty(40, dtype=object)
    arrays[:] = [np.array([label]) for label in flat]
    expected = HardCF(0, alpha=0.2).fit(table, flat).threshold_
    for y in (arrays, [*arrays], flat.reshape(-1, 1).tolist()):
        assert HardCF(0, alpha=0.2).fit(table, y).threshold_ == expected


def test_groups_are_looked_up_in_columns_that_the_filter_makes_alone():
    X, y = numbered(60)
    rounded = X.features[:, 0].round()
    add = FunctionTransformer(
        lambda table: np.column_stack([table, table[:, 0].round()]),
        feature_names_out=lambda _, names: [*names, "rounded"],
    )
    cf = HardCF(0, features=add, alpha=0.2, guarantee=NoFalseClaim(by="rounded"))
    named = cf.fit(X, y).calibration_
    marked = X.replace_metadata([{"kind": value} for value in rounded.tolist()])
    by_key = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="kind")).fit(marked, y)
    assert {*named.names} == {*by_key.calibration_.names} == {0.0, 1.0}
    for mask, other in zip(cf.predict(X), by_key.predict(marked), strict=True):
        np.testing.assert_array_equal(mask, other)


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        ({}, ", for new answers that are sampled as the calibration answers were"),
        ({"by": "kind"}, ", in every group by 'kind'"),
        ({"weight": "w"}, ", for answers of the kind that the weights stand for"),
        ({"by": "kind", "weight": "w"}, ", in every group by 'kind'"),
    ],
)
def test_a_promise_ends_with_the_answers_that_it_is_about(settings, end):
    assert NoFalseClaim(**settings).describe(0.1).endswith(end)
    assert ExpectedFalse("share", 0.1, **settings).describe(0.1).endswith(end)
