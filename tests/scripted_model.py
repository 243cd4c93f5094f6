"""A model by rules, for a server: it can add, and it errs as often as it is told to.

Questions are like "Start with 12, add 5, then multiply by 3." It answers in one line per
step, with a wrong result now and then; a mistake is carried on. Everything follows from
the request, seed included, so that the same request has the same reply.
"""

import hashlib
import json
import random
import re

from chat_server import Say

from skdcf.edges import number_flow_edges

_STEP = re.compile(r"(add|subtract|multiply by) (\d+)")
_SUM = re.compile(r"(-?\d+) ([-+*]) (\d+) = (-?\d+)")
_SIGNS = {"add": "+", "subtract": "-", "multiply by": "*"}
_RATING = {
    "coherent_to_ancestors": 1.0,
    "inference_gap_size": 0,
    "has_missing_dependencies": False,
    "has_unnecessary_dependencies": False,
    "problem_relevance": 1.0,
    "uses_problem_data": True,
    "is_well_formed": True,
}


def make_question(rng):
    """A question that the model can answer."""
    steps = [
        f"{rng.choice(list(_SIGNS))} {rng.randint(2, 9)}"
        for _ in range(rng.randint(2, 4))
    ]
    return f"Start with {rng.randint(3, 40)}, {', then '.join(steps)}. What comes out?"


def calculate(a, sign, b):
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def is_right(text):
    """Whether every calculation in a text is right."""
    return all(
        calculate(int(a), s, int(b)) == int(c) for a, s, b, c in _SUM.findall(text)
    )


class ScriptedModel:
    """``script`` of a `ChatServer`.

    Parameters
    ----------
    slips : float
        Share of steps with a wrong result.
    """

    def __init__(self, slips=0.15):
        self.slips = slips

    def __call__(self, request, n):
        system, user = (m["content"] for m in request["messages"][:2])
        seed = f"{user}{request.get('seed')}"
        rng = random.Random(hashlib.sha256(seed.encode()).digest())
        try:
            payload = json.loads(user)
        except ValueError:
            return self.solve(user, rng)
        if "premises" in payload:
            return self.verify(payload, rng)
        return json.dumps(self.reply(system, payload, rng))

    def solve(self, question, rng):
        value, lines = int(re.search(r"Start with (\d+)", question)[1]), []
        for verb, number in _STEP.findall(question):
            result = calculate(value, _SIGNS[verb], int(number))
            result += rng.choice([-2, -1, 1, 10]) if rng.random() < self.slips else 0
            lines.append(f"{value} {_SIGNS[verb]} {number} = {result}.")
            value = result
        return "\n".join([*lines, f"The answer is {value}."])

    def verify(self, payload, rng):
        truth = is_right(payload["claim"])
        truth = not truth if rng.random() < 0.1 else truth
        sure = rng.uniform(0.6, 0.99)
        words = {"true": sure, "false": 1 - sure} if truth else {"false": sure}
        tops = [{word: -2.0 * (1 - p) for word, p in words.items()}]
        return Say("true" if truth else "false", top_logprobs=tops)

    def reply(self, system, payload, rng):
        if "answer" in payload:
            return {"claims": payload["answer"].splitlines()}
        texts = [c["text"] if isinstance(c, dict) else c for c in payload["claims"]]
        if "other" in payload:
            return self.rows(
                "verdicts", [self.vote(t, payload["other"]) for t in texts]
            )
        if '"ratings"' in system:
            rows = [{"claim": i + 1, **_RATING} for i in range(len(texts))]
            return {"ratings": rows}
        if '"premises"' in system:
            return self.graph(texts, payload["question"])
        if '"verdicts"' in system:
            return self.rows("verdicts", [str(is_right(t)).lower() for t in texts])
        raise AssertionError(system)

    def vote(self, text, other):
        if text in other:
            return "supports"
        return "contradicts" if _SUM.search(text) else "silent"

    def graph(self, texts, question):
        edges = number_flow_edges(texts, question)
        rows = [
            {"claim": v + 1, "builds_on": [a + 1 for a, b in edges if b == v]}
            for v in range(len(texts))
        ]
        return {"premises": rows}

    def rows(self, name, words):
        return {name: [{"claim": i + 1, "verdict": w} for i, w in enumerate(words)]}
