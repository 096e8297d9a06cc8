# SPDX-License-Identifier: Apache-2.0
"""CalibratedCache for batches with left padding, beams, sliding windows and recurrent layers."""

import shutil

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from adapters import CACHE, save_config, scored
from exports import FOLDER, check
from kvspectrum import CalibratedCache, ConfigError

GEOMETRY = {"hidden_size": 128, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 128, "max_position_embeddings": 256,
            "initializer_range": 0.2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
KINDS = {"llama": {}, "gemma3_text": {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention",
                                                               "sliding_attention"]},
         "lfm2": {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 16}}
METHODS = [("full", "type=q8_0"), ("kivi", "bits=4", "group=16", "residual=16"), ("streaming", "cache_size=24"),
           ("freqkv", "cache_size=24"), ("h2o", "cache_size=24", "recent=8"), ("tova", "cache_size=24"),
           ("lagkv", "lag=8"), ("snapkv", "cache_size=16", "window=4", "prefix=20"), ("l2norm", "prefix=20"),
           ("faedkv", "chunks=6", "sinks=2", "recent=4", "kept=0-2", "age=on", "prefix=20")]
LENGTHS = (36, 25, 30)  # of the sequences of a batch


def make(kind, changes):
    """@return a folder, its model"""
    torch.manual_seed(len(kind))
    folder = FOLDER / "tiny-batch"
    shutil.rmtree(folder, ignore_errors=True)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**GEOMETRY, **changes})).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.generation_config.eos_token_id = None
    return folder, model


def check_perplexity(name, config, measured, model, tokens, prefix):
    logits = model(torch.tensor([tokens]), **{CACHE: CalibratedCache.from_config(config, model)}).logits[0]
    found = scored(logits, tokens, prefix)
    check(f"{name}: relative difference of perplexities", abs(found / measured["ppl"] - 1), 2e-3)


def check_batch(name, config, model, tokens):
    """Logits of a padded batch, in a prefill and in steps, and of its sequences alone; the beams of a sequence."""
    most = max(LENGTHS)
    ids, mask = torch.zeros(3, most + 4, dtype=torch.long), torch.zeros(3, most + 4, dtype=torch.long)
    alone = []
    for n, length in enumerate(LENGTHS):
        ids[n, most - length:] = torch.tensor(tokens[n:n + length + 4])
        mask[n, most - length:] = 1
        cache = CalibratedCache.from_config(config, model)
        alone.append(torch.cat([model(piece[None], **{CACHE: cache}).logits[0]
                                for piece in ids[n, most - length:].split([length, 1, 3])]))
    cache, positions = CalibratedCache.from_config(config, model), (mask.cumsum(-1) - 1).clamp_min(0)
    found = torch.cat([model(ids[:, first:last], attention_mask=mask[:, :last], position_ids=positions[:, first:last],
                             **{CACHE: cache}).logits
                       for first, last in ((0, most), (most, most + 1), (most + 1, most + 4))], 1)
    check(f"{name}: logits of a padded batch and of single sequences",
          max((found[n, most - length:] - alone[n]).abs().max().item() for n, length in enumerate(LENGTHS)), 2e-3)
    layers = [layer for layer in cache.layers if hasattr(layer, "sequences")]  # recurrent layers cannot select
    for layer in layers:
        layer.reorder_cache(torch.tensor([2, 0, 0]))
        layer.batch_select_indices(torch.tensor([0, 2]))
        layer.batch_repeat_interleave(2)
        assert [sequence.seen for sequence in layer.sequences] == [LENGTHS[2] + 4] * 2 + [LENGTHS[0] + 4] * 2


def check_beams(name, config, model, tokens):
    """The full cache's beams are those of DynamicCache."""
    prompt = torch.tensor([tokens[:30]])
    cache = CalibratedCache.from_config(config, model)
    ours, theirs = (model.generate(prompt, max_new_tokens=5, num_beams=3, do_sample=False, **extra).tolist()
                    for extra in ({CACHE: cache}, {}))
    assert ours == theirs, (name, ours, theirs)
    print(f"{name}: beams of the full cache are equal")


for kind, changes in KINDS.items():
    folder, model = make(kind, changes)
    tokens = torch.randint(3, 128, (48,)).tolist()
    config, measured = save_config(tokens, "full", model=folder)
    try:
        CalibratedCache.from_config(config, model)
    except ConfigError as error:
        if kind != "lfm2" or "recurrent" not in str(error):
            raise
        print(f"Transformers {transformers.__version__}: refused: {error}")
        continue
    check_perplexity(f"{kind}, full", config, measured, model, tokens, 0)
    check_beams(kind, config, model, tokens)
    for method, *settings in METHODS if kind == "llama" else METHODS[:3]:
        name = f"{kind}, {method}"
        config, measured = save_config(tokens, method, *settings, model=folder)
        check_perplexity(name, config, measured, model, tokens, 20 if "prefix=20" in settings else 0)
        check_batch(name, config, model, tokens)
