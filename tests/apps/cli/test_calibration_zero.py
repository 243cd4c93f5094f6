"""A filter trained on a model's labels and calibrated on people's, by the commands."""

import numpy as np
import pytest

from skdcf import ReasoningGraph, load
from skdcf.apps.cli import main
from skdcf.datasets import write_jsonl


def written(path, source, n=80):
    rng = np.random.default_rng(len(source))
    graphs = [
        ReasoningGraph(
            rng.random((2, 1)),
            (),
            claims=["one", "two"],
            problem=f"{source} {i}",
            provenance={"label_source": source},
        )
        for i in range(n)
    ]
    write_jsonl(path, graphs, [(g.features[:, 0] > 0.3).astype(int) for g in graphs])
    return str(path)


def test_fit_saves_without_calibration_and_calibrate_completes_it(tmp_path, capsys):
    of_model = written(tmp_path / "model.jsonl", "model judge")
    of_people = written(tmp_path / "people.jsonl", "person")
    trained, filter = str(tmp_path / "trained.skops"), str(tmp_path / "filter.skops")
    options = ["--scorer", "logistic", "--show", "1", "--calibration", "0"]
    assert not main(["fit", of_model, "-o", trained, *options])
    assert "a model gave 100% of the labels" in capsys.readouterr().err
    assert load(trained).n_calibration_ == 0
    for command in (
        ["filter", trained, of_people, "-o", str(tmp_path / "kept")],
        ["report", trained, of_people, "-o", str(tmp_path / "report.html")],
        ["serve", trained],
    ):
        try:
            code = main(command)
        except SystemExit as error:
            code = error.code
        assert code
        assert "calibration_size=0. Call calibrate" in capsys.readouterr().err
    assert not main(["calibrate", trained, of_people, "-o", filter])
    assert "a model gave" not in capsys.readouterr().err
    assert load(filter).n_calibration_ == 79
    assert not main(["filter", filter, of_people, "-o", str(tmp_path / "out.jsonl")])


@pytest.mark.parametrize("size", ["-1", "-0.5"])
def test_other_sizes_are_refused(size, tmp_path, capsys):
    path = written(tmp_path / "model.jsonl", "person")
    with pytest.raises(SystemExit) as error:
        raise SystemExit(
            main(["fit", path, "-o", str(tmp_path / "f"), "--calibration", size])
        )
    assert error.value.code
    assert "calibration_size" in capsys.readouterr().err
