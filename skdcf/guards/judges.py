"""Guard against calibration labels that were assigned by a language model.

If a model assigned the labels, the guarantee holds only with respect to the model's verdicts. After
calibration at alpha = 0.1 on the verdicts of six models, 3 to 64 % of the filtered agent runs
contained a step that people judged to be wrong.
"""

from __future__ import annotations

import numpy as np

from .._checks import warn
from ..exceptions import LabelWarning

_FEW = 0.05  # proportion of model labels above which a warning is issued
_NO_ERROR = "no false claim"
_MODEL = "model "  # start of the provenance value "label_source" for labels of a model


def labels_of_models(batch, labels):
    """Return the proportion of labels that models assigned, and the names of the models."""
    n_labels = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_of_models = 0
    names = set()
    for n, row in zip(n_labels.tolist(), batch.provenance_rows, strict=False):
        source = str(row.get("label_source"))
        if n and source.startswith(_MODEL):
            n_of_models += n
            names.add(source.removeprefix(_MODEL))
    return n_of_models / max(int(n_labels.sum()), 1), sorted(names)


def judges_of(batch, labels):
    """Return the proportion of labels assigned by models, and warn if it exceeds 5 %."""
    share, names = labels_of_models(batch, labels)
    if share > _FEW:
        warn(
            f"a language model assigned {share:.0%} of the calibration labels "
            f"({', '.join(names)}), so the guarantee applies to the verdicts of this model "
            "and does not bound the errors that the model overlooks. Let a person label a "
            "random sample of answers (skdcf label), fit on the labels of the model with "
            "calibration_size=0, and calibrate on the labels of the person",
            LabelWarning,
        )
    return {"share": [share], "names": names}


def name_errors(sentence, origin):
    """Add the meaning of "false" and the kinds of judges to a sentence about the guarantee."""
    shares = origin["judges"].get("share") or [0.0]
    judges = ", ".join(origin["judges"].get("names", ()))
    meanings = set(origin["provenance"].get("label_meaning", ())) - {None}
    supported = meanings == {"supported"}
    error = "is unsupported by its context" if supported else ""
    if min(shares) == 1:
        verdict = "finds unsupported by its context" if supported else "calls false"
        error = f"the judge {judges} {verdict}"
    elif max(shares) > 0:
        most = "up to " * (len(shares) > 1)
        sentence += (
            f" (the judge {judges} assigned {most}{max(shares):.0%} of the labels)"
        )
    if error and _NO_ERROR in sentence:
        sentence = sentence.replace(_NO_ERROR, f"no claim that {error}")
        error = ""
    return f"{sentence}. A false claim is a claim that {error}" if error else sentence
