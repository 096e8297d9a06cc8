# SPDX-License-Identifier: Apache-2.0
"""vLLM's rows with a scale of their own, and TurboQuant's keys."""

from collections.abc import Callable

import torch

from kvspectrum.stores.bits import as_bytes, from_bytes, half_columns, halves, over, packed, rounded_away, unpacked
from kvspectrum.stores.floats import E4M3


class ScaledRow:
    """One f32 scale per token and head, after the codes."""

    values = None
    most: int  # the largest code
    put: Callable[[torch.Tensor], torch.Tensor]  # codes as bytes
    get: Callable[[torch.Tensor], torch.Tensor]

    def encode(self, x):
        scale = over(x.abs().amax(-1, keepdim=True), self.most).clamp_min(1e-6)
        return torch.cat([self.put(x * (1 / scale)), as_bytes(scale)], -1)

    def decode(self, rows):
        return self.get(rows[..., :-4]) * from_bytes(rows[..., -4:], torch.float32)


class Int8Row(ScaledRow):
    most = 127

    def put(self, y):
        return as_bytes((y + torch.copysign(torch.full_like(y, 0.5), y)).clamp(-128, 127).to(torch.int8))

    def get(self, rows):
        return from_bytes(rows, torch.int8).float()


class E4m3Row(ScaledRow):
    most = 448
    put, get = E4M3.encode, E4M3.decode


class Int4Row:
    """The low four bits of the f32 scale hold an integer zero point."""

    values = None

    def encode(self, x):
        low, high = x.aminmax(dim=-1, keepdim=True)
        scale = over(high - low, 15).clamp_min(1e-6)
        zero = rounded_away((-low / scale).clamp(0, 15))
        codes = rounded_away((x * (1 / scale) + zero).clamp(0, 15))
        word = scale.view(torch.int32) & ~15 | zero.int()
        return torch.cat([packed(codes, 4), as_bytes(word)], -1)

    def decode(self, rows):
        word = from_bytes(rows[..., -4:], torch.int32)
        scale, zero = (word & ~15).view(torch.float32), (word & 15).float()
        return (unpacked(rows[..., :-4], 4).float() - zero) * scale


def length(x):
    """√(Σ x²) in sixteen partial sums, as the programs add them."""
    parts = x.unflatten(-1, (-1, 16))
    sums = parts[..., 0, :] * parts[..., 0, :]
    for n in range(1, parts.shape[-2]):
        sums = sums + parts[..., n, :] * parts[..., n, :]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    return sums.sqrt()


CENTROIDS = {4: [0.12842766, 0.38813779, 0.65687991, 0.94244822, 1.25625754, 1.61788180, 2.06844712, 2.73092224],
             3: [0.24498360, 0.75564553, 1.34318004, 2.15034958]}  # of N(0, 1), above 0


class TurboKey:
    """The direction in the Lloyd–Max cells of N(0, 1/d), and the norm in f16."""

    values = None

    def __init__(self, bits):
        self.bits = bits
        half = torch.tensor(CENTROIDS[bits])
        self.centroids = torch.cat([-half.flip(0), half])

    def encode(self, x):
        norm = length(x)
        root = torch.full_like(norm, x.shape[-1]).sqrt()
        edges = ((self.centroids[:-1] + self.centroids[1:]) / 2).to(x.device)
        scaled = x * (root / (norm + 1e-8))
        codes = sum((scaled >= edge).to(torch.uint8) for edge in edges)
        return torch.cat([halves(norm[..., 0]), packed(codes, self.bits)], -1)

    def decode(self, rows):
        (norm,) = half_columns(rows, 1)
        found = self.centroids.to(rows.device)[unpacked(rows[..., 2:], self.bits).long()]
        return found * (norm / length(found))
