# SPDX-License-Identifier: Apache-2.0
"""Overlays of the scales of an fp8 cache, as safetensors, compressed-tensors and Transformers read them."""

import json

import torch
from compressed_tensors.quantization import QuantizationConfig, QuantizationStrategy
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from exports import FOLDER, check, run, tiny_model

source, tokens = tiny_model(7)
before = {path.name: path.read_bytes() for path in source.iterdir()}
reference = AutoModelForCausalLM.from_pretrained(source)(torch.tensor([tokens])).logits


def difference():
    loaded = AutoModelForCausalLM.from_pretrained(source)
    return (loaded(torch.tensor([tokens])).logits - reference).abs().max().item()


for per, strategy, shape in (("layer", QuantizationStrategy.TENSOR, (1,)), ("head", QuantizationStrategy.ATTN_HEAD, (2, 1, 1))):
    config, overlay = FOLDER / "scales.json", FOLDER / "overlay"
    run("kvcalibrate", "store", "--model", source, "--tokens-file", FOLDER / "tiny.jsonl", "--window", 64, "--per", per,
        "--scale", "max", "--out", config, "--force", "--quiet")
    run("kvcalibrate", "export", "--to", "vllm-fp8", "--overlay", "--config", config, "--model", source, "--out", overlay,
        "--force", "--quiet")
    assert not (overlay / "model.safetensors").exists()
    stated = json.loads(config.read_text())["parameters"]
    scales = load_file(overlay / "model-kvscales.safetensors")
    assert len(scales) == 6
    for layer in range(3):
        for side in "kv":
            found = scales[f"model.layers.{layer}.self_attn.{side}_scale"]
            assert found.shape == shape and found.dtype == torch.float32
            given = torch.tensor(stated[f"scale_{side}"][layer]).reshape(shape)
            check(f"{per}, layer {layer}, {side}", (found / given - 1).abs().max().item(), 1e-6)

    run("kvcalibrate", "overlay", "apply", "--overlay", overlay, "--model", source)
    weights = json.loads((source / "model.safetensors.index.json").read_text())["weight_map"]
    for name, file in weights.items():
        with safe_open(source / file, "pt") as opened:
            assert name in opened.keys(), name
    scheme = json.loads((source / "config.json").read_text())["quantization_config"]
    cache = QuantizationConfig.model_validate(scheme).kv_cache_scheme
    assert (cache.num_bits, cache.type, cache.dynamic, cache.symmetric) == (8, "float", False, True)
    assert cache.strategy == strategy
    check(f"{per}: logits with the overlay", difference(), 0)  # Transformers' own cache has no scales
    run("kvcalibrate", "overlay", "undo", "--model", source)
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before
check("logits after undo", difference(), 0)
print("overlays by layer and by head: read and undone")
