# SPDX-License-Identifier: Apache-2.0
"""Codes between a minimum and a maximum, both with a step in f16: KIVI, QuaRot and TurboQuant's values."""

import torch

from kvspectrum.stores.bits import half_columns, halves, over, packed, unpacked


class Stepped:
    """KIVI, and QuaRot with a least range: codes follow from minimum and step as they are stored."""

    def __init__(self, bits, least_range=0.0, values=None):
        self.bits, self.levels, self.least_range, self.values = bits, (1 << bits) - 1, least_range, values

    def encode(self, x):
        low, high = x.aminmax(dim=-1, keepdim=True)
        head = halves(low[..., 0], over((high - low).clamp_min(self.least_range), self.levels)[..., 0])
        low, step = half_columns(head, 2)
        codes = torch.where(step == 0, 0, ((x - low) / step).clamp(0, self.levels).round())
        return torch.cat([head, packed(codes, self.bits)], -1)

    def decode(self, rows):
        low, step = half_columns(rows, 2)
        return unpacked(rows[..., 4:], self.bits).float() * step + low


class TurboValue:
    """Codes are computed with minimum and step in f32."""

    values = None

    def __init__(self, bits):
        self.bits, self.levels = bits, (1 << bits) - 1

    def encode(self, x):
        low, high = x.aminmax(dim=-1, keepdim=True)
        step = over(high - low, self.levels).clamp_min(1e-8)
        codes = ((x - low) / step + 0.5).clamp(0, self.levels)
        return torch.cat([halves(low[..., 0], step[..., 0]), packed(codes, self.bits)], -1)

    decode = Stepped.decode
