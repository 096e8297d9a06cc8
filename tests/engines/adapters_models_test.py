# SPDX-License-Identifier: Apache-2.0
"""CalibratedCache in random tiny models of each architecture: perplexities against eval's, and refusals."""

import shutil

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from adapters import CACHE, save_config, scored
from exports import FOLDER, check
from kvspectrum import CalibratedCache, ConfigError

GEOMETRY = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 128, "max_position_embeddings": 256,
            "initializer_range": 0.2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TAKEN = {"llama": {"attention_bias": True}, "mistral": {"sliding_window": 20}, "qwen2": {}, "qwen3": {},
         "phi3": {"sliding_window": None}, "olmo2": {},
         "gemma3_text": {"sliding_window": 20,
                         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}}
REFUSED = {"gemma2": ({}, "attn_logit_softcapping"),
           "gemma2 without windows": ({"layer_types": ["full_attention"] * 3, "sliding_window": None},
                                      "attn_logit_softcapping"),
           "gpt_neox": ({"num_key_value_heads": 4, "head_dim": None}, "layers without self_attn")}
METHODS = [("full",), ("freqkv", "cache_size=32", "sinks=4"), ("streaming", "cache_size=32"), ("h2o", "cache_size=32",
           "recent=16"), ("lagkv", "lag=8"), ("snapkv", "cache_size=24", "window=8", "prefix=48"),
           ("faedkv", "chunks=8", "sinks=2", "recent=8", "kept=0-3", "prefix=48"),
           ("kivi", "bits=2", "group=16", "residual=32"),
           ("full", "type=q8_0,q4_0,f16"), ("full", "type_k=fp8", "type_v=nvfp4", "scale_v=0.01"),
           ("streaming", "cache_size=32", "type=int8_per_token_head"), ("freqkv", "cache_size=32", "type=q8_0"),
           ("lagkv", "lag=8", "type=turboquant_4bit_nc", "type_skip_layers=none")]


def make(kind, **changes):
    """@return a folder, its model"""
    torch.manual_seed(len(kind))
    folder = FOLDER / "tiny-kind"
    shutil.rmtree(folder, ignore_errors=True)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**GEOMETRY, **changes})).save_pretrained(folder)
    return folder, AutoModelForCausalLM.from_pretrained(folder)


def check_methods(kind, folder, model):
    tokens = torch.randint(3, 128, (96,)).tolist()
    for method, *settings in METHODS:
        config, measured = save_config(tokens, method, *settings, model=folder)
        prefix = 48 if "prefix=48" in settings else 0
        cache = CalibratedCache.from_config(config, model)
        theirs = scored(model(torch.tensor([tokens]), **{CACHE: cache}).logits[0], tokens, prefix)
        assert cache.get_seq_length() == len(tokens)
        coded = method == "kivi" or any(setting.startswith("type") for setting in settings)  # rounding may change codes
        check(f"{kind}, {method}: relative difference of perplexities", abs(theirs / measured["ppl"] - 1),
              2e-3 if coded else 1e-4)


def check_refused(name, changes, word):
    folder, model = make(name.split()[0], **changes)
    config, _ = save_config(list(range(3, 99)), "full", model=folder)
    try:
        CalibratedCache.from_config(config, model)
    except ConfigError as error:
        assert word in str(error), error
        print("refused:", error)
    else:
        raise AssertionError(f"{name} was not refused")


for kind, changes in TAKEN.items():
    check_methods(kind, *make(kind, **changes))
for name, (changes, word) in REFUSED.items():
    check_refused(name, changes, word)
