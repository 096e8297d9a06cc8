#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden rows in fp8_e5m2, by torch's cast, and in nvfp4, by compressed-tensors (scales, codes and values).

Usage: make_float_rows.py > float_rows.json       (needs pip: torch, compressed-tensors)
"""

import json

import torch
from compressed_tensors.quantization import QuantizationArgs, QuantizationStrategy, QuantizationType
from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
from compressed_tensors.quantization.utils.helpers import calculate_qparams, generate_gparam

ROWS, WIDTH, BLOCK = 6, 64, 16
CODES = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def states():
    """Rows of several magnitudes: one of zeros, one with blocks below the least scale, one with an outlier."""
    torch.manual_seed(20261127)
    x = torch.randn(ROWS, WIDTH) * torch.tensor([1.0, 20.0, 0.01, 0.0, 1.0, 3.0])[:, None]
    x[4, :BLOCK] *= 1e-7
    x[5, 40] = 300.0
    return x


def e5m2(x, scale):
    return (x / scale).clamp(-57344, 57344).to(torch.float8_e5m2)


def nvfp4(x):
    """Returns 1 / global scale, the block's scales and the values."""
    args = QuantizationArgs(num_bits=4, type=QuantizationType.FLOAT, strategy=QuantizationStrategy.TENSOR_GROUP,
                            group_size=BLOCK, symmetric=True, scale_dtype=torch.float8_e4m3fn)
    glob = generate_gparam(x.min(), x.max())
    blocks = x.reshape(ROWS, WIDTH // BLOCK, BLOCK)
    scales, zeros = calculate_qparams(blocks.amin(-1), blocks.amax(-1), args, glob)
    codes = quantize(x, scales.float(), zeros, args, global_scale=glob)
    values = dequantize(codes, scales.float(), zeros, args, global_scale=glob)
    # compressed-tensors divides by the least number where a scale rounds to 0; the values are 0 in both.
    empty = (glob * blocks.abs().amax(-1) / 6).to(torch.float8_e4m3fn).float() == 0
    scales, codes = scales.float(), codes.reshape(blocks.shape).clone()
    scales[empty], codes[empty] = 0, 0
    return 1 / glob.item(), scales.to(torch.float8_e4m3fn), codes, values


def rows_of_bytes(codes, scales):
    """As the cache stores them: 16 codes in 8 bytes (byte j: code j, then code j + 8 in the high bits), the scale."""
    out = []
    for row, by_block in zip(codes.reshape(ROWS, -1, BLOCK), scales.reshape(ROWS, -1)):
        text = bytearray()
        for block, scale in zip(row, by_block.view(torch.uint8)):
            nibbles = [CODES.index(abs(value.item())) | (8 if torch.signbit(value) else 0) for value in block]
            text += bytes(nibbles[j] | nibbles[j + 8] << 4 for j in range(8)) + bytes([scale.item()])
        out.append(text.hex())
    return out


def main():
    x = states()
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e5m2).float()
    finite = every[torch.isfinite(every) & (every >= 0)].sort().values  # ties lie half way between neighbours
    edges = torch.cat([finite, (finite[1:] + finite[:-1]) / 2, -finite])
    g, scales, codes, values = nvfp4(x)
    print(json.dumps({
        "source": "tests/golden/make_float_rows.py: torch 2.15.0, compressed-tensors 0.20.0",
        "x": x.tolist(),
        "e5m2 edges": edges.tolist(),
        "e5m2 of edges": e5m2(edges, 1.0).view(torch.uint8).tolist(),
        "e5m2 scale 0.25": e5m2(x, 0.25).view(torch.uint8).tolist(),
        "e5m2 values": (e5m2(x, 0.25).float() * 0.25).tolist(),
        "nvfp4 g": g,
        "nvfp4 bytes": rows_of_bytes(codes, scales),
        "nvfp4 values": values.tolist(),
    }))


main()
