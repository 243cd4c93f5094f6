"""MLflow: log a filter and its report, and load the filter as a pyfunc model."""

import offline  # isort: skip

import tempfile
from pathlib import Path

import mlflow
import pandas as pd
from desk import JUDGED, TEST, answer_of, new_filter

import skdcf
from skdcf.apps.reporting import write_report
from skdcf.evaluation import coverage_score

cf = new_filter().fit(JUDGED.graphs, JUDGED.labels)
covered = coverage_score(TEST.labels, cf.predict(TEST.graphs))
with tempfile.TemporaryDirectory() as folder:
    skdcf.save(cf, f"{folder}/filter.skops")
    write_report(f"{folder}/report.html", cf, TEST.graphs, TEST.labels)

    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.create_experiment("desk", artifact_location=Path(folder, "files").as_uri())
    mlflow.set_experiment("desk")
    with mlflow.start_run():
        mlflow.log_params({"alpha": cf.alpha, "n_calibration": cf.n_calibration_})
        mlflow.log_metric("coverage", covered)
        mlflow.log_artifact(f"{folder}/report.html")
        logged = mlflow.pyfunc.log_model(
            name="filter",
            python_model="mlflow_filter.py",
            artifacts={"filter": f"{folder}/filter.skops"},
            code_paths=["desk.py"],
            pip_requirements=["skdcf"],
        )
        report = mlflow.artifacts.download_artifacts(
            mlflow.get_artifact_uri("report.html")
        )

    model = mlflow.pyfunc.load_model(logged.model_uri)
    turns = {
        "question": [graph.problem for graph in TEST.graphs],
        "passages": [list(graph.context) for graph in TEST.graphs],
        "answer": [answer_of(graph) for graph in TEST.graphs],
    }
    texts = model.predict(pd.DataFrame(turns))
    assert texts == cf.filter(TEST.graphs, output="text")
    assert "<html" in Path(report).read_text("utf-8")
print(
    f"{len(texts)} answers were filtered by the loaded model; coverage: {covered:.2f}"
)
offline.finish("mlflow")
