"""Filters in files: the same predictions, no code, and a reason for every refusal."""

import hashlib
import json
import re
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import skdcf
from skdcf import (
    CoherentConformalFilter,
    HardCF,
    XGBoostCF,
    load_threshold,
    save_threshold,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import CalibratedSearch
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.monitoring import CoverageMonitor
from skdcf.persistence import FORMAT
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import FunctionScorer, MLPModel, Scorer
from skdcf.training import LBFGS, SoftTraining

pytest.importorskip("skops")
GRAPHS, LABELS = make_reasoning_graphs(120, random_state=0, return_X_y=True)
IS_INNER = np.append(GRAPHS.position[1:] > 0, False)
GRAPHS = GRAPHS.replace(metadata=[{"kind": i % 2} for i in range(120)])

FILTERS = {
    "linear": CoherentConformalFilter("linear", random_state=np.random.RandomState(3)),
    "mlp": CoherentConformalFilter(
        MLPModel((3,)),
        training=SoftTraining(LBFGS(max_iter=5)),
        ties="jitter",
        random_state=1,
    ),
    "hard": HardCF(),
    "histogram": HardCF(HistGradientBoostingClassifier(max_iter=3), random_state=0),
    "pipeline": HardCF(
        make_pipeline(PolynomialFeatures(), RandomForestClassifier(2, random_state=0)),
        random_state=0,
    ),
    "per group": HardCF(guarantee=NoFalseClaim(by="kind", delta=0.1)),
    "trees": XGBoostCF(n_estimators=3, random_state=0),
}


def fitted(name):
    if name == "trees":
        pytest.importorskip("xgboost")
    return clone(FILTERS[name]).fit(GRAPHS, LABELS)


def assert_same_filter(back, cf):
    for method in ("predict", "path_risk", "predict_alpha"):
        rows = (getattr(each, method)(GRAPHS) for each in (back, cf))
        assert all(map(np.array_equal, *rows))
    assert np.array_equal(back.threshold_, cf.threshold_, equal_nan=True)
    one, other = (re.sub("0x[0-9A-F]+", "", str(each)) for each in (back, cf))
    assert one == other


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_same_predictions(name, tmp_path):
    cf = fitted(name)
    assert_same_filter(skdcf.load(skdcf.save(cf, tmp_path / "cf.skops")), cf)


def test_refused_at_saving(tmp_path):
    path = tmp_path / "cf"
    with pytest.raises(ValueError, match=r"saved.*lambda"):
        skdcf.save(HardCF(lambda b: -b.depth).fit(GRAPHS, LABELS), path)
    with pytest.raises(NotFittedError):
        skdcf.save(HardCF(), path)
    with pytest.raises(TypeError, match="'a'"):
        skdcf.save({"a": 1}, path)


class OwnScorer(Scorer):
    """A scorer of a user."""

    def confidence(self, batch):
        return -batch.depth.astype(float)


def by_depth(batch):
    return -batch.depth.astype(float)


@pytest.mark.parametrize(
    ("scorer", "own"), [(OwnScorer(), OwnScorer), (FunctionScorer(by_depth), by_depth)]
)
def test_what_users_wrote_is_loaded_only_when_trusted(
    scorer, own, tmp_path, monkeypatch
):
    cf = HardCF(scorer).fit(GRAPHS, LABELS)
    path = skdcf.save(cf, tmp_path / "cf")
    name = f"{own.__module__}.{own.__name__}"
    for trusted in ((), ["os.system"]):
        with pytest.raises(ValueError, match=f"{name}.*trust"):
            skdcf.load(path, trusted=trusted)
    assert_same_filter(skdcf.load(path, trusted=[name]), cf)
    monkeypatch.setattr(type(scorer), "__setstate__", lambda *_: {}["width"])
    with pytest.raises(ValueError, match="KeyError: 'width'"):
        skdcf.load(path, trusted=[name])


def write_parts(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def saved(tmp_path):
    return skdcf.save(fitted("hard"), tmp_path / "cf.skops")


def test_what_is_not_a_saved_filter(saved, tmp_path):
    with pytest.raises(FileNotFoundError):
        skdcf.load(tmp_path / "no")
    content = saved.read_bytes()
    for part in (b"", b"hello", content[: len(content) // 2], content[:-20]):
        saved.write_bytes(part)
        with pytest.raises(ValueError, match=r"written by skdcf\.save"):
            skdcf.load(saved)


def test_every_changed_byte_is_noticed_or_harmless(saved):
    content, cf = saved.read_bytes(), skdcf.load(saved)
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.integers(len(content), size=60):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        saved.write_bytes(changed)
        try:
            back = skdcf.load(saved)
        except ValueError as error:
            assert "cannot be loaded" in str(error)
            noticed += 1
        else:  # a date in the headers of the archive, say
            assert_same_filter(back, cf)
    assert noticed > 30


def test_stored_names_belong_to_the_format(tmp_path):
    """Increase FORMAT if a stored class, attribute or key is renamed, and update the hash."""
    names = set()

    def visit(node):
        for child in node.values() if isinstance(node, dict) else node:
            if isinstance(child, (dict, list)):
                visit(child)
        if isinstance(node, dict) and node.get("__class__") == "dict":
            names.add(tuple(sorted(node["content"])))
        if isinstance(node, dict) and node.get("__module__", "").startswith("skdcf"):
            names.add((node["__module__"], node["__class__"]))

    each = {name: fitted(name) for name in ("hard", "per group")}
    each["auto"] = CoherentConformalFilter(
        MLPModel(),
        relaxation=GridRelaxation(),
        guarantee=ExpectedFalse(show="auto"),
    ).fit(GRAPHS, LABELS)
    chains = GRAPHS.replace_edges([(i, i + 1) for i in np.flatnonzero(IS_INNER)])
    each["all"] = CoherentConformalFilter("linear", calibration_size="all").fit(
        chains, LABELS
    )
    each["monitor"] = CoverageMonitor().fit(each["hard"])
    for name, cf in each.items():
        path = skdcf.save(cf, tmp_path / name)
        visit(json.loads(parts_of(path)["schema.json"]))
    digest = hashlib.sha256(repr(sorted(names)).encode()).hexdigest()
    assert (FORMAT, digest[:8]) == (13, "85ef0db0")


@pytest.mark.parametrize("name", ["_record", "precision", "alternatives", "edges"])
def test_a_file_without_what_new_problems_are_compared_with_is_refused(name, saved):
    parts = parts_of(saved)
    schema = parts["schema.json"].decode().replace(f'"{name}"', '"other"')
    write_parts(saved, parts | {"schema.json": schema})
    with pytest.raises(ValueError, match=f"cannot be loaded.*'{name}'"):
        skdcf.load(saved)


def test_a_filter_without_the_precision_of_the_columns_is_not_saved(saved):
    cf = fitted("hard")
    cf._record.origin["precision"].clear()
    with pytest.raises(ValueError, match="'precision' must be"):
        skdcf.save(cf, saved)


def test_compressed_members_are_refused(saved):
    write_parts(saved, parts_of(saved), zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        skdcf.load(saved)


def test_another_format_or_version(saved):
    parts, cf = parts_of(saved), skdcf.load(saved)
    about = json.loads(parts.pop("skdcf.json"))

    def write(**changes):
        write_parts(saved, parts | {"skdcf.json": json.dumps(about | changes)})

    write(format=99, skdcf="9.0")
    with pytest.raises(ValueError, match=r"format.*99\b.*skdcf 9\.0"):
        skdcf.load(saved)
    write(versions="0.0.9")
    with pytest.warns(InconsistentVersionWarning, match=r"0\.0\.9"):
        assert_same_filter(skdcf.load(saved), cf)
    for text in "[1]", "5", "{}":
        write_parts(saved, parts | {"skdcf.json": text})
        with pytest.raises(ValueError, match=r"written by skdcf\.save"):
            skdcf.load(saved)


@pytest.mark.parametrize("name", ["hard", "mlp"])
@pytest.mark.filterwarnings("ignore")
def test_saved_thresholds_never_keep_more_than_their_filter(name, tmp_path):
    cf = fitted(name)
    levels = [0.001, 0.1, 0.3, 0.999]
    path = save_threshold(cf, tmp_path / "t.json", levels)
    saved = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert saved["n_calibration"] == cf.n_calibration_
    thresholds = load_threshold(path)
    scores = -np.concatenate(cf.path_risk(GRAPHS))
    for level, masks in zip(levels, cf.predict(GRAPHS, levels), strict=True):
        threshold = thresholds[level]
        above = scores > threshold
        kept = np.concatenate(masks)
        assert not (above & ~kept).any()
        assert (scores[kept & ~above] > threshold - 3e-5 * (1 + abs(threshold))).all()


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        (NoFalseClaim(by="kind"), r"guarantee=.*problem"),
        (NoFalseClaim(show=0.5), r"show must be 1.*0\.5.*skdcf\.save"),
    ],
)
def test_a_filter_with_more_than_a_threshold_is_refused(guarantee, message, tmp_path):
    cf = HardCF("frequency-score", alpha=0.3, guarantee=guarantee).fit(GRAPHS, LABELS)
    with pytest.raises(ValueError, match=message):
        save_threshold(cf, tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()
    (tmp_path / "other.json").write_text('{"format": 1}')
    with pytest.raises(ValueError, match=r"other\.json"):
        load_threshold(tmp_path / "other.json")


def test_a_search_or_the_filter_that_it_chose_is_saved(tmp_path):
    grid = {"scorer": ["frequency-score", 0]}
    search = GridSearchCV(HardCF("frequency-score"), grid, cv=2)
    search = CalibratedSearch(search, random_state=0).fit(GRAPHS, LABELS)
    path = tmp_path / "search.skops"
    try:
        skdcf.save(search, path)
    except ValueError as error:
        assert "best_estimator_" in str(error)
        saved = search.best_estimator_
    else:  # The results of a search refer to themselves in recent versions only.
        saved = search
    masks = (
        each.predict(GRAPHS) for each in (skdcf.load(skdcf.save(saved, path)), search)
    )
    assert all(map(np.array_equal, *masks))
