# SPDX-License-Identifier: Apache-2.0
"""RoPE at any position."""

import torch


def rotated(x, cos, sin):
    """Turns the first channels of x [..., token, head_dim], as many as cos and sin [..., token, rotary_dim] have; chunk
    c is channels (c, c + rotary_dim/2)."""
    width = cos.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    half = torch.cat([-turned[..., width // 2:], turned[..., :width // 2]], -1)
    return torch.cat([turned * cos + half * sin, rest], -1)


class Rotation:
    """A model's RoPE, by its own rotary embedding.
    @param kind  of the layer, as the model's config spells it, where layers have other frequencies"""

    def __init__(self, embedding, kind=None):
        self.embedding, self.kind = embedding, () if kind is None else (kind,)
        name = "" if kind is None else f"{kind}_"
        self.frequencies = getattr(embedding, f"{name}inv_freq")
        self.factor = getattr(embedding, f"{name}attention_scaling")  # of cos and sin
        self._cos = self._sin = torch.empty(0)

    @property
    def chunks(self):
        return len(self.frequencies)

    def table(self, first, count, like):
        """cos and sin [count, rotary_dim] of consecutive positions."""
        if self._cos.device != like.device or self._cos.dtype != like.dtype or len(self._cos) < first + count:
            positions = torch.arange(max(2 * (first + count), 1024), device=like.device)
            self._cos, self._sin = (one[0] for one in self.embedding(like, positions[None], *self.kind))
        return self._cos[first:first + count], self._sin[first:first + count]

    def back(self, x, positions):
        """x rotated back by so many positions."""
        cos, sin = self.table(positions, 1, x)
        return rotated(x, cos / self.factor, -sin / self.factor)

    def __call__(self, x, first):
        """x [..., token, head_dim] as tokens from position `first` on."""
        return rotated(x, *self.table(first, x.shape[-2], x))


class NoRotation:
    """Layers that do not rotate."""

    chunks, factor = 0, 1.0
    frequencies = torch.empty(0)

    def table(self, first, count, like):
        return (like.new_zeros(count, 0),) * 2

    def back(self, x, positions):
        return x

    def __call__(self, x, first):
        return x
