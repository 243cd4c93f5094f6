"""Chances in reports, pictures and commands; what lies outside the promise says so."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdcf import CoherentConformalFilter, HardCF, save
from skdcf.apps.cli import main
from skdcf.apps.reporting import write_report
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl
from skdcf.evaluation import ChanceReport, evaluate_error_probability
from skdcf.features import reasoning_features
from skdcf.plots import ChanceDisplay, ShownDisplay


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A filter with chances, one without, and new problems."""
    folder = tmp_path_factory.mktemp("chances")
    graphs, labels = make_word_problems(360, random_state=0, return_X_y=True)
    for name, scorer in [("stack", "stack"), ("plain", "linear")]:
        cf = CoherentConformalFilter(
            scorer, features=reasoning_features(), alpha=0.05, random_state=0
        ).fit(graphs[:180], labels[:180])
        save(cf, folder / f"{name}.skops")
        if name == "stack":
            np.save(folder / "masks.npy", np.array(cf.predict(graphs[180:]), object))
            np.save(folder / "chances.npy", cf.error_probability(graphs[180:]))
    write_jsonl(folder / "new.jsonl", graphs[180:], labels=labels[180:])
    return folder


def run(*arguments):
    return main([str(argument) for argument in arguments])


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_each_line_has_the_chance_of_its_text(folder, tmp_path, capsys):
    out = tmp_path / "kept.jsonl"
    assert not run("filter", folder / "stack.skops", folder / "new.jsonl", "-o", out)
    chances = np.load(folder / "chances.npy")
    rows = lines_of(out)
    assert len(rows) == len(chances)
    for row, chance in zip(rows, chances, strict=True):
        result = row["metadata"]["filtered"]
        assert result["alpha"] == 0.05
        if np.isnan(chance):
            assert "error_probability" not in result
        else:
            assert result["error_probability"] == pytest.approx(chance, abs=1e-4)
    assert np.isnan(chances).any()
    assert not np.isnan(chances).all()


def test_a_text_outside_the_promise_never_carries_the_level(folder, tmp_path, capsys):
    out = tmp_path / "kept.jsonl"
    command = ["filter", folder / "stack.skops", folder / "new.jsonl", "-o", out]
    assert not run(*command, "--at-least-one")
    masks = np.load(folder / "masks.npy", allow_pickle=True)
    n_outside = 0
    for row, mask in zip(lines_of(out), masks, strict=True):
        result = row["metadata"]["filtered"]
        assert sum(row["mask"]) == max(1, mask.sum())
        if mask.any():
            assert (
                row["mask"] == mask.astype(int).tolist() or row["mask"] == mask.tolist()
            )
            assert result["alpha"] == 0.05
            continue
        n_outside += 1
        assert result["guarantee"] == "none"
        assert "guarantee does not cover" in result["note"]
        assert result["text"].startswith("[not guaranteed; ")
        assert 0 < result["error_probability"] < 1
        assert "0.05" not in json.dumps(
            {k: v for k, v in result.items() if k not in ("text", "error_probability")}
        )
        assert not {"alpha", "claim_alpha"} & set(result)
    assert n_outside
    said = capsys.readouterr().err
    n_kept = sum(int(mask.sum()) for mask in masks)
    n_claims = sum(map(len, masks))
    assert f"{n_kept} of {n_claims} claims in 180 problems" in said
    assert f"All claims of {n_outside} problem" in said
    assert f"for {n_outside} problem" in said


@pytest.mark.parametrize("guarantee", ["answers", "shown"])
def test_plain_text_says_per_line_what_is_not_promised(folder, tmp_path, guarantee):
    out = tmp_path / "kept.txt"
    command = ["filter", folder / "stack.skops", folder / "new.jsonl", "-o", out]
    assert not run(*command, "--text", "--guarantee", guarantee)
    inside = out.read_text("utf-8").splitlines()
    assert not run(*command, "--text", "--guarantee", guarantee, "--at-least-one")
    texts = out.read_text("utf-8").splitlines()
    assert all(texts)
    for text, text_inside in zip(texts, inside, strict=True):
        assert (
            text == text_inside if text_inside else text.startswith("[not guaranteed")
        )


def test_a_scorer_without_hazards_is_refused_before_a_file_is_written(
    folder, tmp_path, capsys
):
    out = tmp_path / "kept.jsonl"
    command = ["filter", folder / "plain.skops", folder / "new.jsonl", "-o", out]
    assert run(*command, "--at-least-one")
    assert "must estimate error probabilities" in capsys.readouterr().err
    assert not out.exists()
    assert not run(*command)
    assert "error probabilities are not available" in capsys.readouterr().err
    assert all(
        "error_probability" not in row["metadata"]["filtered"] for row in lines_of(out)
    )


def test_evaluate_prints_and_draws_the_chances(folder, tmp_path, capsys):
    picture = tmp_path / "chances.svg"
    command = ["evaluate", folder / "stack.skops", folder / "new.jsonl"]
    assert not run(*command, "--picture", picture)
    assert "predicted" in capsys.readouterr().out
    assert "<svg" in picture.read_text("utf-8")
    assert not run(*command, "--json")
    chances = json.loads(capsys.readouterr().out)["chances"]
    assert 0 < chances["brier"] < 1
    command[1] = folder / "plain.skops"
    assert not run(*command, "--json")
    assert json.loads(capsys.readouterr().out)["chances"] is None
    assert run(*command, "--picture", tmp_path / "no.svg")
    assert not (tmp_path / "no.svg").exists()


@pytest.mark.long
def test_the_report_has_the_chances_and_a_picture_of_them(folder, tmp_path):
    data = read_jsonl(folder / "new.jsonl")
    from skdcf import load

    path = write_report(
        tmp_path / "r.html", load(folder / "stack.skops"), data.graphs, data.labels
    )
    page = path.read_text("utf-8")
    assert "predicted probability of a false claim" in page
    assert "% probability of a false claim: " in page
    plain = write_report(
        tmp_path / "p.html", load(folder / "plain.skops"), data.graphs, data.labels
    )
    assert "error probability is unknown" in plain.read_text("utf-8")


def test_a_report_counts_by_hand():
    chance = np.r_[np.full(40, 0.1), np.nan, np.full(40, 0.6)]
    wrong = np.zeros(81, bool)
    wrong[:10] = wrong[41:61] = True
    report = ChanceReport.from_predictions(wrong, chance, n_bins=2)
    np.testing.assert_allclose(report.stated, [0.1, 0.6])
    np.testing.assert_allclose(report.observed, [0.25, 0.5])
    assert report.n_texts.tolist() == [40, 40]
    assert report.n_empty == 1
    by_hand = (10 * 0.9**2 + 30 * 0.1**2 + 20 * 0.4**2 + 20 * 0.6**2) / 80
    assert report.brier == pytest.approx(by_hand)
    assert report.brier_constant == pytest.approx(0.375 * 0.625)
    assert report.calibration_error == pytest.approx((0.15 + 0.1) / 2)
    low, high = report.observed_interval.T
    assert (low < report.observed).all()
    assert (report.observed < high).all()


def test_answers_to_one_question_count_once():
    rng = np.random.default_rng(0)
    chance = np.round(rng.random(300), 1)
    wrong = rng.random(300) < chance
    once = ChanceReport.from_predictions(wrong, chance, n_bins=3)
    thrice = ChanceReport.from_predictions(
        np.repeat(wrong, 3),
        np.repeat(chance, 3),
        groups=np.repeat(np.arange(300), 3),
        n_bins=1,
    )
    assert thrice.brier == pytest.approx(once.brier)
    assert thrice.brier_error == pytest.approx(once.brier_error)
    one_bin = ChanceReport.from_predictions(wrong, chance, n_bins=1)
    np.testing.assert_allclose(thrice.observed, one_bin.observed)
    np.testing.assert_allclose(
        thrice.observed_interval, one_bin.observed_interval, atol=0.01
    )


def test_chances_that_are_right_show_about_the_distance_that_is_expected():
    rng = np.random.default_rng(1)
    reports = []
    for _ in range(200):
        chance = rng.uniform(0.1, 0.4, size=1000)
        wrong = rng.random(1000) < chance
        reports.append(ChanceReport.from_predictions(wrong, chance))
    seen = np.mean([report.calibration_error for report in reports])
    expected = np.mean([report.calibration_error_expected for report in reports])
    assert abs(seen - expected) < 0.003
    gains = [report.brier - report.brier_constant for report in reports]
    errors = np.mean([report.brier_error for report in reports])
    assert np.std(gains) == pytest.approx(errors, rel=0.2)


def test_without_any_text_nothing_is_known_and_it_says_so():
    report = ChanceReport.from_predictions(np.zeros(3, bool), np.full(3, np.nan))
    assert report.n_empty == 3
    assert "no text is shown" in str(report)


@pytest.mark.parametrize(
    ("wrong", "chance", "message"),
    [
        ([True, False], [0.5], r"chance.*1"),
        ([True], [1.2], "chance must contain probabilities"),
    ],
)
def test_numbers_that_cannot_be_are_refused(wrong, chance, message):
    with pytest.raises(ValueError, match=message):
        ChanceReport.from_predictions(np.array(wrong), np.array(chance))


@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_displays_draw_what_the_reports_hold():
    rng = np.random.default_rng(2)
    chance = rng.random(400)
    wrong = rng.random(400) < chance
    display = ChanceDisplay.from_predictions(wrong, chance, n_bins=5)
    report = ChanceReport.from_predictions(wrong, chance, n_bins=5)
    (container,) = display.ax_.containers
    np.testing.assert_allclose(container.lines[0].get_xdata(), report.stated)
    np.testing.assert_allclose(container.lines[0].get_ydata(), report.observed)
    ends = np.array(container.lines[2][0].get_segments())
    np.testing.assert_allclose(ends[:, :, 1], report.observed_interval)

    graphs, labels = make_word_problems(300, random_state=0, return_X_y=True)
    columns = reasoning_features().fit_transform(graphs)
    cf = HardCF(
        "graph_depth" if "graph_depth" in columns.feature_names else 0, alpha=0.2
    )
    cf.fit(columns[:200], labels[:200])
    with pytest.raises(ValueError, match="FeatureScorer"):
        evaluate_error_probability(
            cf, columns[200:], labels[200:], labels[200:], alpha=0.1
        )
    levels = [0.1, 0.3, 0.9]
    display = ShownDisplay.from_estimator(cf, columns[200:], labels[200:], levels)
    (container,) = display.ax_.containers
    shown = display.report[""].shown
    assert (shown > 0).tolist() == [False, False, True]  # NaN is not drawn
    np.testing.assert_allclose(container.lines[0].get_xdata(), shown[shown > 0])
    plt.close("all")
