#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of RoPElite, LagKV and FreqKV, by PyTorch, NumPy and SciPy, for one KV head of a real model.

Usage: make_elite_golden.py REFERENCE.h5 OUT_DIR

REFERENCE.h5 holds SmolLM2-135M-Instruct (Q4_1 GGUF, widened to f32, run by Transformers in f32) on the first 512 tokens
of Newton's Opticks: `states/{q_pre,k_pre,k_post,v}/14` [heads, tokens, head_dim], rotate-half pairing. KV head 1 of layer
14 and its query heads 3, 4, 5 are taken; make_spectrum.py writes the same head's v.

Writes elite_q_layer14_group1.f32 [3, 512, 64], elite_k_layer14_head1.f32 [512, 64] and opticks512_elite.json.
"""
import json
import math
import sys

import h5py
import numpy as np
import torch
from scipy.fft import dct, idct

PICKS, SINKS, LAG, RATIO = 8, 16, 64, 0.25


def chunk_score_differences(q, k, cos, sin):
    """[chunk, i, j]: rotated minus unrotated contribution of a chunk to q_i . k_j, zero for j > i. float64."""
    t, half = q.shape[0], q.shape[1] // 2
    q, k = q.double(), k.double()
    rotate = lambda x: (x[:, :half] * cos - x[:, half:] * sin, x[:, half:] * cos + x[:, :half] * sin)
    (qa, qb), (ka, kb) = rotate(q), rotate(k)
    causal = torch.tril(torch.ones(t, t, dtype=torch.float64))
    out = torch.empty(half, t, t, dtype=torch.float64)
    for c in range(half):
        rotated = torch.outer(qa[:, c], ka[:, c]) + torch.outer(qb[:, c], kb[:, c])
        plain = torch.outer(q[:, c], k[:, c]) + torch.outer(q[:, c + half], k[:, c + half])
        out[c] = (rotated - plain) * causal
    return out


def ropelite(differences, picks, p):
    """Greedy: rotate the chunk that leaves the smallest p-norm score error summed over the heads."""
    left, chunks, errors = [d.sum(0) for d in differences], [], []
    for _ in range(picks):
        candidates = [c for c in range(differences[0].shape[0]) if c not in chunks]
        error, c = min((sum(((l - d[c]).abs() ** p).sum().item() for l, d in zip(left, differences)), c) for c in candidates)
        chunks.append(c)
        errors.append(error)
        left = [l - d[c] for l, d in zip(left, differences)]
    return {"chunks": chunks, "errors": errors}


def lagkv_keep(k, v):
    t, keep = k.shape[0], list(range(SINKS))

    def score(x, reference):
        low, high = reference.min(0), reference.max(0)
        s = np.exp(((x - low) / (high - low)).std(1, ddof=1))
        return s / s.sum()

    parts = (t - SINKS) // LAG
    for p in range(parts - 1):
        a, b, e = SINKS + p * LAG, SINKS + (p + 1) * LAG, SINKS + (p + 2) * LAG
        s = score(k[a:b], k[b:e]) + score(v[a:b], v[b:e])
        keep += sorted(a + np.argsort(-s, kind="stable")[: int(RATIO * LAG)])
    return [int(i) for i in keep] + list(range(SINKS + (parts - 1) * LAG, t))


def main():
    reference, out = sys.argv[1:]
    with h5py.File(reference) as h:
        q = h["states/q_pre/14"][3:6]
        k, k_post, v = (h[f"states/{kind}/14"][1] for kind in ("k_pre", "k_post", "v"))
    q.astype("<f4").tofile(f"{out}/elite_q_layer14_group1.f32")
    k.astype("<f4").tofile(f"{out}/elite_k_layer14_head1.f32")

    frequencies = 1.0 / 1e5 ** (torch.arange(0, 64, 2, dtype=torch.int64).float() / 64)
    angles = torch.arange(512).float()[:, None] * frequencies[None]
    cos, sin = angles.cos().double(), angles.sin().double()
    differences = [chunk_score_differences(torch.from_numpy(head), torch.from_numpy(k), cos, sin) for head in q]
    golden = {}
    for p in (1, 2):
        golden[f"head_l{p}"] = [ropelite([d], PICKS, p) for d in differences]
        golden[f"group_l{p}"] = ropelite(differences, PICKS, p)
    golden["lagkv_keep"] = lagkv_keep(k_post.astype(np.float64), v.astype(np.float64))
    body = k[4:].astype(np.float64)
    length = len(body) // 2
    compressed = idct(dct(body, axis=0, norm="ortho")[:length], axis=0, norm="ortho") * math.sqrt(length / len(body))
    golden["freqkv_k_every_17th"] = [[float(f"{x:.9g}") for x in row] for row in compressed.astype(np.float32)[::17]]
    with open(f"{out}/opticks512_elite.json", "w") as f:
        f.write(json.dumps(golden).replace("], ", "],\n").replace("}, ", "},\n") + "\n")


if __name__ == "__main__":
    main()
