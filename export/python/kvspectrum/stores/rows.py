# SPDX-License-Identifier: Apache-2.0
"""How the rows of a layer's keys, or of its values, are held."""

import torch


class PlainRows:
    """As the model computes them."""

    coded = False

    def encode(self, x):
        return x

    def decode(self, rows, like):
        return rows


class NumberRows:
    """In f16 or bf16."""

    coded = True

    def __init__(self, kind):
        self.kind = kind

    def encode(self, x):
        return x.float().to(self.kind)

    def decode(self, rows, like):
        return rows.float().to(like)


class CodedRows:
    """In groups of codes.
    @param codec   encode(x [..., group]) gives bytes [..., n], decode() gives x back; `values` of a group, or None: all
    @param basis   in which a row is coded
    @param scales  [kv_head] or one, which a row is divided by
    @param split   a row's values before this one are coded apart, padded to whole groups; 0: all together"""

    coded = True

    def __init__(self, codec, values, basis, scales=None, split=0):
        self.codec, self.basis = codec, basis
        self.parts = [part for part in (split, values - split) if part]
        self.groups = [codec.values or part for part in self.parts]
        self.bytes = [-(-part // group) * codec.encode(torch.zeros(group)).shape[-1]
                      for part, group in zip(self.parts, self.groups)]
        self.scales = None if scales is None else torch.tensor(scales, dtype=torch.float32)[:, None, None]

    def encode(self, x):
        """x [1, kv_head, token, value]"""
        rows = []
        for part, group in zip(x.float().split(self.parts, -1), self.groups):
            y = self.basis.to(part)
            if self.scales is not None:
                y = y / self.scales.to(y.device)
            y = torch.nn.functional.pad(y, (0, -y.shape[-1] % group))
            rows.append(self.codec.encode(y.unflatten(-1, (-1, group))).flatten(-2))
        return torch.cat(rows, -1)

    def decode(self, rows, like):
        """Values of the type and on the device of `like`."""
        found = []
        for piece, part, group in zip(rows.split(self.bytes, -1), self.parts, self.groups):
            y = self.codec.decode(piece.unflatten(-1, (-(-part // group), -1))).flatten(-2)[..., :part]
            if self.scales is not None:
                y = y * self.scales.to(y.device)
            found.append(self.basis.back(y))
        return torch.cat(found, -1).to(like)
