# SPDX-License-Identifier: Apache-2.0
import torch

from kvspectrum.layer import CalibratedLayer, attention_with_mass, best_tokens


class SnapkvLayer(CalibratedLayer):
    """The last `window` tokens of a prefix stay, and of those before them, in each KV head, the cache_size − window
    with the most attention from the window's queries: softmax weights over all that a query sees, summed over the
    window and the query heads that read the KV head, after pooling over `kernel` neighbours. What comes later is all
    kept. Source: Li et al. (2024), SnapKV, arXiv:2404.14469, section 4."""

    always_whole = True

    def __init__(self, parameters, setting):
        self.window = parameters.count("window", 1)
        self.cache_size = parameters.count("cache_size", self.window + 1)
        self.kernel = parameters.count("kernel", 1)
        if self.kernel % 2 == 0:
            parameters.refuse("kernel", f"found {self.kernel}, expected an odd number")
        if self.window > setting.prefix:
            parameters.refuse("window", f"found {self.window}, expected at most the prefix's {setting.prefix}")
        self.judged = setting.prefix - self.window  # tokens of the prefix before the window
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.mass = 0  # [kv_head, token before the window], from the window's queries so far

    def room(self):
        return self.judged - self.seen if self.seen < self.judged else self.unlimited

    def attend(self, states):
        if not self.judged <= self.seen < self.prefix:
            return super().attend(states)
        keys, values = self.add_rotated(states)
        out, mass = attention_with_mass(self.rotation(states.q, states.first), keys, values, states.scale)
        self.mass = self.mass + mass[:, :self.judged]
        return out

    def end_prefix(self):
        pooled = torch.nn.functional.avg_pool1d(self.mass, self.kernel, stride=1, padding=self.kernel // 2)
        self.keep(0, self.judged, best_tokens(pooled, min(self.judged, self.cache_size - self.window)))
        self.mass = 0
