# SPDX-License-Identifier: Apache-2.0
import torch

from kvspectrum.layer import CalibratedLayer, best_tokens


def scores_of(x, reference):
    """Softmax over tokens of the standard deviation over channels of x scaled by the range of `reference`, a channel
    that is constant there contributing 0. x, reference: [kv_head, token, head_dim]; in double."""
    x, reference = x.double(), reference.double()
    low, high = reference.amin(-2, keepdim=True), reference.amax(-2, keepdim=True)
    scaled = torch.where(high > low, (x - low) / (high - low), 0)
    return scaled.std(-1).softmax(-1)


class LagkvLayer(CalibratedLayer):
    """When base + 2 · lag rows are there (base = sinks at first), the tokens that brought them having attended, the
    first `lag` of them are scored against the next ones, and the ⌊ratio · lag⌋ best stay in each KV head; base grows by
    as many. prefill=whole: the same, as often as it goes, at the prefix's end.
    variant=local: scored against themselves; l2: by −‖k‖₂, all but layers 0 and 1. The values' score counts
    `value_weight`, relative to the keys'. Source: LagKV, section 3."""

    def __init__(self, parameters, setting):
        self.sinks = parameters.count("sinks")
        self.lag = parameters.count("lag", 1)
        self.kept = int(parameters.ratio("ratio") * self.lag)
        if self.kept == 0:
            parameters.refuse("ratio", f"found one that keeps none of {self.lag} tokens, expected one that keeps some")
        self.variant = parameters.word("variant", "lag", "local", "l2")
        self.value_weight = parameters.weight("value_weight")
        super().__init__(parameters, setting)

    @staticmethod
    def keeps_all(parameters, index):
        return parameters.word("variant", "lag", "local", "l2") == "l2" and index < 2

    def reset(self):
        super().reset()
        self.base = self.sinks

    def room(self):
        return self.unlimited if self.in_prefix else self.base + 2 * self.lag - self.rows

    def attend(self, states):
        out = super().attend(states)
        if not self.in_prefix:
            self.compress()
        return out

    def end_prefix(self):
        self.compress()

    def compress(self):
        while self.rows >= self.base + 2 * self.lag:
            self.keep(self.base, self.lag, best_tokens(self.scores(), self.kept))
            self.base += self.kept

    def scores(self):
        k, v = (x[0] for x in self.held(slice(self.base, self.base + 2 * self.lag)))
        if self.variant == "l2":
            return -k[:, :self.lag].double().square().sum(-1)
        reference = slice(self.lag, None) if self.variant == "lag" else slice(self.lag)
        keys, values = (scores_of(x[:, :self.lag], x[:, reference]) for x in (k, v))
        return keys + self.value_weight * values
