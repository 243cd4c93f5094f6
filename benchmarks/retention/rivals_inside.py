"""Filter claims with two other packages. rivals.py runs this program in their environment.

    python rivals_inside.py ANSWERS.json MASKS.json

The program does not import skdcf. The input file contains answers with claims and labels. For each
split, the file contains the labelled answers, the new answers, and scores between 0 and 1 of all
claims. Each method is used as its documentation recommends, with default settings.
"""

import json
import logging
import sys
import tempfile

from cli_sdk import Claim, LocalCLIClient
from cli_sdk.backends.base import CustomBackend
from maci_conformal import FalseClaimRiskGrouper, SubgroupOptimizedMACI

MARK = "Claim: "  # before the claim, in what the Claim query asks its model


def entry(answer, scores):
    """An answer as MACI takes it."""
    pairs = zip(answer["claims"], answer["labels"], strict=True)
    facts = [{"atom": claim, "is_supported": bool(label)} for claim, label in pairs]
    sample = {"prompt": answer["question"], "response": " ".join(answer["claims"])}
    return {"sample": sample | {"atomic_facts": facts}, "scores": scores}


def maci(answers, scores, known, new, alpha, seed):
    """Masks of `SubgroupOptimizedMACI`, which trains its weights on half of the known."""
    rows = {
        i: entry(answers[i], {name: scores[name][i] for name in scores})
        for i in [*known, *new]
    }
    grouper = FalseClaimRiskGrouper()
    model = SubgroupOptimizedMACI(list(scores), grouper, random_state=seed)
    model.fit([rows[i] for i in known], alpha=alpha)
    filtered, _ = model.predict([rows[i] for i in new])
    return [list(map(bool, item["sample"]["kept_mask"])) for item in filtered]


class Scores(CustomBackend):
    """A model that has judged all claims before: it looks the score up."""

    access_level = "L1"
    name = "scores"

    def __init__(self, answers, scores):
        super().__init__()
        self.answers, self.scores = answers, scores

    def generate(self, context, instructions):
        """The claims of an answer, as the query asks for them."""
        return json.dumps(
            list(dict.fromkeys(self.answers[context["number"]]["claims"]))
        )

    def score_options(self, context, instructions, options):
        """The score as the chance of "true"; of equal claims the first one's."""
        number = context["number"]
        claim = instructions.rpartition(MARK)[2]
        position = self.answers[number]["claims"].index(claim)
        score = self.scores[number][position]
        return {"true": score, "false": 1 - score}


def cci(answers, scores, known, new, alpha, folder):
    """Masks of the `Claim` query, in its local mode."""
    backend = Scores(answers, scores)
    client = LocalCLIClient(backend, store=folder)
    query = Claim(
        instructions="Keep what is supported.", calibration_profile="p", alpha=alpha
    )
    examples = []
    for i in known:
        pairs = zip(answers[i]["claims"], answers[i]["labels"], strict=True)
        label = [{"text": claim, "supported": bool(true)} for claim, true in pairs]
        examples.append({"context": {"number": i}, "label": label})
    client.calibrate(query, examples)
    masks = []
    for i in new:
        found = client.evaluate(context={"number": i}, queries={"kept": query})
        kept = set(found.answers["kept"].retained_claims)
        masks.append([claim in kept for claim in answers[i]["claims"]])
    return masks


def main(source, target):
    """Read the answers, write the masks."""
    with open(source, encoding="utf-8") as file:
        asked = json.load(file)
    answers, out = asked["answers"], []
    for number, split in enumerate(asked["splits"]):
        known, half, new = split["known"], split["half"], split["new"]
        scores = split["scores"]
        published = {"published": scores["published"]}
        untrained = {k: v for k, v in scores.items() if k != "regression"}
        regression = scores["regression"]
        for alpha in asked["alphas"]:
            with tempfile.TemporaryDirectory() as folder:
                first = cci(answers, scores["published"], known, new, alpha, folder)
            with tempfile.TemporaryDirectory() as folder:
                second = cci(answers, regression, half, new, alpha, folder)
            found = {
                "MACI, published score": maci(
                    answers, published, known, new, alpha, number
                ),
                "MACI, three scores": maci(
                    answers, untrained, known, new, alpha, number
                ),
                "MACI, three scores and the regression": maci(
                    answers, scores, half, new, alpha, number
                ),
                "cci-sdk, published score": first,
                "cci-sdk, the regression": second,
            }
            for method, masks in found.items():
                out.append(
                    {"split": number, "alpha": alpha, "method": method, "masks": masks}
                )
        print(f"split {number + 1} of {len(asked['splits'])}", file=sys.stderr)
    with open(target, "w", encoding="utf-8") as file:
        json.dump(out, file)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(*sys.argv[1:])
