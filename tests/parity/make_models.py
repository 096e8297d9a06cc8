#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models and expected values of the parity suite, or the golden values of the default suite.

Usage: make_models.py FOLDER     (needs pip: torch, transformers, safetensors, gguf; scripts/parity.sh installs them)
       make_models.py --golden   (rewrites tests/golden/parity/)

FOLDER/NAME/hf/                 config.json and safetensors
FOLDER/NAME/model.gguf          if llama.cpp knows the architecture and can express its RoPE
FOLDER/NAME/expected.json       tokens, and the rows whose logits are kept
FOLDER/NAME/expected.safetensors  logits [rows, vocabulary], nll [token], k_pre.L and k_post.L [kv_head · token, head_dim]
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

from combinations import (COMBINATIONS, GOLDEN, OLD_SPELLINGS, TOKENS, filled_cache, make_model, recurrent_layers,
                          recurrent_state, rotating_layers, run, stored_tensors, tokens)
from write_gguf import write_gguf

ROWS = [0, 1, 63, 200, TOKENS - 1]


def save_hf(model, folder):
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def write_combination(name, folder):
    model = make_model(OLD_SPELLINGS[name][0] if name in OLD_SPELLINGS else name)
    ids = tokens()
    logits, nll, keys = run(model, ids)
    target = folder / name
    save_hf(model, target / "hf")
    if name in OLD_SPELLINGS:
        _, dropped, changed = OLD_SPELLINGS[name]
        path = target / "hf" / "config.json"
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**{key: config[key] for key in config if key not in dropped}, **changed}, indent=2))
    elif COMBINATIONS[name][2]:
        write_gguf(model, COMBINATIONS[name][2], target / "model.gguf")
    expected = {"logits": logits[ROWS].contiguous(), "nll": nll[:, None].contiguous()}
    for layer, (k_pre, k_post) in zip(rotating_layers(model.config.get_text_config()), keys):
        expected[f"k_pre.{layer}"] = k_pre.reshape(-1, k_pre.shape[-1]).contiguous()
        expected[f"k_post.{layer}"] = k_post.reshape(-1, k_post.shape[-1]).contiguous()
    save_file(expected, target / "expected.safetensors")
    (target / "expected.json").write_text(json.dumps({"tokens": ids, "rows": ROWS}))
    print(name, flush=True)


def single(values):
    """Returns f32 values as JSON numbers that read back to the same bits."""
    return [float(f"{value:.9g}") for value in values.flatten().tolist()]


def plain(value):
    """Returns a value of a config as Transformers writes it into config.json."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return {"__float__": "Infinity"} if value == float("inf") else value


def write_golden(architecture, name, folder):
    model = make_model(name)
    logits, nll, keys = run(model, tokens())
    text, cache = model.config.get_text_config(), None
    recurrent, rotating = recurrent_layers(text), rotating_layers(text)
    if recurrent:
        cache = filled_cache(model, tokens())
    if rotating:
        layer, (k_pre, k_post) = rotating[-1], keys[-1]
    else:
        layer = [index for index, kind in enumerate(text.layer_types) if kind in ("attention", "full_attention")][-1]
        k_pre = k_post = cache.layers[layer].keys[0]
    positions = [0, 150, TOKENS - 1]
    config = model.config.to_dict()
    config["architectures"] = [type(model).__name__]
    drop = {"transformers_version", "dtype", "torch_dtype", "_name_or_path"}
    golden = {
        "combination": name,
        "config": {key: plain(config[key]) for key in sorted(config)
                   if key not in drop and (config[key] is not None or key == "q_lora_rank")},
        "tensors": {key: list(value.shape) for key, value in stored_tensors(model)},
        "rows": ROWS[-2:], "logits": [single(logits[row, :24]) for row in ROWS[-2:]],
        "nll": single(nll[::13]), "layer": layer, "positions": positions,
        "k_pre": single(k_pre[-1, positions]), "k_post": single(k_post[-1, positions]),
    }
    if recurrent:
        memory, inputs = recurrent_state(model, cache, recurrent[-1])
        kept = len(inputs) - 1 if memory is not None else text.conv_L_cache - 1
        golden["recurrent"] = {"layer": recurrent[-1], "inputs": single(inputs[-kept:, :8])}
        if memory is not None:
            golden["recurrent"]["memory"] = single(memory[-1, :4])
    (folder / f"{architecture}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


def main():
    torch.set_num_threads(1)
    if sys.argv[1:] == ["--golden"]:
        folder = pathlib.Path(__file__).resolve().parent.parent / "golden" / "parity"
        folder.mkdir(exist_ok=True)
        (folder / "tokens.json").write_text(json.dumps(tokens(), separators=(",", ":")) + "\n")
        for architecture, name in GOLDEN.items():
            write_golden(architecture, name, folder)
        return
    folder = pathlib.Path(sys.argv[1])
    for name in [*COMBINATIONS, *OLD_SPELLINGS]:
        write_combination(name, folder)


if __name__ == "__main__":
    main()
