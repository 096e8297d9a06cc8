# SPDX-License-Identifier: Apache-2.0
"""Rows of floating-point numbers: fp8 and NVFP4."""

import torch

from kvspectrum.stores.bits import as_bytes, from_bytes, over, packed, unpacked


class Fp8:
    """Rounds to nearest even, saturates at the largest number."""

    values = None  # of a group: the whole row

    def __init__(self, kind):
        self.kind, self.most = kind, torch.finfo(kind).max

    def encode(self, x):
        return as_bytes(x.clamp(-self.most, self.most).to(self.kind))

    def decode(self, rows):
        return from_bytes(rows, self.kind).float()


E4M3, E5M2 = Fp8(torch.float8_e4m3fn), Fp8(torch.float8_e5m2)


class NvFp4:
    """16 codes in e2m1, then the block's scale in e4m3. A block whose scale rounds to 0 is 0."""

    values = 16
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])

    def encode(self, x):
        scale = E4M3.encode(over(x.abs().amax(-1, keepdim=True), 6))
        step = E4M3.decode(scale)
        codes = torch.where(step == 0, 0, self.codes(x / step))
        return torch.cat([packed(codes, 4), scale], -1)

    def codes(self, x):
        """To the nearest, ties to even codes."""
        size = x.abs()
        code = sum((size > edge).to(torch.uint8) for edge in (0.25, 1.25, 2.5, 5.0))
        code = code + sum((size >= edge).to(torch.uint8) for edge in (0.75, 1.75, 3.5))
        return code | torch.signbit(x).to(torch.uint8) << 3

    def decode(self, rows):
        codes, step = unpacked(rows[..., :8], 4), E4M3.decode(rows[..., 8:])
        size = self.numbers.to(rows.device)[(codes & 7).long()]
        return torch.where(codes > 7, -size, size) * step
