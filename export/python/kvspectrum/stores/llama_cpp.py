# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's blocks of 32 values."""

import torch

from kvspectrum.stores.bits import (as_bytes, from_bytes, furthest, half_columns, halves, inverse_or_zero, over, packed,
                                    rounded_away, unpacked)


def five_bits(codes):
    """The fifth bits of 32 codes as one word, then the lower four bits."""
    places = torch.arange(32, device=codes.device)
    high = (codes.long() >> 4 << places).sum(-1, keepdim=True)
    word = torch.where(high >= 1 << 31, high - (1 << 32), high).int()
    return torch.cat([as_bytes(word), packed(codes.to(torch.uint8) & 15, 4)], -1)


def five_bit_codes(rows):
    word = from_bytes(rows[..., :4], torch.int32)
    high = word >> torch.arange(32, dtype=torch.int32, device=rows.device) & 1
    return unpacked(rows[..., 4:], 4).int() | high << 4


class Block:
    values = 32
    bits: int  # of a code

    def put_codes(self, codes):
        return five_bits(codes.int()) if self.bits == 5 else packed(codes, self.bits)

    def codes(self, rows):
        return five_bit_codes(rows) if self.bits == 5 else unpacked(rows, self.bits)


class Q8Block(Block):
    bits = 8

    def encode(self, x):
        d = over(x.abs().amax(-1, keepdim=True), 127)
        codes = rounded_away((x * inverse_or_zero(d)).clamp(-127, 127)).to(torch.int8)
        return torch.cat([halves(d[..., 0]), as_bytes(codes)], -1)

    def decode(self, rows):
        (d,) = half_columns(rows, 1)
        return from_bytes(rows[..., 2:], torch.int8).float() * d


class SymmetricBlock(Block):
    """q4_0 and q5_0: the value of the largest magnitude gets code 0, −2^(bits − 1)."""

    def __init__(self, bits):
        self.bits, self.levels = bits, 1 << (bits - 1)

    def encode(self, x):
        d = over(furthest(x), -self.levels)
        codes = (x * inverse_or_zero(d) + (self.levels + 0.5)).clamp(0, 2 * self.levels - 1)
        return torch.cat([halves(d[..., 0]), self.put_codes(codes)], -1)

    def decode(self, rows):
        (d,) = half_columns(rows, 1)
        return (self.codes(rows[..., 2:]).float() - self.levels) * d


class AffineBlock(Block):
    """q4_1 and q5_1: step and minimum."""

    def __init__(self, bits):
        self.bits, self.levels = bits, (1 << bits) - 1

    def encode(self, x):
        low, high = x.aminmax(dim=-1, keepdim=True)
        d = over(high - low, self.levels)
        codes = ((x - low) * inverse_or_zero(d) + 0.5).clamp(0, self.levels)
        return torch.cat([halves(d[..., 0], low[..., 0]), self.put_codes(codes)], -1)

    def decode(self, rows):
        d, low = half_columns(rows, 2)
        return self.codes(rows[..., 4:]).float() * d + low


class ListBlock(Block):
    """iq4_nl: the nearest of 16 values, then a step that is refitted with weights x²."""

    bits = 4
    numbers = torch.tensor([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113.0])

    def encode(self, x):
        top, numbers = furthest(x), self.numbers.to(x.device)
        scaled = x * inverse_or_zero(over(top, -127))
        codes = torch.zeros_like(scaled, dtype=torch.long)
        for code in range(1, 16):
            codes = torch.where(scaled - numbers[code - 1] < numbers[code] - scaled, codes, code)
        found = numbers[codes]
        products = squares = torch.zeros_like(x[..., 0])
        for i in range(32):  # in this order
            weight = x[..., i] * x[..., i]
            products = products + weight * found[..., i] * x[..., i]
            squares = squares + weight * found[..., i] * found[..., i]
        rows = torch.cat([halves(torch.where(squares > 0, products / squares, 0)), packed(codes, 4)], -1)
        return torch.where(top.abs() < 1e-15, 0, rows)

    def decode(self, rows):
        (d,) = half_columns(rows, 1)
        return self.numbers.to(rows.device)[unpacked(rows[..., 2:], 4).long()] * d
