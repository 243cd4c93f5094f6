"""Where people judged some answers and a model others, people's calibrate."""

import copy
import warnings

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph, load
from skdcf.apps.cli import main
from skdcf.apps.labelling import next_to_label
from skdcf.datasets import write_jsonl
from skdcf.estimators import calibration_scores, fit_levels, seen
from skdcf.evaluation import CalibratedSearch, compare_filters
from skdcf.exceptions import CalibrationWarning, GuaranteeWarning, LabelWarning
from skdcf.guarantees import ExpectedFalse
from skdcf.monitoring import CoverageMonitor
from skdcf.scorers import ClassifierScorer, Scorer

HUMAN = {"kind": "human", "by": "ann", "when": None, "version": None}
MODEL = {"kind": "model", "by": "judge", "when": None, "version": None}


def draw(rng, n, who, first=0, n_claims=3):
    """Answers of a law in which a judge overlooks what the scores overlook."""
    graphs, labels, truth = [], [], []
    for i in range(n):
        score = rng.random((n_claims, 1))
        true = rng.random(n_claims) >= 0.35 * (1 - score[:, 0])
        verdict = true | (score[:, 0] > 0.6)  # errors of high scores pass for true
        metadata = {"label_sources": [who] * n_claims}
        if who is HUMAN:
            metadata["sampling"] = "random"
        graphs.append(
            ReasoningGraph(
                score,
                (),
                problem=f"question {who['kind']} {first + i}",
                metadata=metadata,
            )
        )
        labels.append((true if who is HUMAN else verdict).astype(int))
        truth.append(true.astype(int))
    return graphs, labels, truth


def missed(cf, rng):
    graphs, _, truth = draw(rng, 300, HUMAN, first=10_000)
    masks = cf.predict(graphs)
    pairs = zip(masks, truth, strict=True)
    return np.mean([bool((row[mask] == 0).any()) for mask, row in pairs])


def test_the_share_of_a_models_labels_and_its_names_are_noted():
    """Only judged claims count, and neither people nor claims without a source are models."""
    other = {**MODEL, "by": "critic"}
    sources = [MODEL] * 3 + [other] + [HUMAN] * 5 + [None] * 7 + [MODEL] * 4
    labels = [1, 0, 1, 1] + [1, 0, 1, 0, 1] + [1] * 7 + [-1] * 4
    graphs = [
        ReasoningGraph(
            np.linspace(0, 1, 20)[:, None], (), metadata={"label_sources": sources}
        )
    ]
    cf = HardCF(0)
    few, models = pytest.warns(CalibrationWarning), pytest.warns(LabelWarning)
    with few, models as caught:
        cf.fit(graphs, [labels])
    assert any("critic, judge" in str(warning.message) for warning in caught)
    assert cf.provenance_["judged"] == [4 / 16]
    assert cf.provenance_["judges"] == ["critic", "judge"]
    by_people = [graphs[0].replace(metadata={"label_sources": [HUMAN] * 20})]
    with pytest.warns(CalibrationWarning):
        cf.fit(by_people, [np.abs(labels)])
    assert cf.provenance_["judged"] == [0] and cf.provenance_["judges"] == []


def test_peoples_answers_calibrate_and_the_models_train():
    rng = np.random.default_rng(0)
    people, people_labels, _ = draw(rng, 60, HUMAN)
    judged, judged_labels, _ = draw(rng, 90, MODEL)
    cf = HardCF(ClassifierScorer(), alpha=0.1, random_state=0)
    cf.fit([*people, *judged], [*people_labels, *judged_labels])
    assert cf.n_calibration_ == 60
    trained, calibrated = seen(cf, [*people, *judged])
    assert not trained[:60].any() and trained[60:].all()
    assert calibrated[:60].all() and not calibrated[60:].any()
    assert "judge" not in cf.describe()


@pytest.mark.long
def test_the_promise_holds_by_what_people_call_false():
    rng = np.random.default_rng(1)
    n_fits, by_people, by_model = 40, [], []
    for _ in range(n_fits):
        people, people_labels, _ = draw(rng, 39, HUMAN)
        judged, judged_labels, _ = draw(rng, 60, MODEL)
        scorer = ClassifierScorer()
        mixed = HardCF(scorer, alpha=0.1, random_state=0).fit(
            [*people, *judged], [*people_labels, *judged_labels]
        )
        by_people.append(missed(mixed, rng))
        with pytest.warns(LabelWarning, match="--people FILE"):
            alone = HardCF(scorer, alpha=0.1, random_state=0).fit(judged, judged_labels)
        by_model.append(missed(alone, rng))
    error = np.std(by_people, ddof=1) / np.sqrt(n_fits)
    assert np.mean(by_people) <= 0.1 + 3 * error
    # The law can tell both apart: by the model's labels some .17 are missed, six errors away.
    assert np.mean(by_model) > 0.15


def test_a_question_that_has_both_calibrates_and_trains_nothing():
    rng = np.random.default_rng(2)
    people, people_labels, _ = draw(rng, 30, HUMAN)
    judged, judged_labels, _ = draw(rng, 40, MODEL)
    again = [
        g.replace(problem=p.problem) for g, p in zip(judged[:10], people, strict=False)
    ]
    cf = HardCF(ClassifierScorer(), alpha=0.1, random_state=0).fit(
        [*people, *again, *judged[10:]], [*people_labels, *judged_labels]
    )
    assert cf.n_calibration_ == 30
    assert not seen(cf, again)[0].any() and seen(cf, judged[10:])[0].all()


def test_a_claim_that_only_the_model_judged_counts_as_false_among_peoples():
    rng = np.random.default_rng(3)
    people = draw(rng, 40, HUMAN)[0]
    judged, judged_labels, _ = draw(rng, 60, MODEL)
    half = [
        g.replace(
            metadata={"label_sources": [HUMAN, MODEL, None], "sampling": "random"}
        )
        for g in people
    ]
    ones = [np.ones(3, dtype=int) for _ in people]
    unknown = [np.array([1, -1, -1]) for _ in people]
    scorer = ClassifierScorer()

    def fit(labels):
        cf = HardCF(scorer, alpha=0.1, random_state=0)
        return cf.fit([*half, *judged], [*labels, *judged_labels])

    assert np.array_equal(
        fit(ones).nonconformity_scores_, fit(unknown).nonconformity_scores_
    )
    assert np.isfinite(fit(ones).nonconformity_scores_).all()


@pytest.mark.parametrize("kind", ["of a model", "reviewed"])
def test_an_answer_without_a_question_that_is_there_twice_is_refused(kind):
    """It trained too, and a tree that learns by heart missed .44 and .49 for .1."""
    rng = np.random.default_rng(0)

    def answers(numbers, source, sampling):
        metadata = {"label_sources": [source] * 3}
        if sampling is not None:
            metadata["sampling"] = sampling
        return [
            ReasoningGraph(
                features[i],
                (),
                claims=[f"claim {j} of answer {i}" for j in range(3)],
                metadata=metadata,
            )
            for i in numbers
        ]

    features = rng.random((2100, 3, 2))
    labels = (rng.random((2100, 3)) < 0.75).astype(int)
    source, drawn = (MODEL, None) if kind == "of a model" else (HUMAN, "review")
    every, blind = np.arange(100), np.arange(40)
    cf = HardCF(ClassifierScorer(DecisionTreeClassifier(random_state=0)), alpha=0.1)
    cf.set_params(random_state=0)
    X = [*answers(every, source, drawn), *answers(blind, HUMAN, "random")]
    y = [*labels[every], *labels[blind]]
    with pytest.raises(ValueError, match=r"copies.*question"):
        cf.fit(X, y)
    cf.fit(X, y, groups=np.r_[every, blind])
    trained, calibrated = seen(cf, answers(every, None, None), every)
    assert not (trained & calibrated).any() and calibrated[:40].any()
    assert trained[40:].all()
    masks = cf.predict(list(answers(range(100, 2100), None, None)))
    wrong = [
        (row[mask] == 0).any() for row, mask in zip(labels[100:], masks, strict=True)
    ]
    assert np.mean(wrong) < 0.2


def test_copies_without_a_question_are_noticed_where_they_train_and_calibrate():
    rng = np.random.default_rng(0)
    graphs = [
        ReasoningGraph(
            rng.random((2, 1)), (), claims=[f"claim {j} of {i}" for j in "ab"]
        )
        for i in range(60)
    ]
    labels = list((rng.random((60, 2)) < 0.7).astype(int))
    cf = HardCF(ClassifierScorer(), random_state=0)
    with pytest.raises(ValueError, match="groups"):
        cf.fit([*graphs, *graphs], [*labels, *labels])
    said = set()
    for i in range(20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GuaranteeWarning)
            try:
                seeded = HardCF(ClassifierScorer(), random_state=i)
                seeded.fit([*graphs, graphs[i]], [*labels, labels[i]])
            except ValueError as error:
                assert "groups" in str(error)
                said.add("both calibrate")
        said |= {
            "one trains"
            for w in caught
            if "copies of training answers" in str(w.message)
        }
    assert said == {"both calibrate", "one trains"}
    # None of these leaves a doubt, so that nothing is said.
    cf.fit(graphs, labels)
    cf.fit([*graphs, *graphs], [*labels, *labels], groups=np.tile(np.arange(60), 2))
    cf.fit([*graphs, *graphs], [*labels, *labels], groups=False)
    asked = [g.replace(problem=f"question {i}") for i, g in enumerate(graphs)]
    cf.fit([*asked, *asked], [*labels, *labels])


def test_answers_that_look_alike_are_no_copies_where_that_is_said():
    """Left out of training, they missed what a scorer trusts that knows what is usual."""

    class Usual(ClassifierMixin, BaseEstimator):
        """Trusts rows that it has seen."""

        def fit(self, X, y):
            self.classes_, self.seen_ = np.array([0, 1]), set(X[:, 0])
            return self

        def predict_proba(self, X):
            trusted = np.array([0.9 if x in self.seen_ else 0.1 for x in X[:, 0]])
            return np.column_stack([1 - trusted, trusted])

    missed_shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def answers(n, source, rng=rng):
            metadata = {"label_sources": [source], "sampling": "random"}
            if source is MODEL:
                del metadata["sampling"]
            numbers = rng.integers(0, 60, n).astype(float)
            graphs = [ReasoningGraph([[x]], (), metadata=metadata) for x in numbers]
            return graphs, list((rng.random((n, 1)) < 0.7).astype(int))

        people, judged, new = (
            answers(39, HUMAN),
            answers(150, MODEL),
            answers(200, HUMAN),
        )
        X, y = [*people[0], *judged[0]], [*people[1], *judged[1]]
        cf = HardCF(ClassifierScorer(Usual()), alpha=0.1, random_state=0)
        if seed == 0:
            with pytest.raises(ValueError, match=r"different.*answers"):
                cf.fit(X, y)
        cf.fit(X, y, groups=False)
        masks = cf.predict(new[0])
        pairs = zip(masks, new[1], strict=True)
        missed_shares.append(np.mean([(row[mask] == 0).any() for mask, row in pairs]))
    assert np.mean(missed_shares) < 0.1 + 3 * np.std(missed_shares) / np.sqrt(40)


def test_answers_that_nobody_began_do_not_calibrate():
    rng = np.random.default_rng(4)
    people, people_labels, _ = draw(rng, 60, HUMAN)
    judged, judged_labels, _ = draw(rng, 60, MODEL)
    passed_over = [
        g.replace(metadata={"label_sources": [None] * 3, "sampling": "random"})
        for g in people[:20]
    ]
    nothing = [np.full(3, -1)] * 20
    cf = HardCF(ClassifierScorer(), alpha=0.1, random_state=0).fit(
        [*passed_over, *people[20:], *judged],
        [*nothing, *people_labels[20:], *judged_labels],
    )
    assert cf.n_calibration_ == 40


def test_people_calibrate_alone_where_nothing_is_trained():
    """With the model's verdicts next to them .15 was missed for .1."""
    rng = np.random.default_rng(6)
    people, people_labels, _ = draw(rng, 39, HUMAN)
    judged, judged_labels, _ = draw(rng, 60, MODEL)
    X, y = [*judged, *people], [*judged_labels, *people_labels]
    cf = HardCF(0, alpha=0.1).fit(*draw(rng, 30, HUMAN, first=500)[:2])
    expected = cf.calibrate(people, people_labels).nonconformity_scores_
    with pytest.warns(LabelWarning, match="39 answers judged by people"):
        cf.calibrate(X, y)
    assert np.array_equal(cf.nonconformity_scores_, expected)
    with pytest.warns(LabelWarning, match="other 60 answers"):
        part = cf.calibration_part(X, y)
    assert np.array_equal(part.rows, np.arange(60, 99))
    cf.calibrate_parts([part])
    assert np.array_equal(cf.nonconformity_scores_, expected)
    assert "judge" not in cf.describe()

    # Who asks which answers to judge next is told rows of all of them.
    begun = [np.array([*row[:2], -1]) for row in people_labels]
    with pytest.warns(LabelWarning, match=r"\d+ answers judged by people"):
        asked = next_to_label(cf, X, [*judged_labels, *begun])
    assert asked and all(problem.problem >= 60 for problem in asked)


def test_levels_share_the_split_and_auto_learns_from_the_model():
    rng = np.random.default_rng(5)
    people, people_labels, _ = draw(rng, 50, HUMAN)
    judged, judged_labels, _ = draw(rng, 120, MODEL)
    cf = CoherentConformalFilter(random_state=0)
    X, y = [*people, *judged], [*people_labels, *judged_labels]
    filters = fit_levels(cf, X, y, [0.05, 0.1, 0.2]).values()
    assert [f.n_calibration_ for f in filters] == [50, 50, 50]
    assert all(seen(f, judged)[0].all() for f in filters)


def test_what_does_not_fit_is_said():
    rng = np.random.default_rng(6)
    people, people_labels, _ = draw(rng, 20, HUMAN)
    judged, judged_labels, _ = draw(rng, 30, MODEL)
    X, y = [*people, *judged], [*people_labels, *judged_labels]
    with pytest.raises(ValueError, match=r"calibration_size.*0\.5.*20"):
        HardCF(ClassifierScorer(), calibration_size=0.5).fit(X, y)
    with pytest.warns(LabelWarning, match=r"20 answers judged by people.*30"):
        assert HardCF(0, alpha=0.1).fit(X, y).n_calibration_ == 20
    with pytest.warns(CalibrationWarning, match="49"):
        HardCF(ClassifierScorer(), alpha=0.02).fit(X, y)
    same = [
        g.replace(problem=p.problem)
        for g, p in zip(judged, [*people, *people], strict=False)
    ]
    with pytest.raises(ValueError, match=r"1 problem.*training"):
        HardCF(ClassifierScorer()).fit([*people, *same], y)


def test_marks_of_the_page_on_every_line_change_nothing():
    """skdcf label writes the mark on each line, those that a model judged included."""
    rng = np.random.default_rng(7)
    people, people_labels, _ = draw(rng, 40, HUMAN)
    judged, judged_labels, _ = draw(rng, 60, MODEL)
    unjudged = [
        g.replace(metadata={"sampling": "random"}) for g in draw(rng, 9, HUMAN, 99)[0]
    ]
    marked = [g.replace(metadata={**g.metadata, "sampling": "random"}) for g in judged]
    X = [*unjudged[:4], *people, *unjudged[4:], *marked]
    y = [*[np.full(3, -1)] * 4, *people_labels, *[np.full(3, -1)] * 5, *judged_labels]
    cf = HardCF(ClassifierScorer(), alpha=0.1, random_state=0).fit(X, y)
    assert cf.n_calibration_ == 40
    assert seen(cf, people)[1].all() and not seen(cf, people)[0].any()
    assert seen(cf, marked)[0].all() and not seen(cf, marked)[1].any()


def test_the_command_takes_two_files(tmp_path, capsys):
    rng = np.random.default_rng(8)
    people, people_labels, _ = draw(rng, 45, HUMAN)
    judged, judged_labels, _ = draw(rng, 70, MODEL)
    plain = [g.replace(metadata=None) for g in people]
    write_jsonl(tmp_path / "people.jsonl", plain, people_labels)
    write_jsonl(
        tmp_path / "judged.jsonl",
        [g.replace(metadata=None) for g in judged],
        judged_labels,
    )
    model = tmp_path / "model.skops"
    command = ["fit", tmp_path / "judged.jsonl", "--people", tmp_path / "people.jsonl"]
    command += ["--show", "1"]
    assert main([*map(str, command), "-o", str(model), "--scorer", "logistic"]) == 0
    said = capsys.readouterr().err
    assert "45 calibration answers" in said and "judge model" not in said
    cf = load(model)
    assert seen(cf, plain)[1].all() and not seen(cf, plain)[0].any()


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.LabelWarning")
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_a_search_and_a_comparison_say_what_to_pass_them():
    rng = np.random.default_rng(0)
    graphs, labels, _ = draw(rng, 30, HUMAN)
    more, verdicts, _ = draw(rng, 60, MODEL)
    search = GridSearchCV(HardCF(0, alpha=0.3), {"random_state": [0]}, cv=2)
    wanted = r"calibration_size.*people labelled.*answers"
    with pytest.raises(ValueError, match=wanted):
        CalibratedSearch(search, calibration_size=0.5, random_state=0).fit(
            graphs + more, labels + verdicts
        )
    with pytest.raises(ValueError, match=wanted):
        compare_filters(
            {"a": search},
            graphs + more,
            labels + verdicts,
            alphas=[0.3],
            cv=2,
        )


@pytest.mark.parametrize(("n_unjudged", "n_calibrate"), [(0, 25), (10, 20)])
def test_empty_answers_of_people_count_where_all_others_were_begun(
    tmp_path, n_unjudged, n_calibrate
):
    rng = np.random.default_rng(9)
    people, people_labels, _ = draw(rng, 20 + n_unjudged, HUMAN)
    judged, judged_labels, _ = draw(rng, 40, MODEL)
    for i in range(n_unjudged):
        people_labels[i] = np.full(3, -1)
    empty = [
        ReasoningGraph(np.empty((0, 1)), (), problem=f"empty {i}") for i in range(5)
    ]
    plain = [g.replace(metadata=None) for g in people]
    no_labels = [np.empty(0, dtype=int)] * 5
    write_jsonl(
        tmp_path / "people.jsonl", [*plain, *empty], [*people_labels, *no_labels]
    )
    write_jsonl(
        tmp_path / "judged.jsonl",
        [g.replace(metadata=None) for g in judged],
        judged_labels,
    )
    model = tmp_path / "model.skops"
    command = ["fit", tmp_path / "judged.jsonl", "--people", tmp_path / "people.jsonl"]
    command += ["--show", "1"]
    assert main([*map(str, command), "-o", str(model), "--scorer", "logistic"]) == 0
    assert load(model).n_calibration_ == n_calibrate


# --- judged in separate parts, in separate calls, and copies


def one_claim(rng, n, who, first=0):
    """Answers of one claim; a model overlooks what the score overlooks."""
    return draw(rng, n, who, first=first, n_claims=1)[:2]


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    graphs, labels = one_claim(rng, 60, HUMAN, first=5_000)
    plain = [graph.replace(metadata=None) for graph in graphs]
    return HardCF(0, alpha=0.1).fit(plain, labels)


def test_parts_calibrate_as_one_file_of_the_same_answers(scored):
    rng = np.random.default_rng(1)
    people, judged = one_claim(rng, 60, HUMAN), one_claim(rng, 80, MODEL)
    with pytest.warns(LabelWarning, match="60 answers judged by people"):
        alone = copy.deepcopy(scored).calibrate(
            [*people[0], *judged[0]], [*people[1], *judged[1]]
        )
    with pytest.warns(LabelWarning, match="model assigned"):
        parts = [scored.calibration_part(*people), scored.calibration_part(*judged)]
    for order in (1, -1):
        with pytest.warns(LabelWarning, match=r"60 answers judged by people.*other 80"):
            joined = copy.deepcopy(scored).calibrate_parts(parts[::order])
        assert (joined.nonconformity_scores_ == alone.nonconformity_scores_).all()
        assert joined.describe() == alone.describe()
        assert joined.provenance_["judged_by"] == ["model", "person"]


def test_of_a_question_with_both_the_answer_of_a_person_calibrates(scored):
    rng = np.random.default_rng(2)
    graphs, labels = one_claim(rng, 60, HUMAN)
    other, _ = one_claim(rng, 60, MODEL)
    other = [g.replace(problem=h.problem) for g, h in zip(other, graphs, strict=True)]
    with pytest.warns(LabelWarning, match="model assigned"):
        parts = [
            scored.calibration_part(other, [[0]] * 60),
            scored.calibration_part(graphs, labels),
        ]
    with pytest.warns(LabelWarning, match="other 60"):
        both = copy.deepcopy(scored).calibrate_parts(parts)
    alone = copy.deepcopy(scored).calibrate(graphs, labels)
    assert (both.nonconformity_scores_ == alone.nonconformity_scores_).all()


def test_a_models_verdicts_in_peoples_answers_count_until_a_model_judged_others(scored):
    """A person judged the first of two claims, and a model the second."""
    rng = np.random.default_rng(3)
    graphs, labels = draw(rng, 60, HUMAN, n_claims=2)[:2]
    mixed = [
        g.replace(metadata={**g.metadata, "label_sources": [HUMAN, MODEL]})
        for g in graphs
    ]
    judged = one_claim(rng, 30, MODEL)
    unknown = [np.array([row[0], -1]) for row in labels]
    with pytest.warns(LabelWarning):
        parts = [
            scored.calibration_part(mixed, labels),
            scored.calibration_part(*judged),
        ]
        as_labelled = copy.deepcopy(scored).calibrate_parts(parts[:1])
        strict = copy.deepcopy(scored).calibrate_parts(parts)
    plain = [g.replace(metadata=None) for g in graphs]
    for cf, expected in ((as_labelled, labels), (strict, unknown)):
        scores = np.sort(calibration_scores(scored, plain, expected))
        assert np.isin(cf.nonconformity_scores_, scores).all()
    assert strict.threshold(0.3) < as_labelled.threshold(0.3)


@pytest.mark.parametrize("guarantee", [None, ExpectedFalse(bound=0.1)], ids=str)
def test_a_monitor_counts_people_alone_once_a_person_has_judged(guarantee):
    """With a stricter model five of six streams gave a false alarm."""
    rng = np.random.default_rng(5)
    people = one_claim(rng, 99, HUMAN)
    cf = HardCF(0, alpha=0.1, guarantee=guarantee)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)
        cf.fit(*people)
        monitor, alone = CoverageMonitor(cf), CoverageMonitor(cf)
        for i in range(0, 60, 3):
            graphs, labels = one_claim(rng, 3, HUMAN, first=1000 + i)
            strict, _ = one_claim(rng, 3, MODEL, first=1000 + i)
            monitor.update(strict, [[0]] * 3).update(graphs, labels)
            alone.update(graphs, labels)
        assert monitor.summary() == alone.summary()
        assert not monitor.alarm

        # Nobody knows who judged the calibration answers: the model counts at first.
        plain = [graph.replace(metadata=None) for graph in people[0]]
        monitor = CoverageMonitor(cf.fit(plain, people[1]))
        monitor.update(*one_claim(rng, 30, MODEL))
        assert monitor.n_calibrations_ == 1 and monitor.summary()["n_problems"] == 30
        for first in (2000, 2001):
            monitor.update(*one_claim(rng, 1, HUMAN, first=first))
            assert monitor.n_calibrations_ == 2  # its wealth begins again
        monitor.update(*one_claim(rng, 30, MODEL, first=100))
        assert monitor.summary()["n_problems"] == 32


def test_a_monitor_counts_a_claim_that_only_the_model_judged_as_false():
    """Among answers that people judged, once a model's verdicts no longer count."""
    rng = np.random.default_rng(6)
    people = one_claim(rng, 99, HUMAN)
    guarantee = ExpectedFalse(bound=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)
        cf = HardCF(0, guarantee=guarantee).fit(*people)
        by_model, _ = one_claim(rng, 20, MODEL, first=1000)
        half = [
            ReasoningGraph(
                [[1.0], [1.0]],
                (),
                problem=f"half {i}",
                metadata={"label_sources": [HUMAN, MODEL], "sampling": "random"},
            )
            for i in range(20)
        ]
        assert all(mask.all() for mask in cf.predict(half))
        monitor = CoverageMonitor(cf).update(
            [*by_model, *half], [[1]] * 20 + [[1, 1]] * 20
        )
        without_model = CoverageMonitor(cf).update(half, [[1, -1]] * 20)
    assert monitor.summary() == without_model.summary()
    assert monitor.summary()["n_problems"] == 20


def texts(n, word="claim", **more):
    rng = np.random.default_rng(7)
    return [
        ReasoningGraph([[x]], (), claims=[f"{word} {i}"], **more)
        for i, x in enumerate(rng.random(n))
    ]


def test_equal_texts_without_a_question_calibrate_twice_only_if_that_is_said(scored):
    graphs, labels = texts(12), [[1], [0]] * 6
    twice, both = [*graphs, *graphs[:3]], [*labels, *labels[:3]]
    groups = [*range(12), 0, 1, 2]
    part = scored.calibration_part(graphs, labels)
    again = scored.calibration_part(graphs[:3], labels[:3])
    with pytest.raises(ValueError, match=r"3 of 15.*groups"):
        scored.calibrate(twice, both)
    with pytest.raises(ValueError, match=r"3 of 15.*groups"):
        scored.calibrate_parts([part, again])
    with pytest.raises(ValueError, match=r"3 of 15.*groups"):
        HardCF(0, alpha=0.2).fit(twice, both)

    cf = copy.deepcopy(scored).calibrate(twice, both, groups=groups)
    assert cf.n_calibration_ + len(cf.unused_indices_) == 12
    alone = (
        copy.deepcopy(scored).set_params(alpha=0.5).calibrate(twice, both, groups=False)
    )
    assert alone.n_calibration_ + len(alone.unused_indices_) == 15
    asked = [g.replace(problem=f"{i}?") for i, g in enumerate(graphs)]
    copy.deepcopy(scored).calibrate([*asked, *asked[:3]], both)
    # Rows of a table are never copies, nor are answers without claims.
    HardCF(0, alpha=0.2).fit(np.ones((30, 1)), [0, 1] * 15)
    empty = ReasoningGraph(np.empty((0, 1)), (), claims=[])
    scored.calibrate([*graphs, empty, empty], [*labels, [], []])


def test_several_answers_to_one_question_are_told_of_once(scored):
    graphs = texts(10)
    asked = [g.replace(problem=f"What is {i // 7}?") for i, g in enumerate(graphs)]
    for decide in (scored.predict, scored.filter):
        with pytest.warns(GuaranteeWarning, match="7 answers to 1 question") as told:
            decide(asked[:8])
        assert len(told) == 1
    with pytest.warns(GuaranteeWarning, match="10 answers to 2 questions"):
        scored.predict(asked)
    named = [g.replace(metadata={"group": i // 2}) for i, g in enumerate(graphs)]
    with pytest.warns(GuaranteeWarning, match="10 answers to 5 questions"):
        scored.predict(named)
    # One each, and no question at all.
    scored.predict(asked[::7])
    scored.predict(graphs)


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
