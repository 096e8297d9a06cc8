#!/usr/bin/env python3
"""Golden values of GGUF's quantised blocks, by the Python package gguf (version 0.19.0).

Usage: make_gguf_blocks.py > gguf_blocks.json

For each type two random blocks, with scales (and minima) of ordinary size in the first and f16 subnormals in the second:
`bytes` as hexadecimal text, `values` as the bits of the f32 numbers that gguf.quants.dequantize() gives.
"""
import json

import gguf
import numpy as np

rng = np.random.default_rng(20240607)
golden = {}
for name in ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"):
    kind = gguf.GGMLQuantizationType[name]
    _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (2, block_bytes), dtype=np.uint8)
    halves = 2 if name.endswith("_1") else 1
    scales = rng.standard_normal((2, halves)).astype(np.float16)
    scales[1] *= np.float16(2.0**-15)
    blocks[:, : 2 * halves] = scales.view(np.uint8)
    values = np.ascontiguousarray(gguf.quants.dequantize(blocks, kind), dtype=np.float32)
    golden[name] = {"bytes": blocks.tobytes().hex(), "values": values.ravel().view(np.uint32).tolist()}
lines = (f'  "{name}": {json.dumps(entry)}' for name, entry in golden.items())
print("{\n" + ",\n".join(lines) + "\n}")
