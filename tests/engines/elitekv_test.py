# SPDX-License-Identifier: Apache-2.0
"""elitekv, elitekv-rank and mha2mla-rank as their projects' scripts read and make them."""

import json
import pickle
import subprocess

import torch
from safetensors.torch import load_file

from exports import FOLDER, MODEL, SMOLLM2_CONFIG, check, export, tiny_config, tiny_config_by_layer, tiny_model

config = SMOLLM2_CONFIG
elite = json.loads(config.read_text())["parameters"]["elite"]
chunks, group = 32, 3

ranks = torch.load(export("mha2mla-rank", config, MODEL, FOLDER / "ranks.pt"), weights_only=True)
assert ranks.dtype == torch.uint8 and ranks.shape == (30, 3, 64)
assert torch.equal(ranks[..., :chunks], ranks[..., chunks:])
with open(export("elitekv-rank", config, MODEL, FOLDER / "RoPElite_10.pkl"), "rb") as file:
    pickled = pickle.load(file)["rank"]
for layer, heads in enumerate(elite):
    assert pickled[layer].dtype == torch.int64 and pickled[layer].shape == (9, chunks)
    for head, picks in enumerate(heads):
        assert ranks[layer, head, :chunks].argsort()[:10].tolist() == picks
        for row in pickled[layer][head * group:(head + 1) * group].tolist():
            assert row[:10] == picks and sorted(row) == list(range(chunks))
print(f"{len(elite)} layers, {len(elite[0])} heads: sets as in the config")

# The converted tensors in convert.py's layout: [head, half, chunk] with the elite chunks taken out.
source, _ = tiny_model(1)
config = tiny_config(source)
folder = export("elitekv", config, source, FOLDER / "elitekv")
stated = json.loads((folder / "config.json").read_text())
assert (stated["half_of_rope_dim"], stated["kv_dim"]) == (3, 40)
before, after = load_file(source / "model.safetensors"), load_file(folder / "model.safetensors")
factors = load_file(config.with_suffix(".safetensors"))
with open(folder / "RoPElite_3.pkl", "rb") as file:
    rank = pickle.load(file)["rank"]
for layer in range(3):
    name = f"model.layers.{layer}.self_attn."
    plain = torch.ones(4, 2, 8, dtype=torch.bool)
    plain.transpose(1, 2)[torch.arange(4)[:, None], rank[layer][:, :3]] = False
    queries = factors[f"layers.{layer}.query"].view(4, 2, 8, 64)  # fitted, in place of q_proj
    assert torch.equal(after[name + "q_nope_proj.weight"], queries[plain])
    assert torch.equal(after[name + "q_rope_proj.weight"], queries[~plain])
    keys, plain = before[name + "k_proj.weight"].view(2, 2, 8, 64), plain[::2]
    assert torch.equal(after[name + "k_rope_proj.weight"], keys[~plain])
    both = (after[name + "kv_b_proj.weight"] @ after[name + "kv_a_proj.weight"]).view(2, 10 + 16, 64)
    product = factors[f"layers.{layer}.up"] @ factors[f"layers.{layer}.down"]
    found = torch.cat([both[:, :10].reshape(20, 64), both[:, 10:].reshape(32, 64)])
    check(f"layer {layer}: kv_b_proj · kv_a_proj", (found - product).abs().max().item(), 1e-5)

# Layers of a smaller rank get zeros; config.json states only one r.
folder = export("elitekv", tiny_config_by_layer(source, elite=3), source, FOLDER / "elitekv")
after, factors = load_file(folder / "model.safetensors"), load_file(config.with_suffix(".safetensors"))
name = "model.layers.1.self_attn."
assert after[name + "kv_a_proj.weight"].shape == (40, 64) and after[name + "kv_b_proj.weight"].shape == (2 * 26, 40)
assert not after[name + "kv_a_proj.weight"][24:].any() and not after[name + "kv_b_proj.weight"][:, 24:].any()
assert torch.equal(after[name + "kv_a_proj.weight"][:24], factors["layers.1.down"])
for target in ("elitekv", "elitekv-rank", "mha2mla-rank"):
    try:
        export(target, tiny_config_by_layer(source), source, FOLDER / "refused")
    except subprocess.CalledProcessError as error:
        assert error.returncode == 4
    else:
        raise AssertionError(f"{target}: different r were not refused")
