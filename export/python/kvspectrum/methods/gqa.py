# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

from kvspectrum.layer import CalibratedLayer


class GqaLayer(CalibratedLayer):
    """Every token in `heads` KV heads, each the mean of as many neighbours, of their keys and of their values.
    Source: Ainslie et al. (2023), GQA, arXiv:2305.13245, section 2.1."""

    no_press = "a press chooses tokens, fewer heads keep all of them"

    def __init__(self, parameters, setting):
        self.heads, kv_heads = parameters.count("heads", 1), setting.module.config.num_key_value_heads
        if kv_heads % self.heads:
            parameters.refuse("heads", f"found {self.heads}, expected a divisor of the model's {kv_heads} KV heads")
        super().__init__(parameters, setting)

    def attend(self, states):
        k, v = (x.unflatten(1, (self.heads, -1)).mean(2) for x in (states.k, states.v))
        return super().attend(replace(states, k=k, v=v))
