#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of OSCAR on the formula Qwen 3 of parity/qwen3.json (QK-norm, grouped queries), by a decoder of its own in
NumPy and double: the rotations of one KV head from the first 160 tokens of parity/tokens.json, the codes of two rows,
and the NLL of all 300 tokens, one at a time, with caches in 2 bits (Zhou et al. 2026, sections 3 and 4; docs/oscar.md
for what differs here).

Usage: make_oscar.py OUT.json        (needs numpy)
"""
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CALIBRATED, SHOWN = 160, (1, 1)  # tokens; layer and KV head
CASES = [{"sinks": 4, "recent": 16, "clip_k": 1.0, "clip_v": 1.0},
         {"sinks": 0, "recent": 1, "group": 4, "clip_k": 0.9, "clip_v": 0.8},
         {"sinks": 2, "recent": 40, "group": 8, "clip_k": 0.5, "clip_v": 0.92}]

golden = json.loads((HERE / "parity/qwen3.json").read_text())
tokens = json.loads((HERE / "parity/tokens.json").read_text())
config = golden["config"]
HEADS, KV_HEADS, DIM = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
GROUP, HALF, LAYERS = HEADS // KV_HEADS, DIM // 2, config["num_hidden_layers"]
OMEGA = 10000.0 ** (-np.arange(HALF) / HALF) / config["rope_parameters"]["factor"]


def random_values(seed, count):
    """splitmix64, the top 24 bits, in [-1, 1)"""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float32) * np.float32(2**-23) - np.float32(1)


def weight(name):
    """tests/model/formula_model.h"""
    shape = golden["tensors"][name]
    seed = 0xcbf29ce484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001b3 % 2**64
    scale = np.float32(2 / np.sqrt(shape[1])) if len(shape) == 2 else np.float32(0.25)
    value = random_values(seed, int(np.prod(shape))) * scale
    return (value + (1 if len(shape) == 1 else 0)).astype(np.float32).reshape(shape).astype(np.float64)


weights = {name: weight(name) for name in golden["tensors"]}


def norm(x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * gain


def at(x, position):
    """Rotates channels (c, c + HALF) as RoPE does."""
    turned = (x[..., :HALF] + 1j * x[..., HALF:]) * np.exp(1j * OMEGA * position)
    return np.concatenate([turned.real, turned.imag], -1)


def rotation(covariance):
    """U H P"""
    values, vectors = np.linalg.eigh(covariance)
    basis = vectors[:, np.argsort(-values)]
    basis = basis * np.sign(basis[np.argmax(abs(basis), 0), np.arange(DIM)])
    hadamard = np.ones((1, 1))
    while len(hadamard) < DIM:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    mixed, bits = basis @ hadamard / np.sqrt(DIM), DIM.bit_length() - 1
    order = [int(f"{n:0{bits}b}"[::-1], 2) for n in range(DIM)]
    return mixed[:, order].astype(np.float32).astype(np.float64)


def clipped(row, quantile):
    limit = np.sort(abs(row))[min(int(quantile * DIM), DIM - 1)]
    return np.clip(row, -limit, limit)


def coded(row, quantile, group):
    """@return minima, steps, codes; the codes are of the rounded minimum and step"""
    parts = clipped(row, quantile).reshape(-1, min(group, DIM))
    low = parts.min(-1).astype(np.float16).astype(np.float64)[:, None]
    step = (np.ptp(parts, axis=-1) / 3).astype(np.float16).astype(np.float64)[:, None]
    return low, step, np.clip(np.rint((parts - low) / np.where(step > 0, step, np.inf)), 0, 3)


def decoded(row, quantile, group):
    low, step, codes = coded(row, quantile, group)
    return (low + step * codes).reshape(-1)


class Layer:
    """A layer with the rows of each KV head: rotated keys and values, coded or not."""

    def __init__(self, index, rotations, settings):
        prefix = f"model.layers.{index}."
        self.w = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
        self.turns = rotations[index] if rotations else [(np.eye(DIM), np.eye(DIM))] * KV_HEADS
        self.settings = settings
        self.rows = [[[], []] for _ in range(KV_HEADS)]
        self.covariances = np.zeros((KV_HEADS, 2, DIM, DIM))

    def project(self, x, side, heads):
        states = (self.w[f"self_attn.{side}_proj.weight"] @ x).reshape(heads, DIM)
        return norm(states, self.w[f"self_attn.{side}_norm.weight"]) if side in "qk" else states

    def attend(self, hidden, position):
        x = norm(hidden, self.w["input_layernorm.weight"])
        q, k, v = self.project(x, "q", HEADS), self.project(x, "k", KV_HEADS), self.project(x, "v", KV_HEADS)
        q, k = at(q, position), at(k, position)
        out = []
        for head in range(KV_HEADS):
            turn_k, turn_v = self.turns[head]
            keys, values = self.rows[head]
            keys.append(k[head] @ turn_k)
            values.append(v[head] @ turn_v)
            for query in q[head * GROUP:(head + 1) * GROUP]:
                logits = np.array(keys) @ (query @ turn_k) / np.sqrt(DIM)
                p = np.exp(logits - logits.max())
                one = p @ np.array(values) / p.sum() @ turn_v.T
                self.covariances[head][0] += np.outer(query, query)
                self.covariances[head][1] += np.outer(one, one)
                out.append(one)
            self.code(head)
        hidden = hidden + self.w["self_attn.o_proj.weight"] @ np.concatenate(out)
        x = norm(hidden, self.w["post_attention_layernorm.weight"])
        gate = self.w["mlp.gate_proj.weight"] @ x
        return hidden + self.w["mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * (self.w["mlp.up_proj.weight"] @ x))

    def code(self, head):
        """Codes the row of the token that leaves the last ones."""
        if not self.settings:
            return
        old = len(self.rows[head][0]) - self.settings["recent"] - 1
        if old >= self.settings["sinks"]:
            for rows, side in zip(self.rows[head], "kv"):
                rows[old] = decoded(rows[old], self.settings["clip_" + side], self.settings.get("group", 128))


def run(ids, rotations=None, settings=None):
    """@return the mean NLL of the tokens after the first, the layers"""
    layers = [Layer(index, rotations, settings) for index in range(LAYERS)]
    losses = []
    for position, token in enumerate(ids):
        hidden = weights["model.embed_tokens.weight"][token]
        for layer in layers:
            hidden = layer.attend(hidden, position)
        logits = weights["lm_head.weight"] @ norm(hidden, weights["model.norm.weight"])
        if position + 1 < len(ids):
            losses.append(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[ids[position + 1]])
    return float(np.mean(losses)), layers


_, calibrated = run(tokens[:CALIBRATED])
rotations = [[tuple(rotation(side) for side in head) for head in layer.covariances] for layer in calibrated]
nll_full, _ = run(tokens)
of_layer, of_head = SHOWN
keys, values = rotations[of_layer][of_head]
row = random_values(5, DIM).astype(np.float64)
codes = [{"quantile": quantile, "group": group, "codes": coded(row @ keys, quantile, group)[2].astype(int).ravel().tolist(),
          "decoded": decoded(row @ keys, quantile, group).tolist()} for quantile, group in ((1.0, 128), (0.8, 4))]
out = {"source": "NumPy, double: make_oscar.py", "calibrated": CALIBRATED, "shown": SHOWN, "nll_full": nll_full,
       "covariance": calibrated[of_layer].covariances[of_head].tolist(), "keys": keys.ravel().tolist(),
       "values": values.ravel().tolist(), "row": row.tolist(), "rows": codes,
       "cases": [{"settings": settings, "nll": run(tokens, rotations, settings)[0]} for settings in CASES]}
Path(sys.argv[1]).write_text(json.dumps(out) + "\n")
print(nll_full, [case["nll"] for case in out["cases"]])
