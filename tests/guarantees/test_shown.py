"""Of the texts that are shown, at most alpha hold a false claim: by brute force and by laws."""

from fractions import Fraction

import numpy as np
import pytest
from levels import thresholds
from one_claim import one_claim_each

from benchmarks.guarantees.shown import simulate
from skdcf import GraphBatch, HardCF, ReasoningGraph, load
from skdcf.apps.cli import main
from skdcf.choosing import release
from skdcf.datasets import (
    make_reasoning_graphs,
    make_word_problems,
    read_jsonl,
    write_jsonl,
)
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.monitoring import CoverageMonitor
from skdcf.ops.conformal import conformal_rank, shown_rank
from skdcf.uses import calibration_scores, seen


def threshold_by_definition(scores, lowest, alpha):
    """T = sup {t : something is shown and F(t) <= alpha}, F as it is written down.

    F changes only above one of the numbers; between two of them it is constant, and the sup
    over such an interval is its upper end.
    """
    n, m = len(scores), len(lowest)
    ends = sorted({*scores.tolist(), *lowest.tolist(), np.inf})
    best = -np.inf
    for low, high in zip([-np.inf, *ends], ends, strict=False):
        below_scores = sum(s <= low for s in scores)
        shown = sum(risk <= low for risk in lowest)  # of t just above low, up to high
        if not shown:
            continue
        rate = Fraction(m * (1 + below_scores), (n + 1) * shown)
        if rate <= Fraction(str(alpha)):
            best = high
    return best


def test_the_rank_is_exact_where_all_of_up_to_500_are_shown():
    for m in range(1, 501):
        for n, alpha in [(99, 0.29), (199, 0.1), (m, 0.07), (1000, 0.05)]:
            lowest = np.full(m, -1.0)
            rank = shown_rank(np.arange(n, dtype=float), lowest, alpha)
            exact = Fraction(str(alpha)) * (
                n + 1
            )  # k = m, so that r / (n + 1) <= alpha
            assert rank == (int(exact) if exact >= 1 else 0)


def test_the_rank_is_that_of_predict_at_the_level_of_the_batch():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        n, m = rng.integers(1, 400, size=2)
        alpha = round(float(rng.uniform(0.01, 0.5)), 2)
        lowest = rng.integers(0, 40, size=m).astype(float)
        scores = np.sort(rng.integers(5, 60, size=n)).astype(float)
        rank = shown_rank(scores, lowest, alpha)
        if not rank:
            continue
        k = int((lowest < scores[rank - 1]).sum())
        level = float(Fraction(repr(alpha)) * k / int(m))
        assert rank == conformal_rank(n, level)
        assert Fraction(rank * int(m), int(n + 1) * k) <= Fraction(repr(alpha))
        assert Fraction((rank + 1) * int(m), int(n + 1) * k) > Fraction(repr(alpha))


def test_masks_are_those_of_the_definition_for_laws_with_ties():
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, m = rng.integers(1, 60, size=2)
        alpha = float(rng.choice([0.05, 0.1, 0.2, 0.29, 0.5]))
        spread = int(rng.integers(2, 50))
        lowest = rng.integers(0, spread, size=m).astype(float)
        lowest[rng.random(m) < 0.1] = np.inf
        scores = np.sort(rng.integers(0, spread + 3, size=n)).astype(float)
        scores[rng.random(n) < 0.2] = np.inf
        scores = np.sort(scores)
        rank = shown_rank(scores, lowest, alpha)
        threshold = scores[rank - 1] if rank else -np.inf
        expected = threshold_by_definition(scores, lowest, alpha)
        assert np.array_equal(lowest < threshold, lowest < expected)


def law_of(rng):
    """A random law of answers: risks of few values, so that ties are usual."""
    n_values = int(rng.integers(2, 30))
    n_claims = int(rng.integers(1, 5))
    height = rng.uniform(0.05, 1.0)
    power = rng.uniform(0.2, 3.0)
    max_false = int(rng.integers(0, 2))

    def draw(n):
        risk = rng.integers(0, n_values, size=(n, n_claims)) / n_values
        false = rng.random(risk.shape) < height * risk**power
        ordered = np.sort(np.where(false, risk, np.inf), axis=1)
        enough = ordered.shape[1] > max_false
        scores = ordered[:, max_false] if enough else np.full(n, np.inf)
        return risk, false, scores

    return draw, max_false


@pytest.mark.long
def test_no_random_law_with_ties_errs_more_often_than_promised():
    rng = np.random.default_rng(2)
    for _ in range(200):
        draw, max_false = law_of(rng)
        n, m = int(rng.integers(3, 80)), int(rng.integers(1, 60))
        alpha = float(rng.choice([0.05, 0.1, 0.2, 0.3]))
        rates = []
        for _ in range(40):
            scores = np.sort(draw(n)[2])
            risk, false, _ = draw(m)
            rank = shown_rank(scores, risk.min(axis=1), alpha)
            kept = risk < (scores[rank - 1] if rank else -np.inf)
            wrong = (kept & false).sum(axis=1) > max_false
            rates.append(wrong.sum() / max(1, kept.any(axis=1).sum()))
        error = max(np.std(rates, ddof=1), np.sqrt(alpha / 40)) / np.sqrt(40)
        assert np.mean(rates) <= alpha + 4 * error


@pytest.mark.parametrize(
    ("n", "m", "alpha", "rate", "shown", "true"),
    [
        (200, 100, 0.1, 0.0974, 0.897, 1.659),
        (50, 100, 0.1, 0.0876, 0.867, 1.564),
        (19, 20, 0.2, 0.1854, 0.938, 1.983),
        (200, 100, 0.02, 0.0170, 0.563, 0.776),
    ],
)
def test_a_known_law_gives_the_numbers_of_another_program(
    n, m, alpha, rate, shown, true
):
    rows = simulate("square", n, m, alpha, draws=1000, seed=5)
    means = rows.mean(axis=0) / [1, m, 1, 1]
    errors = rows.std(axis=0, ddof=1) / np.sqrt(1000) / [1, m, 1, 1]
    expected = np.array([rate, shown, true])
    # The other program had 4,000 draws, and errors half as large.
    assert (abs(means[:3] - expected) < 3 * np.sqrt(1.25) * errors[:3]).all()


@pytest.fixture(scope="module")
def problems():
    return make_reasoning_graphs(700, kind="felm", random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def fitted(problems):
    graphs, y = problems
    return HardCF(0, alpha=0.02, random_state=0).fit(graphs[:400], y[:400])


def test_masks_are_those_of_predict_at_the_level_that_the_batch_allows(
    problems, fitted
):
    new = problems[0][400:]
    for alpha in (0.05, 0.1, 0.2, 0.4):
        masks = release(fitted, new, alpha)
        n_shown = sum(bool(mask.any()) for mask in masks)
        assert n_shown
        level = float(Fraction(repr(alpha)) * n_shown / len(new))
        expected = fitted.predict(new, alpha=level)
        assert all((a == b).all() for a, b in zip(masks, expected, strict=True))


def test_one_answer_alone_is_predict(problems, fitted):
    for i in range(400, 430):
        [mask] = release(fitted, problems[0][i : i + 1], 0.2)
        [expected] = fitted.predict(problems[0][i : i + 1], 0.2)
        assert np.array_equal(mask, expected)


def test_a_claim_whose_risk_equals_the_threshold_is_not_kept():
    rng = np.random.default_rng(4)
    X = rng.permutation(199).reshape(-1, 1) / 199  # each value once
    y = (rng.random(199) < 0.3 + 0.7 * X[:, 0]).astype(int)
    cf = HardCF(0, alpha=0.05).fit(X, y)
    scores = cf.nonconformity_scores_
    new = np.r_[-scores[np.isfinite(scores)], rng.random(60)].reshape(-1, 1)
    n_equal = 0
    for alpha in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
        kept = release(cf, new, alpha)
        rank = shown_rank(scores, -new[:, 0], alpha)
        threshold = scores[rank - 1] if rank else -np.inf
        n_equal += int((-new[:, 0] == threshold).sum())
        assert np.array_equal(kept, -new[:, 0] < threshold)
    assert n_equal > 1


def test_answers_without_claims_count_in_the_batch(problems, fitted):
    new = problems[0][400:450]
    empty = GraphBatch.from_graphs(
        [ReasoningGraph(np.empty((0, new.n_features)), ())] * 200
    ).replace_features(np.empty((0, new.n_features)), new.feature_names)
    both = GraphBatch.from_graphs([*new, *empty])
    alone = release(fitted, new, 0.1)
    together = release(fitted, both, 0.1)
    assert sum(m.any() for m in together) < sum(m.any() for m in alone)


def test_rare_errors_let_everything_pass():
    X = np.linspace(0, 1, 200).reshape(-1, 1)
    cf = HardCF(0, alpha=0.05).fit(X, np.r_[0, np.ones(199)].astype(int))
    assert release(cf, X[::7] + 1e-3, 0.05).all()


def test_each_group_is_a_batch_of_its_own(problems):
    graphs, y = problems

    def of_kind(batch):
        return batch.sizes % 2

    cf = HardCF(0, alpha=0.05, guarantee=NoFalseClaim(by=of_kind)).fit(
        graphs[:400], y[:400]
    )
    new = graphs[400:]
    groups = of_kind(new)
    masks = release(cf, new, 0.2)
    for group in (0, 1):
        rows = np.flatnonzero(groups == group)
        alone = release(cf, new[rows], 0.2)
        pairs = zip(masks[rows], alone, strict=True)
        assert all((a == b).all() for a, b in pairs)


def test_of_a_group_that_did_not_calibrate_nothing_is_shown(problems):
    graphs, y = problems

    def of_size(batch):
        return np.minimum(batch.sizes, 12)

    few = graphs[graphs.sizes < 9]
    labels = [row for row, size in zip(y, graphs.sizes, strict=True) if size < 9]
    new = graphs[graphs.sizes >= 12]
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by=of_size)).fit(few, labels)
    with pytest.warns(CalibrationWarning, match="calibration groups"):
        masks = release(cf, new, 0.2)
    assert not any(mask.any() for mask in masks)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ties": "include"}, "ties"),
        ({"guarantee": ExpectedFalse()}, "NoFalseClaim.*ExpectedFalse"),
        ({"guarantee": NoFalseClaim(delta=0.1)}, "delta"),
    ],
)
def test_what_has_no_proof_is_refused(problems, settings, message):
    graphs, y = problems
    cf = HardCF(0, alpha=0.1, **settings).fit(graphs[:400], y[:400])
    with pytest.raises(ValueError, match=message):
        release(cf, graphs[400:], 0.1)


def test_a_guarantee_of_the_users_own_is_refused(problems):
    class Own(NoFalseClaim):
        """Of which nobody knows whether wrong implies shown."""

    graphs, y = problems
    cf = HardCF(0, alpha=0.1, guarantee=Own()).fit(graphs[:400], y[:400])
    with pytest.raises(ValueError, match="NoFalseClaim"):
        release(cf, graphs[400:], 0.1)


def answers_of(n_questions, n_answers, seed):
    """Answers with question texts, by a score that tells something."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for q in range(n_questions):
        for _ in range(n_answers):
            labels.append((rng.random(3) < 0.8).astype(int))
            score = labels[-1] + rng.normal(size=3)
            question = f"question {seed} {q}"
            graphs.append(ReasoningGraph(score.reshape(-1, 1), (), problem=question))
    return graphs, labels


def test_answers_to_one_question_are_refused_or_one_is_taken():
    cf = HardCF(0, alpha=0.05).fit(*answers_of(200, 1, seed=0))
    new, _ = answers_of(40, 3, seed=1)
    with pytest.raises(ValueError, match=r"3.*answers.*question"):
        release(cf, new, 0.2)
    masks = release(cf, new, 0.2, one_per_question=True)
    shown = np.array([mask.any() for mask in masks]).reshape(40, 3)
    assert shown.sum(axis=1).max() == 1 and shown.any()
    order = np.random.default_rng(0).permutation(120)
    shuffled = release(cf, [new[i] for i in order], 0.2, one_per_question=True)
    assert all((shuffled[j] == masks[i]).all() for j, i in enumerate(order))


def test_questions_that_the_filter_knows_are_refused():
    graphs, labels = answers_of(200, 1, seed=0)
    cf = HardCF(0, alpha=0.05, random_state=0).fit(graphs, labels)
    new, _ = answers_of(10, 1, seed=1)
    with pytest.raises(ValueError, match="used for calibration"):
        release(cf, [*new, graphs[0]], 0.2)
    other, other_labels = answers_of(300, 1, seed=2)
    learnt = HardCF(alpha=0.05, random_state=0).fit(other, other_labels)
    trained = np.flatnonzero(seen(learnt, other)[0])
    with pytest.raises(ValueError, match=r"train.*filter"):
        release(learnt, [*new, other[trained[0]]], 0.2)


def test_too_few_answers_show_nothing_and_say_how_many_it_takes(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.2).fit(graphs[:6], y[:6])
    with pytest.warns(CalibrationWarning, match="49"):
        masks = release(cf, graphs[400:], 0.1)
    assert not any(mask.any() for mask in masks)


# -- what describe() says of it -------------------------------------------------------


def test_the_share_is_that_of_the_answers_that_calibrate(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.1).fit(graphs[:99], y[:99])
    for alpha in (0.05, 0.1, 0.3):
        calibration = cf.calibration_
        shown = np.mean([mask.any() for mask in cf.predict(graphs[:99], alpha)])
        assert calibration.shown(alpha) == pytest.approx(shown)
        rate, low, high = calibration.false_among_shown(alpha)
        n_below = (cf.nonconformity_scores_ < cf.threshold(alpha)).sum()
        rank = min(conformal_rank(99, alpha), 1 + n_below)
        assert rate == pytest.approx(rank / (100 * shown))
        assert low < rate < high
        assert f"in about {shown:.0%} of new answers" in cf.describe(alpha)
        assert (
            f"about {rate:.0%} of the shown texts contain a false claim ({low:.0%} to"
            in cf.describe(alpha)
        )


def test_parts_know_what_is_shown_as_one_call_does(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.1).fit(graphs[:99], y[:99])
    parts = [cf.calibration_part(graphs[k:99:2], y[k:99:2]) for k in (0, 1)]
    assert (
        cf.calibrate_parts(parts).describe()
        == cf.calibrate(graphs[:99], y[:99]).describe()
    )


@pytest.mark.long
def test_the_interval_holds_for_about_nine_of_ten_calibrations():
    """Claims as in benchmarks.guarantees.shown, few of them shown: .82 to 1 are expected."""
    rng = np.random.default_rng(3)

    def draw(n):
        X = rng.random((n, 1))
        return X, (rng.random(n) >= 0.3 + 0.6 * X[:, 0]).astype(int)

    inside = 0
    X, y = draw(20000)
    for _ in range(100):
        cf = HardCF(lambda batch: -batch.features[:, 0], alpha=0.1).fit(*draw(99))
        _, low, high = cf.calibration_.false_among_shown(0.1)
        kept = cf.predict(X) == 1
        inside += low <= 1 - y[kept].mean() <= high
    assert inside >= 78  # three errors below .9


@pytest.mark.long
def test_the_interval_holds_where_scores_are_tied():
    """Ten values, and so ties: .16 of the intervals held with the rank alone, .84 now."""
    rng = np.random.default_rng(4)

    def draw(n):
        X = rng.integers(0, 10, size=(n, 1)) / 10
        return X, (rng.random(n) >= 0.02 + 0.6 * X[:, 0]).astype(int)

    inside, middle, truth = 0, 0.0, 0.0
    X, y = draw(20000)
    for _ in range(100):
        cf = HardCF(lambda batch: -batch.features[:, 0], alpha=0.3).fit(*draw(199))
        rate, low, high = cf.calibration_.false_among_shown(0.3)
        kept = cf.predict(X) == 1
        wrong = 1 - y[kept].mean()
        inside += low <= wrong <= high
        middle += rate / 100
        truth += wrong / 100
    assert inside >= 75
    assert abs(middle - truth) < 0.02


def test_tied_scores_count_once_above_those_below_the_threshold():
    """Of 20 answers ten are wrong, all at the risk .5; two more are wrong at .1."""
    risk = np.r_[np.full(2, 0.1), np.full(10, 0.5), np.full(20, 0.2)]
    y = np.r_[np.zeros(12), np.ones(20)].astype(int)
    cf = HardCF(lambda batch: -batch.features[:, 0], alpha=0.25, calibration_size=None)
    cf.fit(risk[:, None], y)
    n = cf.n_calibration_
    assert (
        conformal_rank(n, 0.25) > 3
    )  # two scores lie below the threshold, ten are tied
    n_below = int((cf.nonconformity_scores_ < cf.threshold_).sum())
    rate, _, _ = cf.calibration_.false_among_shown(0.25)
    assert rate == pytest.approx(
        (1 + n_below) / ((n + 1) * cf.calibration_.shown(0.25))
    )


def test_where_nothing_is_shown_it_says_so_and_gives_no_number():
    y = (np.arange(99) % 4 > 0).astype(int)
    cf = HardCF(0, alpha=0.1).fit(np.zeros((99, 1)), y)  # all are trusted alike
    assert cf.calibration_.shown(0.1) == 0
    assert cf.calibration_.false_among_shown(0.1) is None
    assert cf.describe().endswith(". At this level, nothing is shown for new answers")


def by_size(batch):
    return batch.sizes > 5


@pytest.mark.parametrize(
    "guarantee",
    [
        NoFalseClaim(by=by_size),
        ExpectedFalse(),
        ExpectedFalse(by=by_size),
        NoFalseClaim(max_false=1, by=by_size),
    ],
    ids=["by", "mean", "mean by", "some false"],
)
def test_the_share_is_that_of_what_predict_keeps_of_the_answers_that_calibrate(
    problems, guarantee
):
    graphs, y = problems
    batch = GraphBatch.from_graphs(graphs)
    cf = HardCF(0, alpha=0.2, guarantee=guarantee).fit(batch, y)
    rows = np.setdiff1d(np.arange(len(batch)), cf.unused_indices_)
    assert len(rows) > 10
    shown = np.mean([mask.any() for mask in cf.predict(batch[rows], 0.2)])
    assert shown > 0
    assert cf.calibration_.shown(0.2) == pytest.approx(shown)
    assert f"in about {shown:.0%} of new answers" in cf.describe()


def test_of_groups_the_rate_is_the_mean_over_their_ranks(problems):
    graphs, y = problems
    batch = GraphBatch.from_graphs(graphs)
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by=by_size)).fit(batch, y)
    rows = np.setdiff1d(np.arange(len(batch)), cf.unused_indices_)
    group = by_size(batch[rows])
    wrong = 0.0
    for name in (False, True):
        n = int((group == name).sum())
        threshold = thresholds(cf, batch[rows[group == name][:1]], 0.2)[0]
        scores = calibration_scores(cf, batch, y)[rows[group == name]]
        rank = min(conformal_rank(n, 0.2), 1 + (scores < threshold).sum())
        wrong += n * rank / (n + 1) / len(rows)
    rate, low, high = cf.calibration_.false_among_shown(0.2)
    assert rate == pytest.approx(wrong / cf.calibration_.shown(0.2))
    assert np.isnan(low)
    assert np.isnan(high)
    assert cf.describe().endswith(
        f"about {rate:.0%} of the shown texts contain a false claim"
    )


def test_a_group_of_which_nothing_is_shown_has_nothing_wrong(problems):
    graphs, y = problems
    batch = GraphBatch.from_graphs(graphs)
    few = np.flatnonzero(by_size(batch))[:3]
    many = np.flatnonzero(~by_size(batch))[:60]
    rows = np.r_[few, many]
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by=by_size))
    with pytest.warns(CalibrationWarning):
        cf.fit(batch[rows], [y[i] for i in rows])
    alone = HardCF(0, alpha=0.2).fit(batch[many], [y[i] for i in many]).calibration_
    part = cf.calibration_
    assert part.shown(0.2) == pytest.approx(alone.shown(0.2) * alone.n / (alone.n + 3))
    assert part.false_among_shown(0.2)[0] == pytest.approx(
        alone.false_among_shown(0.2)[0]
    )


def test_of_a_mean_the_share_alone_is_told(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.2, guarantee=ExpectedFalse()).fit(graphs, y)
    assert cf.calibration_.false_among_shown(0.2) is None
    assert cf.describe().endswith("of new answers")
    one = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(max_false=1)).fit(graphs, y)
    assert "contain more than 1 false claim" in one.describe()


# -- monitors and commands ------------------------------------------------------------


def test_a_monitor_counts_what_is_shown(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.2).fit(graphs[:99], y[:99])
    new, truth = graphs[200:300], y[200:300]
    masks = cf.predict(new)
    shown = np.array([mask.any() for mask in masks])
    wrong = np.array(
        [(row[mask] != 1).any() for row, mask in zip(truth, masks, strict=True)]
    )
    for monitor in (
        CoverageMonitor(cf).update(new, truth),
        CoverageMonitor(cf).update_losses(wrong, shown=shown),
    ):
        summary = monitor.summary()
        assert summary["shown"] == pytest.approx(shown.mean())
        assert summary["false_among_shown"] == pytest.approx(wrong[shown].mean())
        share = wrong[shown].mean()
        error = np.sqrt(share * (1 - share) / shown.sum())
        assert summary["false_among_shown_error"] == pytest.approx(error)
    unknown = CoverageMonitor(cf).update_losses(wrong).summary()
    assert np.isnan(unknown["shown"]) and np.isnan(unknown["false_among_shown"])


@pytest.fixture
def files(tmp_path):
    graphs, y = make_word_problems(300, random_state=0, return_X_y=True)
    write_jsonl(tmp_path / "labelled.jsonl", graphs[:150], y[:150])
    write_jsonl(tmp_path / "new.jsonl", graphs[150:])
    model = str(tmp_path / "filter.skops")
    labelled = str(tmp_path / "labelled.jsonl")
    assert (
        main(["fit", labelled, "-o", model, "--scorer", "logistic", "--show", "1"]) == 0
    )
    return tmp_path, model


def test_fit_prints_what_a_reader_meets_at_several_levels(files, capsys):
    folder, _ = files
    labelled = str(folder / "labelled.jsonl")
    again = str(folder / "again.skops")
    assert (
        main(["fit", labelled, "-o", again, "--scorer", "logistic", "--show", "1"]) == 0
    )
    said = capsys.readouterr().err
    assert "contain a false claim (" in said
    table = said[said.index("alpha   shown   false among shown") :].splitlines()
    levels = [line.split()[0] for line in table[1:6]]
    assert levels == ["0.02", "0.05", "0.1", "0.2", "0.3"]
    calibration = load(files[1]).calibration_
    rate, low, high = calibration.false_among_shown(0.2)
    assert f"{calibration.shown(0.2):.0%}" in table[4]
    assert f"{rate:.0%} ({low:.0%} to {high:.0%})" in table[4]
    assert "at most" not in table[0] and "(range)" in table[0]
    assert "90 %" in table[7]
    assert "Choose alpha before" in table[8]


def test_the_command_keeps_what_release_keeps(files, capsys):
    folder, model = files
    out = folder / "out.jsonl"
    new = str(folder / "new.jsonl")
    command = [
        "filter",
        model,
        new,
        "-o",
        str(out),
        "--guarantee",
        "shown",
        "--alpha",
        "0.2",
    ]
    assert main(command) == 0
    said = capsys.readouterr().err
    written = read_jsonl(out)
    expected = release(load(model), read_jsonl(new).graphs, 0.2)
    assert all((a == b).all() for a, b in zip(written.masks, expected, strict=True))
    n_shown = sum(bool(mask.any()) for mask in expected)
    assert f"{n_shown} of 150 answers are shown" in said
    assert "at most 20 % per batch" in said and "show=" in said
    assert "20 % divided by" in said
    assert written.metadata[0]["filtered"]["guarantee"] == "shown"


def test_the_command_refuses_two_answers_to_a_question(files, capsys):
    folder, model = files
    lines = (folder / "new.jsonl").read_text("utf-8").splitlines()
    (folder / "twice.jsonl").write_text("\n".join([*lines, lines[0]]), encoding="utf-8")
    out = folder / "out.jsonl"
    twice = str(folder / "twice.jsonl")
    command = ["filter", model, twice, "-o", str(out), "--guarantee", "shown"]
    assert main(command) == 2
    assert "one of 2 answers to the same question" in capsys.readouterr().err
    assert not out.exists()
    assert main([*command, "--one-per-question"]) == 0 and out.exists()


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


@pytest.mark.filterwarnings("ignore:only 0 of 30")
def test_if_no_answer_passes_nothing_is_shown():
    graphs = [ReasoningGraph([[1.0], [0.0]], ()) for _ in range(30)]
    guarantee = NoFalseClaim(show=0.2)
    labels = [[1, i % 2] for i in range(30)]
    cf = HardCF(0, alpha=0.3, guarantee=guarantee).fit(graphs, labels)
    assert cf.calibration_.n_passing == 0 and cf.calibration_.shown(0.3) == 0
