# SPDX-License-Identifier: Apache-2.0
"""The basis in which an engine codes a row: permutation, signs, rotation."""

import torch

_SIGNS = (0x6573590d, 0x808035b1, 0xa6443d6c, 0x6b7f5438, 0x4aa48b81, 0xabafc441, 0x320b9848, 0xfa2043a0)


def hadamard(x, run):
    """√run · H x for each run of values, H the orthonormal Sylvester–Walsh–Hadamard matrix."""
    half = run // 2
    while half:
        pairs = x.unflatten(-1, (-1, 2, half))
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        x = torch.stack([a + b, a - b], -2).flatten(-3)
        half //= 2
    return x


class Basis:
    """First RoPE's channels (c, c + n/2) of the first n = `adjacent` become neighbours, then signs multiply runs of
    `run` values (int4_per_token_head), then H turns them, where rows consist of whole runs. run 0: no rotation."""

    def __init__(self, run=0, signs=False, adjacent=0):
        self.run, self.signs, self.adjacent = run, signs, adjacent
        root = torch.tensor(1.0) / torch.tensor(float(max(run, 1))).sqrt()
        self.to_factor: float = 1.0 if signs else root.item()
        self.from_factor: float = 1 / max(run, 1) if signs else root.item()

    def turns(self, x):
        return self.run > 0 and x.shape[-1] % self.run == 0

    def sign(self, x):
        bits = torch.tensor([word >> bit & 1 for word in _SIGNS for bit in range(32)], device=x.device)
        each = (2.0 * bits - 1)[:self.run]
        return (x.unflatten(-1, (-1, self.run)) * each).flatten(-2)

    def to(self, x):
        if self.adjacent:
            x = torch.cat([x[..., :self.adjacent].unflatten(-1, (2, -1)).mT.flatten(-2), x[..., self.adjacent:]], -1)
        if self.signs:
            x = self.sign(x)
        return hadamard(x, self.run) * self.to_factor if self.turns(x) else x

    def back(self, x):
        if self.turns(x):
            x = hadamard(x, self.run) * self.from_factor
        if self.signs:
            x = self.sign(x)
        if self.adjacent:
            x = torch.cat([x[..., :self.adjacent].unflatten(-1, (-1, 2)).mT.flatten(-2), x[..., self.adjacent:]], -1)
        return x
