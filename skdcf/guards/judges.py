"""Labels that calibrate and were given by a language model.

The guarantee is then about the verdicts of the model. After calibration on a strong model's
verdicts, .13 to .25 of the answers contained something that people call false, at alpha .1.
"""

from __future__ import annotations

from itertools import compress

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs.sources import iterate_sources

_FEW = 0.05  # share of what is not as it should be above which there is a warning
_NOTHING = "nothing false"


def note_judges(estimator, batch, labels):
    """Note which share of the labels models gave; warn where it is more than a few."""
    judged = labels >= 0
    sources = () if batch.metadata is None else compress(iterate_sources(batch), judged)
    models = [row["by"] for row in sources if row and row["kind"] == "model"]
    share = len(models) / max(int(judged.sum()), 1)
    names = sorted(set(map(str, models)))
    estimator.provenance_ |= {"judged": [share], "judges": names}
    if share > _FEW:
        warn(
            f"{share:.0%} of the labels that calibrate were given by a language model "
            f"({', '.join(names)}), so that the promise is about its verdicts: of errors "
            "that it overlooks, any number may be kept. Draw some answers blindly and let a "
            "person judge them (skdcf label): then these calibrate, and the model's labels "
            "train (skdcf fit --people FILE). skdcf label --compare says how far the model's "
            "labels can be trusted",
            LabelWarning,
        )


def name_errors(sentence, origin):
    """The sentence of a guarantee, which says what its labels call false, and who does."""
    shares = origin.get("judged") or [0.0]
    judges = ", ".join(origin.get("judges", ()))
    meanings = {meaning for meaning in origin.get("label_meaning", ()) if meaning}
    supported = meanings == {"supported"}
    error = "its context does not support" if supported else ""
    if min(shares) == 1:
        verdict = "finds unsupported by its context" if supported else "calls false"
        error = f"judge {judges} {verdict}"
    elif max(shares) > 0:
        most = "up to " * (len(shares) > 1)
        sentence += f" (judge {judges} gave {most}{max(shares):.0%} of the labels)"
    if error and _NOTHING in sentence:
        return sentence.replace(_NOTHING, f"nothing that {error}")
    return f"{sentence}, where false is what {error}" if error else sentence
