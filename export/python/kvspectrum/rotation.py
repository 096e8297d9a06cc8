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
    """A model's RoPE, by its own rotary embedding."""

    def __init__(self, embedding):
        self.embedding = embedding
        self._cos = self._sin = torch.empty(0)

    @property
    def chunks(self):
        return len(self.embedding.inv_freq)

    @property
    def factor(self):
        """What cos and sin are multiplied by."""
        return self.embedding.attention_scaling

    def table(self, first, count, like):
        """cos and sin [count, rotary_dim] of consecutive positions."""
        if self._cos.device != like.device or self._cos.dtype != like.dtype or len(self._cos) < first + count:
            positions = torch.arange(max(2 * (first + count), 1024), device=like.device)
            self._cos, self._sin = (one[0] for one in self.embedding(like, positions[None]))
        return self._cos[first:first + count], self._sin[first:first + count]

    def back(self, x, positions):
        """x rotated back by so many positions."""
        cos, sin = self.table(positions, 1, x)
        return rotated(x, cos / self.factor, -sin / self.factor)

    def __call__(self, x, first):
        """x [..., token, head_dim] as tokens from position `first` on."""
        return rotated(x, *self.table(first, x.shape[-2], x))
