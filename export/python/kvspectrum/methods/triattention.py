# SPDX-License-Identifier: Apache-2.0
import torch
from safetensors import safe_open

from kvspectrum.layer import CalibratedLayer, best_tokens


class TriattentionLayer(CalibratedLayer):
    """Just before a token that finds `cache_size` rows, each KV head keeps the `cache_size` - `interval` best: the first
    `sinks`, the last `recent`, and those that a text's mean queries would read most from the distances 1, 2, 4, … up to
    `horizon` after the last token. prefill=whole: the same at the prefix's end. Source: TriAttention, equations 6 to
    13."""

    no_press = "a press has no statistics of a text's queries"

    def __init__(self, parameters, setting):
        self.interval = parameters.count("interval", 1)
        self.sinks, self.recent = parameters.count("sinks"), parameters.count("recent")
        self.horizon = parameters.count("horizon", 1)
        self.cache_size = parameters.count("cache_size", 1 + self.interval + self.sinks + self.recent)
        with safe_open(setting.factors, "pt") as file:
            self.mean, self.magnitude = (file.get_tensor(f"layers.{setting.index}.query_{name}").double()
                                         for name in ("mean", "magnitude"))
        super().__init__(parameters, setting)

    def room(self):
        if self.in_prefix:
            return self.unlimited
        return self.cache_size - self.rows if self.rows < self.cache_size else self.interval

    def attend(self, states):
        if not self.in_prefix and self.rows >= self.cache_size:
            self.compress()
        return super().attend(states)

    def end_prefix(self):
        if self.rows > self.cache_size:
            self.compress()

    def compress(self):
        among = self.rows - self.sinks - self.recent
        keys, _ = self.held(slice(self.sinks, self.sinks + among))
        scores = self.scores(keys[0].double())
        self.keep(self.sinks, among, best_tokens(scores, self.cache_size - self.interval - self.sinks - self.recent))

    def scores(self, keys):
        """[kv_head, row] of rotated keys: of each query head normalised, the largest of those that read the KV head"""
        rotation, heads = self.rotation, keys.shape[0]
        mean, magnitude = self.mean.to(keys.device), self.magnitude.to(keys.device)
        chunks, factor = rotation.chunks, rotation.factor
        omega = rotation.frequencies.to(keys.device).double()
        distances = 2.0 ** torch.arange(self.horizon.bit_length(), device=keys.device)
        turns = torch.polar(torch.ones_like(omega), (self.seen - 1 + distances)[:, None] * omega).mean(0)
        centre = torch.complex(mean[:, :chunks], mean[:, chunks:2 * chunks])
        rest = mean[:, 2 * chunks:]
        query = factor * centre * turns
        query = torch.cat([query.real, query.imag, rest], -1)
        spread = magnitude - torch.cat([centre.abs(), rest.abs()], -1)
        spread[:, :chunks] *= factor
        lengths = torch.cat([torch.hypot(keys[..., :chunks], keys[..., chunks:2 * chunks]),
                             keys[..., 2 * chunks:].abs()], -1)
        scores = (query.unflatten(0, (heads, -1)) @ keys.mT  # [kv_head, query head of it, row]
                  + spread.unflatten(0, (heads, -1)) @ lengths.mT)
        deviation = scores.std(-1, unbiased=False, keepdim=True).clamp_min(1e-6)
        return ((scores - scores.mean(-1, keepdim=True)) / deviation).amax(1)
