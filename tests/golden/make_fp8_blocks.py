#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of F8_E4M3 weights with scales, by PyTorch: the f32 product of each value and its block's scale.

Usage: make_fp8_blocks.py       (rewrites fp8_blocks.safetensors; needs pip: torch, safetensors)

NAME.weight, NAME.weight_scale_inv and NAME.expected for each case. Blocks of 8 rows and 16 columns, if there are
several; `edge` has blocks that are cut short at both edges. All codes but NaN occur in each weight.
"""
import pathlib

import torch
from safetensors.torch import save_file

ROWS, COLUMNS = 8, 16


def weight(rows, columns):
    codes = torch.tensor([code for code in range(256) if code & 0x7F != 0x7F], dtype=torch.uint8)
    return codes.repeat(-(-rows * columns // len(codes)))[: rows * columns].reshape(rows, columns).view(torch.float8_e4m3fn)


def dequantise(values, scales):
    """As Fp8Dequantize in transformers/integrations/finegrained_fp8.py, with blocks that may be cut short."""
    if scales.dtype == torch.uint8:
        scales = (scales.to(torch.float32) - 127.0).exp2()
    scales = scales.to(torch.float32)
    if scales.numel() > 1:
        scales = scales.repeat_interleave(ROWS, 0).repeat_interleave(COLUMNS, 1)[: values.shape[0], : values.shape[1]]
    return values.to(torch.float32) * scales


def main():
    torch.manual_seed(20240607)
    exponents = torch.randint(100, 140, (3, 2), dtype=torch.uint8)
    cases = {
        "whole": (weight(24, 32), torch.rand(3, 2) * 0.02),
        "edge": (weight(21, 29), torch.rand(3, 2) * 0.02),
        "bf16": (weight(24, 32), (torch.rand(3, 2) * 0.02).bfloat16()),
        "e8m0": (weight(24, 32), exponents.view(torch.float8_e8m0fnu)),
        "u8": (weight(24, 32), exponents.clone()),
        "one": (weight(24, 32), torch.rand(()) * 0.02),
        "one_listed": (weight(24, 32), torch.rand(1) * 0.02),
    }
    tensors = {}
    for name, (values, scales) in cases.items():
        tensors[f"{name}.weight"], tensors[f"{name}.weight_scale_inv"] = values, scales
        tensors[f"{name}.expected"] = dequantise(values, scales)
    save_file(tensors, pathlib.Path(__file__).resolve().parent / "fp8_blocks.safetensors")


if __name__ == "__main__":
    main()
