"""elitekv-rank and mha2mla-rank as their projects' scripts read them."""

import json
import pickle

import torch

from exports import FOLDER, MODEL, export, smollm2_config

config = smollm2_config()
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
