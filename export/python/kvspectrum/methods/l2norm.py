# SPDX-License-Identifier: Apache-2.0
import torch

from kvspectrum.layer import CalibratedLayer, best_tokens


class L2normLayer(CalibratedLayer):
    """The ⌊ratio · P⌋ tokens of a prefix of P whose keys are shortest stay in each KV head, in all layers but
    `skip_layers`; what comes later is all kept. Lengths are those before RoPE. Source: Devoto et
    al. (2024), arXiv:2406.11430."""

    always_whole = True

    def __init__(self, parameters, setting):
        self.kept = int(parameters.ratio("ratio") * setting.prefix)
        if self.kept == 0:
            parameters.refuse("ratio", f"found one that keeps none of {setting.prefix} tokens, expected one that keeps "
                                       "some")
        super().__init__(parameters, setting)

    @staticmethod
    def keeps_all(parameters, index):
        return index in parameters.indices("skip_layers")

    def reset(self):
        super().reset()
        self.scores = []  # [kv_head, token] of each group of the prefix

    def attend(self, states):
        if self.in_prefix:
            self.scores = [*self.scores, -states.k[0].double().square().sum(-1)]
        return super().attend(states)

    def end_prefix(self):
        self.keep(0, self.rows, best_tokens(torch.cat(self.scores, -1), self.kept))
        self.scores = []
