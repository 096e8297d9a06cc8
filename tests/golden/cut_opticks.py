#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts opticks_smollm2.safetensors and opticks_smollm2.txt from a reference file of SmolLM2-135M on Newton's Opticks.

Usage: cut_opticks.py REFERENCE.h5 EXCERPT.txt        (needs h5py, numpy, safetensors; writes to its own folder)

The reference was computed with PyTorch and Transformers in float32 from the GGUF's dequantised weights on the first 512
tokens of bytes 40,000 to 79,999 of the book (EXCERPT.txt; public domain): `tokens` [512], `nll` [511] in nats, and
states/{q_pre,k_pre,k_post,v}/{0,14,29} [heads, 512, 64] after attention's projections and before or after RoPE,
rotate-half channel order.
Kept are every 37th value of the flattened states and every 111th of q_pre (37 and 111 share no factor with the head
size, so every channel and position occurs). All values are stored as float32.
"""
import os
import sys

import h5py
import numpy as np
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
STRIDE = {"q_pre": 111, "k_pre": 37, "k_post": 37, "v": 37}
TEXT_BYTES = 2500


def main(reference, text):
    with h5py.File(reference) as h:
        tensors = {"tokens": h["tokens"][:].astype(np.float32), "nll": h["nll"][:].astype(np.float32)}
        for kind, stride in STRIDE.items():
            for layer in (0, 14, 29):
                tensors[f"{kind}.{layer}"] = h[f"states/{kind}/{layer}"][:].astype(np.float32).ravel()[::stride].copy()
    save_file(tensors, os.path.join(HERE, "opticks_smollm2.safetensors"))
    with open(text, "rb") as source, open(os.path.join(HERE, "opticks_smollm2.txt"), "wb") as out:
        out.write(source.read(TEXT_BYTES))


if __name__ == "__main__":
    main(*sys.argv[1:])
