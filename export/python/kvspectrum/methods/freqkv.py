import math

import torch

from kvspectrum.slots import SlotLayer


def dct(x):
    """Orthonormal DCT-II over the last axis but one, in double."""
    tokens, steps = x.shape[-2], torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)
    mirrored = torch.fft.fft(torch.cat([x, x.flip(-2)], -2).double(), dim=-2)[..., :tokens, :]
    turned = (mirrored * torch.exp(-0.5j * math.pi / tokens * steps)[:, None]).real / 2
    return turned * _norms(tokens, x.device)


def inverse_dct(coefficients):
    tokens = coefficients.shape[-2]
    steps = torch.arange(tokens, dtype=torch.float64, device=coefficients.device)
    spectrum = 2 * coefficients / _norms(tokens, coefficients.device) * torch.exp(
        0.5j * math.pi / tokens * steps)[:, None]
    return torch.fft.irfft(torch.nn.functional.pad(spectrum, (0, 0, 0, 1)), n=2 * tokens, dim=-2)[..., :tokens, :]


def _norms(tokens, device):
    norms = torch.full((tokens, 1), math.sqrt(2 / tokens), dtype=torch.float64, device=device)
    norms[0] = math.sqrt(1 / tokens)
    return norms


class FreqkvLayer(SlotLayer):
    """Low frequencies along the token axis: the N slots after the sinks become L = ⌊gamma · N⌋ pseudo-tokens
    y = √(L/N) · IDCT_L(DCT_N(x)[0:L]), channel by channel, of the keys before RoPE (rope=post: of the rotated ones) and
    of the values. band=high: the last L coefficients; rescale=off: without √(L/N); iterate=off: of the whole history
    each time, which is then held, too. Source: FreqKV, equations 4 to 6."""

    no_press = "a press chooses tokens, pseudo-tokens are none"

    def __init__(self, parameters, setting):
        self.high_band = parameters.word("band", "low", "high") == "high"
        self.rescale = parameters.on("rescale")
        self.iterate = parameters.on("iterate")
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.history = []  # without iteration, all keys and values after the sinks

    def add(self, k, v):
        if not self.iterate:
            new = [x[..., max(0, self.sinks - self.seen):, :] for x in (k, v)]
            self.history = [torch.cat(pair, -2) for pair in zip(self.history, new)] if self.history else new
        return super().add(k, v)

    def compress(self):
        rows = [x[..., self.sinks:, :] for x in (self.keys, self.values)] if self.iterate else self.history
        self.keys, self.values = (torch.cat([held[..., :self.sinks, :], self.shrunk(x)], -2)
                                  for held, x in zip((self.keys, self.values), rows))

    def shrunk(self, x):
        tokens = x.shape[-2]
        first = tokens - self.kept if self.high_band else 0
        scale = math.sqrt(self.kept / tokens) if self.rescale else 1
        return (scale * inverse_dct(dct(x)[..., first:first + self.kept, :])).to(x.dtype)
