# SPDX-License-Identifier: Apache-2.0
"""--to triattention: read by torch.load, with the queries that Transformers computes, after QK-norm; the cache of the
package on the same config."""

import json
import subprocess

import torch
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from adapters import CACHE, evaluate, scored
from exports import FOLDER, check, export, run, tiny_model
from kvspectrum import CalibratedCache


def tiny_qwen(number):
    """A random Qwen 3, that is with QK-norm, and 64 token ids."""
    torch.manual_seed(number)
    source = FOLDER / "tiny_qwen"
    model = Qwen3ForCausalLM(Qwen3Config(
        hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, vocab_size=128, max_position_embeddings=256, initializer_range=0.2))
    for layer in model.model.layers:
        torch.nn.init.uniform_(layer.self_attn.q_norm.weight, 0.5, 2)
        torch.nn.init.uniform_(layer.self_attn.k_norm.weight, 0.5, 2)
    model.save_pretrained(source)
    return source, torch.randint(0, 128, (64,)).tolist()


def queries(model, ids):
    """[layer][query_head, token, head_dim] before RoPE"""
    found = []
    for layer in model.model.layers:
        attention = layer.self_attn
        last = attention.q_norm if hasattr(attention, "q_norm") else attention.q_proj
        last.register_forward_hook(lambda _, __, out: found.append(out.view(len(ids), 4, 16).transpose(0, 1)))
    model(torch.tensor([ids]))
    return found


def statistics_of(source, ids, name):
    file, config = FOLDER / f"{name}.jsonl", FOLDER / f"{name}.json"
    file.write_text(json.dumps(ids) + "\n")
    run("kvcalibrate", "triattention", "--model", source, "--tokens-file", file, "--window", len(ids), "--set",
        "cache_size=24", "interval=4", "recent=4", "--out", config, "--force", "--quiet")
    return config, torch.load(export("triattention", config, source, FOLDER / f"{name}.pt"), weights_only=True)


def check_model(name, source, ids):
    config, file = statistics_of(source, ids, name)
    metadata, stats = file["metadata"], file["stats"]
    assert metadata["head_dim"] == 16 and metadata["rope_style"] == "half" and metadata["rope_type"] == "default"
    assert metadata["sampled_heads"] == [[layer, head] for layer in range(3) for head in range(4)]
    assert set(stats) == {f"layer{layer:02d}_head{head:02d}" for layer, head in metadata["sampled_heads"]}
    model = AutoModelForCausalLM.from_pretrained(source)
    for layer, q in enumerate(queries(model, ids)):
        pairs = torch.complex(q[..., :8], q[..., 8:])
        for head in range(4):
            one = stats[f"layer{layer:02d}_head{head:02d}"]
            mean = torch.complex(one["q_mean_real"], one["q_mean_imag"])
            assert mean.shape == one["q_abs_mean"].shape == (8,) and one["q_abs_mean"].dtype == torch.float32
            torch.testing.assert_close(mean, pairs[head].mean(0), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(one["q_abs_mean"], pairs[head].abs().mean(0), rtol=1e-4, atol=1e-5)
    model = AutoModelForCausalLM.from_pretrained(source)
    theirs = scored(model(torch.tensor([ids]), **{CACHE: CalibratedCache.from_config(config, model)}).logits[0], ids, 0)
    ours = evaluate(ids, "--config", config, "--reference", "none", model=source)
    assert ours["compressions"] == 10  # of 64 tokens the 25th, 29th, … 61st find the cache full
    check(f"triattention, {name}: {ours['ppl']:.4f} ours, {theirs:.4f} in Transformers, relative difference",
          abs(theirs / ours["ppl"] - 1), 1e-4)
    return config


check_model("llama", *tiny_model(5))
config = check_model("qwen3", *tiny_qwen(6))
for rope in ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},):
    source, ids = tiny_model(7, **rope)
    config, file = statistics_of(source, ids, "yarn")
    assert file["metadata"]["rope_type"] == "yarn"
    model = AutoModelForCausalLM.from_pretrained(source)
    theirs = scored(model(torch.tensor([ids]), **{CACHE: CalibratedCache.from_config(config, model)}).logits[0], ids, 0)
    ours = evaluate(ids, "--config", config, "--reference", "none", model=source)["ppl"]
    check("triattention, YaRN: relative difference", abs(theirs / ours - 1), 1e-4)

source, _ = tiny_model(8)
try:
    export("triattention", config, source, FOLDER / "refused.pt")  # of another model
except subprocess.CalledProcessError as error:
    assert error.returncode == 7
else:
    raise AssertionError("a config of another model was not refused")
