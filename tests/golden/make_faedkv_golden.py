#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the FAEDKV ablation's reference values out of a reference file made with PyTorch and Transformers (float32, eager
attention, SmolLM2-135M-Instruct Q4_1, 512 tokens of Newton's Opticks, 8 half-spectrum DFT chunks, in-place, K and V filtered by
torch.fft in float64): datasets tokens [512], faedkv/delta/{k_pre,k_post} [layers 0 14 29, chunk].

Usage: make_faedkv_golden.py REFERENCE.h5 OUT.json
"""
import json
import sys

import h5py

with h5py.File(sys.argv[1]) as h:
    out = {
        "source": "PyTorch 2 + Transformers 5, float32, in-place ablation, 8 half-spectrum DFT chunks",
        "tokens": h["tokens"][:].tolist(),
        "perplexity": float(h.attrs["perplexity"]),
        "layers": [0, 14, 29],
        "delta": {space: h[f"faedkv/delta/{space}"][:].tolist() for space in ("k_pre", "k_post")},
    }
json.dump(out, open(sys.argv[2], "w"))
