#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of gpt-oss' MXFP4 blocks, by Transformers' own decoder in f32.

Usage: make_mxfp4_blocks.py       (rewrites mxfp4_blocks.safetensors; needs pip: torch, transformers, safetensors)

X_blocks [expert, row, column / 32, 16], X_scales, and X_expected [expert, row, column]. All bytes occur in the blocks,
and the least and the greatest scales of finite values in the scales.
"""
import pathlib

import torch
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

EXPERTS, ROWS, BLOCKS = 2, 6, 2


def main():
    torch.manual_seed(20250805)
    count = EXPERTS * ROWS * BLOCKS * 16
    codes = torch.arange(count) % 256
    blocks = codes[torch.randperm(count)].to(torch.uint8).reshape(EXPERTS, ROWS, BLOCKS, 16)
    scales = torch.randint(0, 252, (EXPERTS, ROWS, BLOCKS), dtype=torch.uint8)
    scales.view(-1)[:3] = torch.tensor([0, 251, 127], dtype=torch.uint8)
    expected = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).transpose(1, 2).contiguous()
    save_file({"X_blocks": blocks, "X_scales": scales, "X_expected": expected},
              pathlib.Path(__file__).resolve().parent / "mxfp4_blocks.safetensors")


if __name__ == "__main__":
    main()
