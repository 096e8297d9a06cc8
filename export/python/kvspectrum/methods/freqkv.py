# SPDX-License-Identifier: Apache-2.0
import math

import torch

from kvspectrum.layer import joined
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
    each time, which is then held, too; recent=R: the last R slots stay as they are, N − R become L − R. Source: FreqKV,
    equations 4 to 6."""

    no_press = "a press chooses tokens, pseudo-tokens are none"

    def __init__(self, parameters, setting):
        self.high_band = parameters.word("band", "low", "high") == "high"
        self.rescale = parameters.on("rescale")
        self.iterate = parameters.on("iterate")
        self.recent = parameters.count("recent") if "recent" in parameters else 0
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.history = [None, None]  # without iteration, all keys and values after the sinks, as they are held

    def add(self, k, v):
        if not self.iterate:
            self.history = [joined(rows, kind.encode(x[..., max(0, self.sinks - self.seen):, :]))
                            for rows, kind, x in zip(self.history, (self.k_rows, self.v_rows), (k, v))]
        return super().add(k, v)

    def compress(self):
        keys, values = self.held(slice(self.sinks, None)) if self.iterate else (
            kind.decode(rows, self.like) for kind, rows in zip((self.k_rows, self.v_rows), self.history))
        self.drop_rows(self.sinks, self.rows)
        super().add(self.shrunk(keys), self.shrunk(values))

    def shrunk(self, x):
        """Compresses all rows but the last `recent`."""
        count, kept = x.shape[-2] - self.recent, self.kept - self.recent
        first = count - kept if self.high_band else 0
        scale = math.sqrt(kept / count) if self.rescale else 1
        few = scale * inverse_dct(dct(x[..., :count, :])[..., first:first + kept, :])
        return torch.cat([few.to(x.dtype), x[..., count:, :]], -2)
