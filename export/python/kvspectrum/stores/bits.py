# SPDX-License-Identifier: Apache-2.0
"""Numbers as bytes. Rows of codes are uint8 [..., bytes] with the bytes of src/kernels/codecs. Arithmetic is in f32,
one operation at a time, so that codes equal those of the programs."""

import torch


def as_bytes(x):
    """x [..., n] of any type, as uint8 [..., n · size]."""
    return x.contiguous().view(torch.uint8)


def from_bytes(rows, kind):
    """The inverse: rows [..., n · size] as numbers of type `kind`, [..., n]."""
    return rows.clone(memory_format=torch.contiguous_format).view(kind)


def halves(*columns):
    """f16 numbers [...], next to each other, as bytes."""
    return as_bytes(torch.stack(columns, -1).half())


def half_columns(rows, count):
    """The first `count` f16 numbers of rows, in f32, each [..., 1]."""
    return from_bytes(rows[..., :2 * count], torch.float16).float().split(1, -1)


def packed(codes, bits):
    """Codes [..., n] of `bits` bits. A byte holds codes of different parts of the n. With 3 bits, three bytes hold
    eight codes in a row."""
    codes = codes.to(torch.uint8)
    if bits == 8:
        return codes
    if bits == 3:
        eight = codes.unflatten(-1, (-1, 8)).int()
        words = (eight << 3 * torch.arange(8, dtype=torch.int32, device=codes.device)).sum(-1, dtype=torch.int32)
        return torch.stack([words >> shift & 255 for shift in (0, 8, 16)], -1).to(torch.uint8).flatten(-2)
    parts = codes.unflatten(-1, (8 // bits, -1))
    found = parts[..., 0, :]
    for part in range(1, 8 // bits):
        found = found | parts[..., part, :] << bits * part
    return found


def unpacked(rows, bits):
    """The codes, uint8 [..., n]."""
    if bits == 8:
        return rows
    if bits == 3:
        three = rows.unflatten(-1, (-1, 3)).int()
        words = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
        return (words[..., None] >> 3 * torch.arange(8, dtype=torch.int32, device=rows.device) & 7).flatten(-2).to(
            torch.uint8)
    mask = (1 << bits) - 1
    return torch.cat([rows >> bits * part & mask for part in range(8 // bits)], -1)


def over(x, number):
    """x / number, not the product with the inverse that devices compute for a number of Python's."""
    return x / torch.full((), number, dtype=x.dtype, device=x.device)


def inverse_or_zero(d):
    return torch.where(d == 0, 0, 1 / d)


def rounded_away(x):
    """To the nearest integer, ties away from zero."""
    whole = x.trunc()
    rest = x - whole
    return whole + (rest >= 0.5).to(x) - (rest <= -0.5).to(x)


def furthest(x):
    """The value of the largest magnitude, the first of equal ones: [..., 1]."""
    return x.gather(-1, x.abs().argmax(-1, keepdim=True))
