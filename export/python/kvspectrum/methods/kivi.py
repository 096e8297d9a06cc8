# SPDX-License-Identifier: Apache-2.0
from typing import Any

import torch

from kvspectrum.layer import CalibratedLayer, attention, joined, owned
from kvspectrum.stores.steps import Stepped


class KiviLayer(CalibratedLayer):
    """Keys after RoPE are coded by channel, in groups of `group` tokens: whole blocks of `residual` tokens, after the
    token that completes a block has attended. Values are coded by token, in groups of `group` channels, once `residual`
    tokens came after them. `keys` and `values` are the tokens that are not coded yet: all read those uncoded.
    Source: Liu et al. (2024), KIVI, arXiv:2402.02750, section 4."""

    takes_types = False
    no_press = "a press chooses tokens, codes have all of them"

    def __init__(self, parameters, setting):
        self.codec = Stepped(parameters.count("bits", 2), values=parameters.count("group", 1))
        self.residual = parameters.count("residual", 1)
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.old_keys: Any = None  # [1, kv_head, group, channel, byte]
        self.old_values: Any = None  # [1, kv_head, token, byte]

    def room(self):
        return self.unlimited if self.in_prefix else self.residual - self.rows

    def attend(self, states):
        q = self.rotation(states.q, states.first)
        keys, values = self.add_rotated(states)
        tokens = states.first + states.k.shape[-2]
        from_keys, from_values = tokens - keys.shape[-2], tokens - values.shape[-2]  # positions of the windows
        if from_keys:
            keys = torch.cat([self.decoded_keys(states.k), keys], -2)
        older = values[..., :0, :] if from_values == 0 else self.decoded_values(self.old_values, states.v)
        last = from_values if self.in_prefix else max(from_values, tokens - 1 - self.residual)
        if last == from_values:
            out = attention(q, keys, torch.cat([older, values], -2), states.scale)
        else:  # values of positions from from_values on are coded for the last tokens alone: both forms, and a mask
            both = self.decoded_values(self.coded_values(values[..., :last - from_values, :]), states.v)
            out = torch.nn.functional.scaled_dot_product_attention(
                q, torch.cat([keys[..., :last, :], keys[..., from_values:, :]], -2),
                torch.cat([older, both, values], -2), scale=states.scale, enable_gqa=True,
                attn_mask=self.mask(states.first, tokens, from_values, last, q.device))
        if not self.in_prefix:
            self.code()
        return out

    def mask(self, first, tokens, from_values, last, device):
        """[token, coded position below `last`, then position from `from_values` on]"""
        token = torch.arange(first, tokens, device=device)[:, None]
        coded = (token - self.residual).clamp_min(from_values)
        position = torch.arange(tokens, device=device)
        window = position[from_values:]
        return torch.cat([position[:last] < coded, (window >= coded) & (window <= token)], -1)

    def end_prefix(self):
        self.code()

    def code(self):
        whole, old = self.rows // self.residual * self.residual, max(0, self.values.shape[-2] - self.residual)
        if whole:
            groups = self.keys[..., :whole, :].unflatten(-2, (-1, self.codec.values)).mT
            self.old_keys = self.codec.encode(groups.float()) if self.old_keys is None else torch.cat(
                [self.old_keys, self.codec.encode(groups.float())], 2)
        if old:
            self.old_values = joined(self.old_values, self.coded_values(self.values[..., :old, :]))
        self.keys, self.values = owned(self.keys[..., whole:, :]), owned(self.values[..., old:, :])

    def decoded_keys(self, like):
        return self.codec.decode(self.old_keys).mT.flatten(2, 3).to(like)

    def coded_values(self, values):
        return self.codec.encode(values.float().unflatten(-1, (-1, self.codec.values))).flatten(-2)

    def decoded_values(self, rows, like):
        groups = like.shape[-1] // self.codec.values
        return self.codec.decode(rows.unflatten(-1, (groups, -1))).flatten(-2).to(like)
