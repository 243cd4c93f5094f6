"""Filters in files: the same predictions, no code, and a reason for every refusal."""

import io
import json
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import skdcf
from skdcf import (
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.apps.llm import ChatClient
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import CalibratedSearch
from skdcf.guarantees import NoFalseClaim
from skdcf.persistence import save_threshold
from skdcf.scorers import (
    MLPModel,
    Scorer,
)
from skdcf.scorers.resolve import FunctionScorer

pytest.importorskip("skops")
GRAPHS, LABELS = make_reasoning_graphs(120, random_state=0, return_X_y=True)
KIND = (np.arange(120) % 2)[GRAPHS.problem_of].astype(float)
GRAPHS = GRAPHS.replace_features(
    np.column_stack([GRAPHS.features, KIND]), [*GRAPHS.feature_names, "kind"]
)

FILTERS = {
    "linear": CoherentConformalFilter("linear", random_state=np.random.RandomState(3)),
    "mlp": CoherentConformalFilter(MLPModel((3,)), ties="jitter", random_state=1),
    "hard": HardCF(),
    "column": HardCF(1, ties="include"),
    "forest": HardCF(RandomForestClassifier(3, random_state=0), random_state=0),
    "histogram": HardCF(HistGradientBoostingClassifier(max_iter=3), random_state=0),
    "pipeline": HardCF(
        make_pipeline(PolynomialFeatures(), RandomForestClassifier(2, random_state=0)),
        random_state=0,
    ),
    "sure": HardCF(guarantee=NoFalseClaim(delta=0.1)),
    "per group": HardCF(guarantee=NoFalseClaim(by="kind")),
    "independent": IndependentFactuality(),
    "single": SingleFeatureCF(beta_mix=0.3),
    "xgboost": XGBoostCF(n_estimators=3, random_state=0),
}


def fitted(name):
    if name == "xgboost":
        pytest.importorskip("xgboost")
    return clone(FILTERS[name]).fit(GRAPHS, LABELS)


def same(one, other):
    return all(map(np.array_equal, one, other))


def assert_same_filter(back, cf):
    assert same(back.predict(GRAPHS), cf.predict(GRAPHS))
    assert same(back.path_risk(GRAPHS), cf.path_risk(GRAPHS))
    assert same(back.predict_alpha(GRAPHS), cf.predict_alpha(GRAPHS))
    assert np.array_equal(back.threshold_, cf.threshold_, equal_nan=True)
    assert same(back.predict(GRAPHS, 0.3), cf.predict(GRAPHS, 0.3))
    address = re.compile("0x[0-9A-F]+")
    assert address.sub("", str(back)) == address.sub("", str(cf))


@pytest.mark.parametrize("name", FILTERS)
def test_same_predictions(name, tmp_path):
    cf = fitted(name)
    assert_same_filter(skdcf.load(skdcf.save(cf, tmp_path / "cf.skops")), cf)


def test_other_kinds_of_trees(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    for booster in (
        xgboost.XGBClassifier(n_estimators=3, booster="dart", n_jobs=1),
        xgboost.XGBClassifier(n_estimators=3, booster="gblinear", n_jobs=1),
        xgboost.XGBRFClassifier(n_estimators=3, n_jobs=1),
    ):
        cf = HardCF(booster, random_state=0).fit(GRAPHS, LABELS)
        assert_same_filter(skdcf.load(skdcf.save(cf, tmp_path / "cf.skops")), cf)


def test_refused_at_saving(tmp_path):
    path = tmp_path / "cf"
    with pytest.raises(ValueError, match=r"saved.*lambda"):
        skdcf.save(HardCF(lambda b: -b.depth).fit(GRAPHS, LABELS), path)
    with pytest.raises(NotFittedError):
        skdcf.save(HardCF(), path)
    with pytest.raises(ValueError, match=r"fitted.*filter"):
        skdcf.save({"a": 1}, path)
    cf = fitted("hard")
    cf.extra_ = json.JSONEncoder()  # not ours
    skdcf.save(cf, path)
    with pytest.raises(ValueError, match=r"JSONEncoder.*skdcf"):
        skdcf.load(path)


@pytest.mark.long
def test_other_process_predicts_the_same(tmp_path):
    cf = fitted("linear")
    path = skdcf.save(cf, tmp_path / "cf.skops")
    code = (
        "import sys, skdcf, numpy as np\n"
        "from skdcf.datasets import make_reasoning_graphs\n"
        "g = make_reasoning_graphs(120, random_state=0).graphs\n"
        "kind = (np.arange(120) % 2)[g.problem_of].astype(float)\n"
        "X = np.column_stack([g.features, kind])\n"
        "g = g.replace_features(X, [*g.feature_names, 'kind'])\n"
        "np.save(sys.argv[2], np.concatenate(list(skdcf.load(sys.argv[1]).path_risk(g))))"
    )
    out = tmp_path / "risk.npy"
    subprocess.run([sys.executable, "-c", code, path, out], check=True)
    assert np.array_equal(np.load(out), np.concatenate(list(cf.path_risk(GRAPHS))))


class OwnScorer(Scorer):
    """Of a user."""

    def confidence(self, batch):
        return -batch.depth.astype(float)


def by_depth(batch):
    return -batch.depth.astype(float)


@pytest.mark.parametrize("scorer", [OwnScorer(), FunctionScorer(by_depth)])
def test_what_users_wrote_is_loaded_only_when_trusted(scorer, tmp_path):
    cf = HardCF(scorer).fit(GRAPHS, LABELS)
    path = skdcf.save(cf, tmp_path / "cf")
    own = OwnScorer if isinstance(scorer, OwnScorer) else by_depth
    name = f"{own.__module__}.{own.__name__}"
    with pytest.raises(ValueError, match=f"{name}.*trust"):
        skdcf.load(path)
    back = skdcf.load(path, trusted=[name])
    assert same(back.predict(GRAPHS), cf.predict(GRAPHS))
    with pytest.raises(ValueError, match=r"does.*trust"):
        skdcf.load(path, trusted=["os.system"])


def write_parts(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def saved(tmp_path):
    return skdcf.save(fitted("forest"), tmp_path / "cf.skops")


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="damaged"):
        skdcf.load(saved)


def test_every_changed_byte_is_noticed_or_harmless(saved):
    content, cf = saved.read_bytes(), skdcf.load(saved)
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.integers(len(content), size=150):
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
    assert noticed > 75


def test_compressed_members_are_refused(saved):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts_of(saved).items():
            archive.writestr(name, content)
    saved.write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="compressed"):
        skdcf.load(saved)


@pytest.mark.parametrize("number", [1, 99])
def test_another_format_is_refused_with_the_version_that_wrote_it(saved, number):
    parts = parts_of(saved)
    about = json.loads(parts["skdcf.json"]) | {"format": number, "skdcf": "9.0"}
    write_parts(saved, parts | {"skdcf.json": json.dumps(about).encode()})
    with pytest.raises(ValueError, match=rf"format.*{number}\b.*skdcf 9\.0"):
        skdcf.load(saved)
    write_parts(saved, {k: v for k, v in parts.items() if k != "skdcf.json"})
    with pytest.raises(ValueError, match=r"written.*by"):
        skdcf.load(saved)


def test_another_version_warns(saved):
    parts, cf = parts_of(saved), skdcf.load(saved)
    about = json.loads(parts["skdcf.json"]) | {"versions": "0.0.9"}
    write_parts(saved, parts | {"skdcf.json": json.dumps(about).encode()})
    with pytest.warns(InconsistentVersionWarning, match=r"0\.0\.9"):
        assert_same_filter(skdcf.load(saved), cf)


def test_a_client_is_loaded_only_when_trusted(tmp_path):
    """A file could send texts and keys to an address of its own."""
    client = ChatClient("http://127.0.0.1:1/v1", key_variable="HOME")
    cf = HardCF("frequency-score").fit(GRAPHS, LABELS)
    cf.client_ = client
    path = skdcf.save(cf, tmp_path / "cf")
    with pytest.raises(ValueError, match=r"skdcf\.apps\.llm.*ChatClient.*trust"):
        skdcf.load(path)


def test_members_that_overlap(saved):
    """Each holds the headers of those after it, and all hold one stretch of the file."""
    whole = saved.read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        infos, body = archive.infolist(), whole[: archive.start_dir]
    names = [f"copy{i:02}.npy".encode() for i in range(50)]
    heads = [
        struct.pack("<4s5H3L2H", b"PK\3\4", 20, *6 * [0], 0, len(name), 0) + name
        for name in names
    ]
    block = b"".join(heads) + bytes(200_000)
    for i, name in enumerate(names):
        info = zipfile.ZipInfo(name.decode())
        data = block[(i + 1) * len(heads[0]) :]
        info.header_offset = len(body) + i * len(heads[0])
        info.file_size, info.compress_size = len(data), len(data)
        info.CRC = zlib.crc32(data)
        infos.append(info)
    buffer = io.BytesIO(body + block)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.filelist[:] = infos
        archive._didModify = True
    saved.write_bytes(buffer.getvalue())
    # It reads them all, unless it is of a Python that refuses them by itself.
    with zipfile.ZipFile(saved) as archive, suppress(zipfile.BadZipFile):
        assert sum(len(archive.read(name)) for name in archive.namelist()) > 10**7
    with pytest.raises(ValueError, match=r"members.*overlap"):
        skdcf.load(saved)


def test_not_there_and_nothing_of_ours(tmp_path):
    with pytest.raises(FileNotFoundError):
        skdcf.load(tmp_path / "no")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="damaged"):
        skdcf.load(tmp_path / "text")


@pytest.mark.parametrize("name", ["hard", "column", "mlp", "independent"])
@pytest.mark.parametrize("alpha", [None, 0.001, 0.25, 0.999])
@pytest.mark.filterwarnings("ignore")
def test_threshold_alone(name, alpha, tmp_path):
    cf = fitted(name)
    path = save_threshold(cf, tmp_path / "t.json", alpha)
    saved = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert saved["n_calibration"] == cf.n_calibration_
    keeps = np.less_equal if saved["ties"] == "include" else np.less
    for risk, kept in zip(cf.path_risk(GRAPHS), cf.predict(GRAPHS, alpha), strict=True):
        assert np.array_equal(keeps(risk, float(saved["threshold"])), kept)


def test_a_group_has_no_threshold_alone(tmp_path):
    with pytest.raises(ValueError, match=r"guarantee=.*problem"):
        save_threshold(fitted("per group"), tmp_path / "t.json")


def test_a_threshold_without_the_cut_of_passing_answers_is_not_saved(tmp_path):
    graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.3, guarantee=NoFalseClaim(show=0.5))
    with pytest.raises(ValueError, match=r"show must be 1.*0\.5.*skdcf\.save"):
        save_threshold(cf.fit(graphs, y), tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


def test_a_search_or_the_filter_that_it_chose_is_saved(tmp_path):
    graphs, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    grid = GridSearchCV(
        HardCF("frequency-score"), {"scorer": ["frequency-score", 0]}, cv=2
    )
    search = CalibratedSearch(grid, random_state=0).fit(graphs, y)
    path = tmp_path / "search.skops"
    try:
        skdcf.save(search, path)
    except ValueError as error:
        assert "best_estimator_" in str(error)
        assert not path.exists()
        saved = search.best_estimator_
    else:  # The results of a search refer to themselves in recent versions only.
        saved = search
    back = skdcf.load(skdcf.save(saved, tmp_path / "filter.skops"))
    pairs = zip(back.predict(graphs), search.predict(graphs), strict=True)
    assert all((a == b).all() for a, b in pairs)
