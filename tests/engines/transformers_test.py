# SPDX-License-Identifier: Apache-2.0
"""hf-youtu and hf-deepseek in unmodified Transformers: logits, cache, tokenizer, generation."""

import itertools
import json

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

from adapters import CACHE
from exports import (FOLDER, MODEL, SMOLLM2_CONFIG, TEXT, check, export, logits, nll, tiny_config, tiny_config_by_layer,
                     tiny_model)

torch.set_grad_enabled(False)
# Before 5.15 Transformers held the keys and values of all heads of such a layer, not the latent.
LATENT = tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 15)
# Transformers 5.0 has no Youtu.
TARGETS = [target for target, name in (("hf-youtu", "YoutuForCausalLM"), ("hf-deepseek", "DeepseekV3ForCausalLM"))
           if hasattr(transformers, name)]


def compare(name, model, config, tokens, dtype=torch.float32, most=5e-4):
    ours = logits(model, config, tokens)
    for target in TARGETS:
        folder = export(target, config, model, FOLDER / target)
        engine = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        cache = DynamicCache(config=engine.config)
        theirs = engine(torch.tensor([tokens]), **{CACHE: cache}).logits[0].float().numpy()
        check(f"{name}, {type(engine).__name__}: largest difference of logits", abs(theirs - ours).max(), most)
        stated = json.loads((folder / "kvspectrum-export.json").read_text())["cache"]["values_per_token_and_layer"]
        for layer in cache.layers:
            held = (layer.keys[0, 0, 0].numel() * layer.keys.shape[1]
                    + layer.values[0, 0, 0].numel() * layer.values.shape[1])
            assert held == stated if LATENT else held > stated, (held, stated)
    return folder


def check_smollm2():
    config = SMOLLM2_CONFIG
    folder = FOLDER / "hf-deepseek"
    export("hf-deepseek", config, MODEL, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(TEXT.read_text(), add_special_tokens=False)["input_ids"][:512]
    ours = logits(MODEL, config, tokens)
    compare("SmolLM2", MODEL, config, tokens)

    export(TARGETS[0], config, MODEL, FOLDER / "hf-bf16", "--matrix-dtype", "bf16")
    half = AutoModelForCausalLM.from_pretrained(FOLDER / "hf-bf16", dtype=torch.float32)
    theirs = half(torch.tensor([tokens])).logits[0].numpy()
    check("SmolLM2, weights in bf16: difference of the mean NLL",
          abs(nll(theirs, tokens).mean() - nll(ours, tokens).mean()), 0.02)

    engine = AutoModelForCausalLM.from_pretrained(folder)
    prompt = tokenizer("The sun is", return_tensors="pt")
    out = engine.generate(**prompt, max_new_tokens=16, do_sample=False)[0, prompt["input_ids"].shape[1]:]
    expected = tokens_after(prompt["input_ids"][0].tolist(), config, out.numel(), engine.config.eos_token_id)
    print("generated:", repr(tokenizer.decode(out)))
    assert out.tolist() == expected, (out.tolist(), expected)
    turn = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert "<|im_start|>user\nHi<|im_end|>" in turn, turn


def tokens_after(tokens, config, count, end):
    """Returns the tokens that our own runtime generates greedily."""
    found = []
    while len(found) < count and end not in found:
        found.append(int(logits(MODEL, config, tokens + found)[-1].argmax()))
    return found


def check_tiny():
    """Random Llamas: J-LRD and S-LRD, heads tied and not, RoPE stretched in the ways that the classes compute."""
    ropes = [{"rope_type": "default"}, {"rope_type": "linear", "factor": 4.0},
             {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 32}]
    for number, (rope, factorization) in enumerate(itertools.product(ropes, ("joint", "separate"))):
        source, tokens = tiny_model(number, tied=number % 2 == 0, **rope)
        config = tiny_config(source, "--factorization", factorization)
        compare(f"tiny, RoPE {rope['rope_type']}, {factorization}", source, config, tokens)
        config = tiny_config_by_layer(source, "--factorization", factorization, "--outputs", "fitted")
        folder = compare("the same, sizes by layer", source, config, tokens)
        assert json.loads((folder / "config.json").read_text())["kv_lora_rank"] == 40


check_tiny()
check_smollm2()
