# SPDX-License-Identifier: Apache-2.0
"""Shared code of the tests of the package kvspectrum (export/python): a model, and configs as kvcalibrate writes
them."""

import inspect
import json
import subprocess

import torch
from transformers import LlamaForCausalLM

from exports import BINARIES, FOLDER, MODEL

torch.set_grad_enabled(False)


# The name of the models' cache argument: `cache` from Transformers 5.24 on, `past_key_values` before.
CACHE = "cache" if "cache" in inspect.signature(LlamaForCausalLM.forward).parameters else "past_key_values"


def evaluate(tokens, *options, model=MODEL):
    """Runs kvcalibrate eval on `tokens` as one document. Returns its result."""
    file = FOLDER / "tokens.jsonl"
    file.write_text(json.dumps(tokens) + "\n")
    done = subprocess.run([BINARIES / "kvcalibrate", "eval", "--model", model, "--tokens-file", file, "--window",
                           str(len(tokens)), "--threads", "1", "--json", "--quiet", *map(str, options)],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def save_config(tokens, method, *settings, model=MODEL):
    """@return the config's path, and the result of `eval`"""
    config = FOLDER / f"adapter-{method}.json"
    chosen = ["--set", *settings] if settings else []
    alone = ["--reference", "none"] if chosen else []
    return config, evaluate(tokens, "--method", method, *chosen, *alone, "--save-config", config, "--force",
                            model=model)


def scored(logits, tokens, prefix):
    """Returns the perplexity of the tokens after the prefix, scored as by `eval`."""
    probabilities = logits[:-1].double().log_softmax(-1)
    return (-probabilities[range(len(tokens) - 1), tokens[1:]][prefix:]).mean().exp().item()


def load_model():
    """Loads SmolLM2 from its GGUF. @return model, tokenizer"""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": MODEL.parent, "gguf_file": MODEL.name}
    return AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32), AutoTokenizer.from_pretrained(**where)
