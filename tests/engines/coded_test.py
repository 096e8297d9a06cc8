# SPDX-License-Identifier: Apache-2.0
"""Codes that rounding changes: a streaming cache in q8_0 in random Llamas of 1, 2 and 4 layers. In one layer the package
and the programs have the same codes but for near ties. In deeper models another code changes the codes of the layers
above it. The loss of the type stays the same."""

import shutil

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from adapters import CACHE, save_config, scored
from exports import FOLDER, check, logits
from kvspectrum import CalibratedCache

torch.manual_seed(1)
tokens = torch.randint(3, 128, (512,)).tolist()


def make(layers):
    """@return a folder, its model"""
    torch.manual_seed(layers)
    folder = FOLDER / "tiny-coded"
    shutil.rmtree(folder, ignore_errors=True)
    LlamaForCausalLM(LlamaConfig(
        hidden_size=128, intermediate_size=192, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2,
        head_dim=64, vocab_size=128, max_position_embeddings=1024, initializer_range=0.1, tie_word_embeddings=True,
    )).save_pretrained(folder)
    return folder, AutoModelForCausalLM.from_pretrained(folder)


def decode(model, config):
    return model(torch.tensor([tokens]), **{CACHE: CalibratedCache.from_config(config, model)}).logits[0]


def both(folder, model, *settings):
    """@return the config, logits of eval's forward pass, logits in Transformers"""
    config, _ = save_config(tokens, "streaming", "cache_size=128", *settings, model=folder)
    return config, torch.from_numpy(logits(folder, config, tokens)), decode(model, config)


def divergence(one, other):
    """Mean KL divergence of the predictions of `other` from those of `one`, nats."""
    p, q = (x.double().log_softmax(-1) for x in (one, other))
    return (p.exp() * (p - q)).sum(-1).mean().item()


for layers in (1, 2, 4):
    folder, model = make(layers)
    _, ours, theirs = both(folder, model)
    config, ours_coded, theirs_coded = both(folder, model, "type=q8_0")
    loss = divergence(ours, ours_coded)
    name = f"streaming q8_0, layers {layers}"
    check(f"{name}: relative difference of perplexities",
          abs(scored(theirs_coded, tokens, 0) / scored(ours_coded, tokens, 0) - 1), 1e-5 if layers == 1 else 1e-3)
    check(f"{name}: KL divergence from eval over that of the type", divergence(ours_coded, theirs_coded) / loss,
          1e-3 if layers == 1 else 0.05)
    check(f"{name}: relative difference of the type's KL divergence",
          abs(divergence(theirs, theirs_coded) / loss - 1), 0.02)
    double = scored(decode(model.double(), config), tokens, 0)
    print(f"{name}: in double the perplexity differs by {double / scored(theirs_coded, tokens, 0) - 1:.1e}", flush=True)
