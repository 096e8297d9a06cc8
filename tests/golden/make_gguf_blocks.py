#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of GGUF's quantised blocks, by the Python package gguf (version 0.19.0).

Usage: make_gguf_blocks.py > gguf_blocks.json

Each type has BLOCKS blocks of random bytes: the outputs of MT19937 (seed 20240607) as little-endian words, which C++'s
std::mt19937 also gives. An f16 scale whose exponent is all ones (infinite or NaN) loses its exponent's top bit. Kept are
`first`, the bits of the first block's numbers as gguf.quants.dequantize() gives them, and `sha256` of all blocks' f32
bytes. `scales` are the offsets of the f16 fields. `masks` are offsets of bytes with the bits that remain in them; the
type IQ1_M keeps its f16 field in parts.
"""
import hashlib
import json

import gguf
import numpy as np

BLOCKS = 1000
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
          "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
          "TQ1_0": [52], "TQ2_0": [64], "NVFP4": []}
MASKS = {"IQ1_M": [[55, 0xBF]]}


def random_blocks(block_bytes, scales, masks):
    count = -(-BLOCKS * block_bytes // 4) * 4
    stream = np.frombuffer(np.random.RandomState(20240607).bytes(count), dtype=np.uint8)
    blocks = stream[: BLOCKS * block_bytes].reshape(BLOCKS, block_bytes).copy()
    for offset in scales:
        high = blocks[:, offset + 1]
        high[(high & 0x7C) == 0x7C] &= 0xBF
    for offset, mask in masks:
        blocks[:, offset] &= mask
    return blocks


golden = {}
for name, scales in SCALES.items():
    kind = gguf.GGMLQuantizationType[name]
    block_values, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    masks = MASKS.get(name, [])
    values = gguf.quants.dequantize(random_blocks(block_bytes, scales, masks), kind)
    values = np.ascontiguousarray(values, dtype="<f4").ravel()
    assert values.size == BLOCKS * block_values
    golden[name] = {"blocks": BLOCKS, "scales": scales, "masks": masks,
                    "sha256": hashlib.sha256(values.tobytes()).hexdigest(), "first": values[:block_values].view(np.uint32).tolist()}
lines = (f'  "{name}": {json.dumps(entry)}' for name, entry in golden.items())
print("{\n" + ",\n".join(lines) + "\n}")
