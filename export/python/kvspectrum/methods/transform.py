# SPDX-License-Identifier: Apache-2.0
import math
from typing import Any

import torch

from kvspectrum.coder import read_coder
from kvspectrum.layer import CalibratedLayer, joined, owned
from kvspectrum.rotation import rotated
from kvspectrum.stores import q8_or_f16


class TransformLayer(CalibratedLayer):
    """Keys before RoPE and values of each token are transform-coded. The first `sinks` tokens stay as they are; when
    2 · `recent` tokens wait in q8_0, the older ones are coded. rows=layer: tokens whose error costs more than
    `thresholds` are also held in q8_0; each one beyond their share doubles that threshold, at most two are. All tokens
    read what is held, themselves too. `keys` are the codes [1, 1, token, byte], `values` the waiting tokens.
    Source: docs/transform.md."""

    acts_in_windows, takes_types = True, False
    no_press = "a press chooses tokens, codes have all of them"

    def __init__(self, parameters, setting):
        by_head = parameters.word("rows", "layer", "head") == "head"
        self.sinks, self.recent = parameters.count("sinks"), parameters.count("recent")
        self.share = parameters.ratio("outliers")
        self.threshold = math.inf if by_head else parameters.read(
            "thresholds", lambda value: isinstance(value, (int, float)), "a number")
        if "coder" not in setting.shared:
            setting.shared["coder"] = read_coder(setting.factors, setting.index, by_head, setting.codec)
        self.coder = setting.shared["coder"]
        self.late_rows = q8_or_f16(setting.module.head_dim)
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.first: Any = None  # keys and values of the sinks [2, kv_head, token, head_dim]
        self.start = 0  # of tokens after the sinks, the first one with codes: others are outside of the window
        self.places: list[int] = []  # outliers, counted after the sinks
        self.outliers: Any = None  # [2, kv_head, outlier, byte]

    def coded_of(self, tokens):
        """How many are coded when so many came after the sinks."""
        if self.recent == 0:
            return tokens
        return self.recent * max(0, tokens // self.recent - 1)

    def attend(self, states):
        tokens = states.k.shape[-2]
        new = torch.stack([states.k[0], states.v[0]])
        heads, sinks = new.shape[1], min(tokens, max(0, self.sinks - states.first))
        if sinks or self.first is None:
            self.first = joined(self.first, new[:, :, :sinks])
        before = max(0, states.first - self.sinks)
        after = before + tokens - sinks
        coded, last = self.coded_of(before), self.coded_of(after)
        late = self.wait(new[:, :, sinks:])
        if last > coded:
            self.code(late[:, :, :last - coded], coded)
        held = self.decoded(heads, late)
        out = self.attend_rows(states, held, late, (coded, last), after)
        if self.recent:
            self.values = owned(self.values[:, :, last - coded:])
        else:
            self.values = None
        self.drop_old(after, last)
        return out

    def wait(self, new):
        """@return all waiting tokens, decoded; without `recent` the new ones as they are"""
        if self.recent == 0:
            return new
        self.values = joined(self.values, self.late_rows.encode(new))
        return self.late_rows.decode(self.values, new)

    def code(self, late, first):
        """Codes tokens of which the first one is `first` after the sinks."""
        codes = self.coder.encode(*late)
        self.keys = joined(self.keys, codes[None, None])
        if self.threshold == math.inf:
            return
        costs = self.coder.costs(*late, codes)
        for n in (costs > self.threshold).nonzero()[:, 0].tolist():  # outliers raise the threshold, they never lower it
            if costs[n].item() > self.threshold_at(first + n):
                self.places = [*self.places, first + n]
                self.outliers = joined(self.outliers, self.late_rows.encode(late[:, :, n:n + 1]))

    def threshold_at(self, place):
        oldest = max(0, place - self.reach) if self.reach else 0
        excess = sum(one >= oldest for one in self.places) - self.share * (place - oldest)
        return math.inf if excess > 1 else self.threshold * 2 ** max(0.0, excess)

    def decoded(self, heads, like):
        """@return coded tokens [2, kv_head, token, head_dim]"""
        if self.keys is None:
            return like[:, :, :0]
        held = torch.stack(self.coder.decode(self.keys[0, 0], heads)).to(like)
        places = torch.tensor([place - self.start for place in self.places], dtype=torch.long, device=like.device)
        inside = places >= 0
        if inside.any():
            held[:, :, places[inside]] = self.late_rows.decode(self.outliers, like)[:, :, inside]
        return held

    def attend_rows(self, states, held, late, between, after):
        """Each token reads the sinks, the tokens that were coded when it came, and the others as they waited."""
        (coded, last), sinks = between, self.first.shape[2]
        rows = torch.cat([self.first, held, late if self.recent else late[:, :, :0]], 2)[:, None]
        device = rows.device
        waiting = torch.arange(coded, after if self.recent else coded, device=device)
        in_codes = torch.arange(self.start, last, device=device)
        places = torch.cat([torch.arange(sinks, device=device) - self.sinks, in_codes, waiting])
        positions = places + self.sinks
        cos, sin = self.rotation.table(0, states.first + states.q.shape[-2], rows)
        keys = rotated(rows[0], cos[positions], sin[positions])
        q = self.rotation(states.q, states.first)
        token = torch.arange(states.first, states.first + q.shape[-2], device=device)[:, None]
        mask = positions <= token
        if self.recent:
            boundary = self.boundary(token)
            mask &= torch.cat([torch.ones(sinks, dtype=torch.bool, device=device).expand(len(token), -1),
                               in_codes < boundary, waiting >= boundary], -1)
        if self.reach:
            mask &= positions > token - self.reach
        return torch.nn.functional.scaled_dot_product_attention(q, keys, rows[1], attn_mask=mask, scale=states.scale,
                                                                enable_gqa=True)

    def boundary(self, token):
        """coded_of() the tokens before each."""
        return self.recent * ((token - self.sinks).clamp_min(0) // self.recent - 1).clamp_min(0)

    def drop_old(self, after, coded):
        """Lets codes go that no later token reads."""
        oldest = max(0, after - self.reach + 1) if self.reach else 0
        if self.keys is not None and (gone := min(oldest, coded) - self.start) > 0:
            self.keys = owned(self.keys[:, :, gone:])
            self.start += gone
