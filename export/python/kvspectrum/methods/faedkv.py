# SPDX-License-Identifier: Apache-2.0
import math
from copy import copy
from typing import Any

import torch

from kvspectrum.layer import CalibratedLayer, attention


class Spectrum:
    """Keys or values of consecutive tokens as some chunks of their spectrum along the token axis: a grid of `samples`,
    of which the first `tokens` are tokens. Held are the sums Σ x[n] e^{−j2πbn/samples} over the chunks' bins b."""

    def __init__(self, x, chunks, kept):
        self.chunks, self.kept, self.wrapped = chunks, kept, 0
        self._transform(x, x.shape[-2])

    def _transform(self, x, samples):
        bins = samples // 2 + 1
        self.samples, self.tokens = samples, x.shape[-2]
        self.bins = torch.cat([torch.arange(chunk * bins // self.chunks, (chunk + 1) * bins // self.chunks)
                               for chunk in self.kept]).to(x.device)
        self.dtype = x.dtype
        self.sums = torch.fft.rfft(x.to(torch.promote_types(x.dtype, torch.float32)), n=samples, dim=-2)[
            ..., self.bins, :]

    def restored(self):
        """The tokens as the bins give them back: [1, kv_head, tokens, head_dim]."""
        whole = self.sums.new_zeros(*self.sums.shape[:-2], self.samples // 2 + 1, self.sums.shape[-1])
        whole[..., self.bins, :] = self.sums
        return torch.fft.irfft(whole, n=self.samples, dim=-2)[..., :self.tokens, :].to(self.dtype)

    def add(self, x, wraps):
        """One token more. A full grid gets twice the samples, or its next token is laid on the oldest one (wraps)."""
        if self.tokens == self.samples and not wraps:
            self._transform(self.restored(), 2 * self.samples)
        if self.tokens < self.samples:
            place = self.tokens
            self.tokens += 1
        else:
            place = self.wrapped % self.samples
            self.wrapped += 1
        angles = -2j * math.pi / self.samples * ((self.bins * place) % self.samples).double()
        self.sums = self.sums + angles.exp().to(self.sums.dtype)[:, None] * x


class FaedkvLayer(CalibratedLayer):
    """The first `sinks` and the last `recent` tokens of a prefix stay rows; those between them become the chunks `kept`
    of the `chunks` of their half spectrum, of keys after RoPE or (key_space=k_pre) before it, and `kept_v` (absent: as
    `kept`) of values. Later tokens are rows (age=off), or push the oldest recent one into the spectrum (age=on):
    exactly, a full grid being rebuilt with twice the samples (update=corrected), or laid on an older token as the
    paper's update does (literal). The middle is brought back as rows for each group that attends. Source: FAEDKV;
    deviations as in docs/faedkv.md."""

    no_press = "a press chooses tokens, a spectrum has none"
    always_whole = True
    takes_types = False

    def __init__(self, parameters, setting):
        self.sinks, self.recent = parameters.count("sinks"), parameters.count("recent")
        self.chunks = parameters.count("chunks", 1)
        self.kept = [self.chunks_of(parameters, name)
                     for name in ("kept", "kept_v" if "kept_v" in parameters else "kept")]
        self.before_rope = parameters.word("key_space", "k_post", "k_pre") == "k_pre"
        self.age = parameters.on("age")
        self.wraps = parameters.word("update", "corrected", "literal") == "literal"
        for name, word in (("transform", "dft"), ("spectrum", "half")):
            parameters.read(name, lambda value, word=word: value == word, f"{word}: the others are for the ablation alone")
        middle = setting.prefix - self.sinks - self.recent
        if middle < 1 or self.chunks > middle // 2 + 1:
            parameters.refuse("prefix", f"found {setting.prefix}, expected one with {self.chunks} bins between "
                                        f"{self.sinks} sinks and {self.recent} recent tokens")
        if self.before_rope and self.age and self.wraps:
            parameters.refuse("update", "found literal with key_space k_pre, expected k_post: two tokens share a "
                                        "place, not a position")
        super().__init__(parameters, setting)

    def chunks_of(self, parameters, name):
        kept = parameters.indices(name)
        if not kept or kept[-1] >= self.chunks:
            parameters.refuse(name, f"found {kept}, expected some numbers below {self.chunks}")
        return kept

    def reset(self):
        super().reset()
        self.spectra: Any = None  # [Spectrum of keys, Spectrum of values], or None

    def copy(self):
        copied = super().copy()
        copied.spectra = self.spectra and [copy(spectrum) for spectrum in self.spectra]
        return copied

    @property
    def ages(self):
        return self.age and self.spectra is not None

    def room(self):
        return 1 if self.ages else self.unlimited

    def attend(self, states):
        k = states.k if self.before_rope else self.rotation(states.k, states.first)
        self.add(k, states.v)
        keys, values = self.in_order()
        if self.before_rope:
            keys = self.rotation(keys, 0)
        out = attention(self.rotation(states.q, states.first), keys, values, states.scale)
        if self.ages:
            self.let_oldest_enter()
        return out

    def in_order(self):
        """All tokens so far as rows."""
        if self.spectra is None:
            return self.keys, self.values
        return (torch.cat([x[..., :self.sinks, :], spectrum.restored(), x[..., self.sinks:, :]], -2)
                for x, spectrum in zip((self.keys, self.values), self.spectra))

    def let_oldest_enter(self):
        for x, spectrum in zip((self.keys, self.values), self.spectra):
            spectrum.add(x[..., self.sinks:self.sinks + 1, :], self.wraps)
        self.drop_rows(self.sinks, self.sinks + 1)

    def end_prefix(self):
        last = self.rows - self.recent
        self.spectra = [Spectrum(x[..., self.sinks:last, :], self.chunks, kept)
                        for x, kept in zip((self.keys, self.values), self.kept)]
        self.drop_rows(self.sinks, last)
