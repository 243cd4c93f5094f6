"""The model that MLflow stores as code and runs after loading."""

import mlflow
from desk import to_problem

import skdcf


class ClaimFilter(mlflow.pyfunc.PythonModel):
    """Model that filters answers, given a table with questions, passages and answers."""

    def load_context(self, context):
        """Load the filter. Code from untrusted modules in the file is never run."""
        self.filter = skdcf.load(context.artifacts["filter"])

    def predict(self, context, model_input, params=None):
        """Return the filtered text of each answer, which is empty if no claim is kept."""
        rows = model_input[["question", "passages", "answer"]].itertuples(index=False)
        return self.filter.filter([to_problem(*row) for row in rows], output="text")


mlflow.models.set_model(ClaimFilter())
