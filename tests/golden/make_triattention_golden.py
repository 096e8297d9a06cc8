#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of TriAttention on the formula Qwen 3 of parity/qwen3.json (QK-norm, grouped queries, RoPE stretched by 4), by a
decoder of its own in NumPy and double: the mean queries of the first 160 tokens of parity/tokens.json, and the NLL of
all 300 tokens, one at a time, with caches that drop tokens by them. Scores are sums over bands and over the distances
of future queries, of complex numbers, with keys before RoPE (Mao et al. 2026, equations 6 to 13).

Usage: make_triattention_golden.py OUT.json        (needs numpy)
"""
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CALIBRATED = 160  # tokens
CASES = [{"cache_size": 48, "interval": 16}, {"cache_size": 40, "interval": 1, "sinks": 2, "recent": 6},
         {"cache_size": 64, "interval": 40, "recent": 8, "horizon": 100}]

golden = json.loads((HERE / "parity/qwen3.json").read_text())
tokens = json.loads((HERE / "parity/tokens.json").read_text())
config = golden["config"]
HEADS, KV_HEADS, DIM = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
GROUP, HALF, LAYERS = HEADS // KV_HEADS, DIM // 2, config["num_hidden_layers"]
OMEGA = 10000.0 ** (-np.arange(HALF) / HALF) / config["rope_parameters"]["factor"]


def weight(name):
    """tests/model/formula_model.h"""
    shape = golden["tensors"][name]
    seed = 0xcbf29ce484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001b3 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, np.prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z ^= z >> np.uint64(31)
    scale = np.float32(2 / np.sqrt(shape[1])) if len(shape) == 2 else np.float32(0.25)
    value = ((z >> np.uint64(40)).astype(np.float32) * np.float32(2**-23) - np.float32(1)) * scale
    return (value + (1 if len(shape) == 1 else 0)).astype(np.float32).reshape(shape).astype(np.float64)


weights = {name: weight(name) for name in golden["tensors"]}


def norm(x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * gain


def chunks(x):
    """Chunk c as the complex number x[c] + i x[c + HALF]."""
    return x[..., :HALF] + 1j * x[..., HALF:]


def rotated(x, positions):
    turned = chunks(x) * np.exp(1j * OMEGA * np.asarray(positions)[:, None])
    return np.concatenate([turned.real, turned.imag], -1)


class Layer:
    """A layer with the rows that its cache holds: of each KV head positions, keys before RoPE and values."""

    def __init__(self, index):
        prefix = f"model.layers.{index}."
        self.w = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
        self.held = [[] for _ in range(KV_HEADS)]
        self.queries = []

    def project(self, x, side, heads):
        states = (self.w[f"self_attn.{side}_proj.weight"] @ x).reshape(heads, DIM)
        return norm(states, self.w[f"self_attn.{side}_norm.weight"]) if side in "qk" else states

    def attend(self, hidden, position, drop):
        x = norm(hidden, self.w["input_layernorm.weight"])
        q, k, v = self.project(x, "q", HEADS), self.project(x, "k", KV_HEADS), self.project(x, "v", KV_HEADS)
        self.queries.append(q)
        out = []
        for head in range(KV_HEADS):
            drop(self, head)
            self.held[head].append((position, k[head], v[head]))
            positions, keys, values = (np.array(column) for column in zip(*self.held[head]))
            for query in q[head * GROUP:(head + 1) * GROUP]:
                logits = rotated(keys, positions) @ rotated(query[None], [position])[0] / np.sqrt(DIM)
                p = np.exp(logits - logits.max())
                out.append(p @ values / p.sum())
        hidden = hidden + self.w["self_attn.o_proj.weight"] @ np.concatenate(out)
        x = norm(hidden, self.w["post_attention_layernorm.weight"])
        gate = self.w["mlp.gate_proj.weight"] @ x
        return hidden + self.w["mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * (self.w["mlp.up_proj.weight"] @ x))


def run(ids, drop):
    """@return the mean NLL of the tokens after the first, the layers"""
    layers = [Layer(index) for index in range(LAYERS)]
    losses = []
    for position, token in enumerate(ids):
        hidden = weights["model.embed_tokens.weight"][token]
        for layer in layers:
            hidden = layer.attend(hidden, position, drop)
        logits = weights["lm_head.weight"] @ norm(hidden, weights["model.norm.weight"])
        if position + 1 < len(ids):
            losses.append(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[ids[position + 1]])
    return float(np.mean(losses)), layers


def statistics(layers):
    """[layer][query_head, chunk]: E q_f, E |q_f|"""
    q = [chunks(np.array(layer.queries)) for layer in layers]
    return [one.mean(0) for one in q], [abs(one).mean(0) for one in q]


def score(keys, positions, last, mean, magnitude, horizon):
    """@param keys  [row, chunk], before RoPE;  mean, magnitude [chunk] of one query head"""
    offsets = 2 ** np.arange(int(np.log2(horizon)) + 1)
    distance = last + offsets[None, :] - positions[:, None]  # [row, offset]
    phase = np.angle(mean) - np.angle(keys)
    trig = (abs(mean) * abs(keys))[:, None] * np.cos(OMEGA * distance[..., None] + phase[:, None])
    concentration = abs(mean) / magnitude
    return trig.sum(-1).mean(-1) + ((1 - concentration) * magnitude * abs(keys)).sum(-1)


def dropping(means, magnitudes, layers, cache_size, interval, sinks=0, recent=0, horizon=65536):
    def drop(layer, head):
        held = layer.held[head]
        if len(held) < cache_size:
            return
        last = held[-1][0]
        positions, keys = np.array([row[0] for row in held]), chunks(np.array([row[1] for row in held]))
        among = slice(sinks, len(held) - recent)
        index = layers.index(layer)
        best = np.full(len(held) - sinks - recent, -np.inf)
        for query in range(head * GROUP, (head + 1) * GROUP):
            one = score(keys[among], positions[among], last, means[index][query], magnitudes[index][query], horizon)
            best = np.maximum(best, (one - one.mean()) / one.std())
        kept = sorted(np.argsort(-best, kind="stable")[:cache_size - interval - sinks - recent] + sinks)
        layer.held[head] = held[:sinks] + [held[n] for n in kept] + held[len(held) - recent:]
    return drop


def measured(means, magnitudes, settings):
    layers = []

    def drop(layer, head):
        if layer not in layers:
            layers.append(layer)
        dropping(means, magnitudes, layers, **settings)(layer, head)

    nll, after = run(tokens, drop)
    return {"settings": settings, "nll": nll, "positions": [[[row[0] for row in head] for head in layer.held]
                                                            for layer in after]}


nll_full, layers = run(tokens, lambda layer, head: None)
_, calibrated = run(tokens[:CALIBRATED], lambda layer, head: None)
means, magnitudes = statistics(calibrated)
in_channels = [np.concatenate([one.real, one.imag], -1).tolist() for one in means]
out = {"source": "NumPy, double: make_triattention_golden.py", "calibrated": CALIBRATED, "nll_full": nll_full,
       "mean": in_channels, "magnitude": [one.tolist() for one in magnitudes],
       "cases": [measured(means, magnitudes, settings) for settings in CASES]}
Path(sys.argv[1]).write_text(json.dumps(out) + "\n")
print(nll_full, [case["nll"] for case in out["cases"]])
