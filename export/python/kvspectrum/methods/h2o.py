# SPDX-License-Identifier: Apache-2.0
from typing import Any

import torch

from kvspectrum.layer import CalibratedLayer, attention_with_mass


class H2oLayer(CalibratedLayer):
    """Just before a token that finds `cache_size` tokens, each KV head drops the one of least attention mass (the first
    of equal ones) that is not among the `recent` last. A token's mass: softmax weights summed over all queries since it
    came and over the query heads that read the KV head. Source: Zhang et al. (2023), H2O, arXiv:2306.14048."""

    no_press = "ObservedAttentionPress divides a token's mass by its queries and keeps no recent tokens"

    def __init__(self, parameters, setting):
        self.recent = parameters.count("recent", 1)
        self.cache_size = parameters.count("cache_size", self.recent + 1)
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.mass: Any = None  # [kv_head, row]

    def room(self):
        return max(1, self.cache_size - self.rows)

    def attend(self, states):
        if self.rows == self.cache_size:
            self.drop()
        keys, values = self.add_rotated(states)
        out, mass = attention_with_mass(self.rotation(states.q, states.first), keys, values, states.scale)
        if self.mass is not None:
            mass[:, :self.mass.shape[1]] += self.mass
        self.mass = mass
        return out

    def drop(self):
        least = self.mass[:, :self.rows - self.recent].argmin(-1, keepdim=True)
        rows = torch.arange(self.rows - 1, device=least.device)
        kept = rows + (rows >= least)
        self.keep(0, self.rows, kept)
        self.mass = self.mass.take_along_dim(kept, -1)
