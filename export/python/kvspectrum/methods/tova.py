# SPDX-License-Identifier: Apache-2.0
from kvspectrum.layer import CalibratedLayer, attention, attention_with_mass


class TovaLayer(CalibratedLayer):
    """Just before a token that finds `cache_size` tokens, all KV heads drop the one with the least attention of the last
    token's query (the oldest of equals): softmax weights summed over all query heads. Source: Oren et al. (2024),
    Transformers are Multi-State RNNs, arXiv:2401.06104, section 4."""

    least: int  # the row of least attention
    no_press = "TOVAPress drops tokens once, at the end of a prompt"

    def __init__(self, parameters, setting):
        self.cache_size = parameters.count("cache_size", 2)
        super().__init__(parameters, setting)

    def room(self):
        return max(1, self.cache_size - 1 - self.rows)

    def attend(self, states):
        if self.rows == self.cache_size:
            self.drop_rows(self.least, self.least + 1)
        keys, values = self.add_rotated(states)
        q = self.rotation(states.q, states.first)
        if self.rows < self.cache_size:
            return attention(q, keys, values, states.scale)
        out, mass = attention_with_mass(q, keys, values, states.scale)
        self.least = mass.sum(0).argmin().item()
        return out
