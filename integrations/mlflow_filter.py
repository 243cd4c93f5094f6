"""The model that MLflow stores as code, and runs wherever it is loaded."""

import mlflow
from desk import to_problem

import skdcf


class ClaimFilter(mlflow.pyfunc.PythonModel):
    """What is left of answers; a row has its question, passages and answer."""

    def load_context(self, context):
        """Read the filter, of which nothing is run that is not known to skdcf."""
        self.filter = skdcf.load(context.artifacts["filter"])

    def predict(self, context, model_input, params=None):
        """The text that is left of each answer; empty where nothing is."""
        rows = model_input[["question", "passages", "answer"]].itertuples(index=False)
        return self.filter.filter([to_problem(*row) for row in rows], output="text")


mlflow.models.set_model(ClaimFilter())
