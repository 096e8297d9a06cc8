# SPDX-License-Identifier: Apache-2.0
import torch

from kvspectrum.layer import CalibratedLayer, attention
from kvspectrum.rotation import rotated


class StreamingLayer(CalibratedLayer):
    """A token attends to the first `sinks` tokens and to the last cache_size − sinks ones, itself included, as if they
    stood in slots 0 to cache_size − 1. Keys are held before RoPE and rotated at their slots. With a storage type the
    keys after the sinks are coded after RoPE, at positions counted from `origin`, and once in cache_size tokens again,
    so that positions stay below 2 · cache_size.
    Source: Xiao et al. (2024), StreamingLLM, arXiv:2309.17453, section 3.2."""

    def __init__(self, parameters, setting):
        self.sinks = parameters.count("sinks")
        self.cache_size = parameters.count("cache_size", self.sinks + (1 if self.sinks else 2))
        super().__init__(parameters, setting)

    def reset(self):
        super().reset()
        self.origin = 0

    def room(self):
        """Groups of cache_size tokens, whose masks are small; coded keys of a group have one origin."""
        if not self.k_rows.coded:
            return self.cache_size
        return 2 * self.cache_size - 1 - (self.seen - self.origin) or self.cache_size

    def attend(self, states):
        if self.k_rows.coded and self.seen - self.origin + 1 == 2 * self.cache_size:
            self.move_origin()
        before = self.rows
        position = self.seen - self.origin if self.k_rows.coded else before
        if self.k_rows.coded:
            keys, values = self.add(self.turned(states.k, self.sinks - self.seen, position), states.v)
            keys = torch.cat([self.rotation(keys[..., :self.sinks, :], 0), keys[..., self.sinks:, :]], -2)
        else:
            keys, values = self.add(states.k, states.v)
            keys = self.rotation(keys, 0)
        if position == before and self.rows <= self.cache_size:  # slots are positions
            out = attention(self.rotation(states.q, position), keys, values, states.scale)
        else:
            out = self.attend_window(states, keys, values, position, before)
        if self.rows >= self.cache_size:  # the next token takes a place
            self.drop_rows(self.sinks, self.sinks + self.rows - self.cache_size + 1)
        return out

    def attend_window(self, states, keys, values, position, before):
        """Attention where tokens read sinks at other distances than recent tokens. Scores of both are one product:
        queries are those at the position and those at the slot, keys are zero beside one of them.
        @param keys  rotated: sinks at their slots, others at the positions that follow `position` and precede it
        @param before  rows that the cache had"""
        tokens, device = states.q.shape[-2], states.q.device
        place = torch.arange(before, before + tokens, device=device)  # of the new tokens, as rows
        row = torch.arange(before + tokens, device=device)
        mask = (row <= place[:, None]) & ((row < self.sinks) | (row > place[:, None] - (self.cache_size - self.sinks)))
        cos, sin = self.rotation.table(0, self.cache_size, states.q)
        slot = place.clamp_max(self.cache_size - 1)
        q = torch.cat([self.rotation(states.q, position), rotated(states.q, cos[slot], sin[slot])], -1)
        k = torch.nn.functional.pad(keys, (0, keys.shape[-1]))
        k[..., :self.sinks, :] = torch.nn.functional.pad(keys[..., :self.sinks, :], (keys.shape[-1], 0))
        return torch.nn.functional.scaled_dot_product_attention(q, k, values, attn_mask=mask, scale=states.scale,
                                                                enable_gqa=True)

    def turned(self, k, sinks, position):
        """Keys of which the first ones are sinks, which stay before RoPE."""
        return torch.cat([k[..., :max(0, sinks), :], self.rotation(k, position)[..., max(0, sinks):, :]], -2)

    def move_origin(self):
        keys, _ = self.held(slice(self.sinks, None))
        again = self.k_rows.encode(self.rotation.back(keys, self.cache_size))
        self.keys = torch.cat([self.keys[..., :self.sinks, :], again], -2)
        self.origin += self.cache_size
