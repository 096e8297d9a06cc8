# SPDX-License-Identifier: Apache-2.0
"""The base of every method's layer."""

import copy
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kvspectrum.rotation import Rotation
from kvspectrum.stores import Stores
from kvspectrum.stores.rows import PlainRows


@dataclass
class Setting:
    """Where a layer is at work."""

    module: torch.nn.Module  # the attention
    rotation: Rotation
    prefix: int = 0  # tokens that are compressed once, at their end; 0: none
    factors: Path | None = None  # the tensor file of an elitekv or triattention config
    index: int = 0  # of the layer
    stores: Stores | None = None  # the storage types; None: states stay as the model computes them
    codec: object = None  # a transform config as a kvspectrum.codec.Codec, where there is such a library
    window: int = 0  # the last positions that a token reads, its own included; 0: all
    shared: dict[str, Any] = field(default_factory=dict)  # what the caches of all sequences share
    adjacent: int = 0  # RoPE's channels where ggml stores those of a chunk next to each other, else 0


class CalibratedLayer:
    """The cache of one layer for one sequence: a method at work; this one keeps every token. `keys` and `values`
    [1, kv_head, row, head_dim] are what it holds, or, with a storage type, codes [1, kv_head, row, byte]; whether keys
    are rotated is the method's choice."""

    always_whole = False  # whether it compresses a prefix, at its end, and nothing else
    acts_in_windows = False  # whether it is at work in layers with a sliding window; others keep what these read
    takes_types = True  # whether storage types hold its rows
    keys: Any  # torch.Tensor, or None
    values: Any
    no_press = "kvpress has no such press"  # why press.py has none
    unlimited = sys.maxsize

    def __init__(self, parameters, setting):
        self.rotation, self.prefix, self.reach = setting.rotation, setting.prefix, setting.window
        self.k_rows, self.v_rows = self.rows_of(setting)
        self.reset()

    def rows_of(self, setting):
        """How keys and values are held."""
        if setting.stores is None:
            return PlainRows(), PlainRows()
        return setting.stores.of_heads(setting.module.head_dim, setting.adjacent)

    @staticmethod
    def keeps_all(parameters, index):
        """Whether the method leaves this layer alone."""
        return False

    def reset(self):
        self.keys = self.values = None
        self.seen = 0  # tokens

    def copy(self):
        """Another cache with the same content. Tensors are never written."""
        return copy.copy(self)

    @property
    def rows(self):
        return 0 if self.keys is None else self.keys.shape[-2]

    @property
    def in_prefix(self):
        return self.seen < self.prefix

    def room(self):
        """Tokens that may attend as one group before the method has to act between two of them: at least 1. Any split
        of a text into groups that respect it gives the same cache and, up to rounding, the same results."""
        return self.unlimited

    def attend(self, states):
        """Attention of the new tokens over what is held and over themselves; keeps of them what the method keeps.
        @return [1, query_head, token, head_dim]"""
        keys, values = self.add_rotated(states)
        out = attention(self.rotation(states.q, states.first), keys, values, states.scale, self.reach)
        if self.reach and self.rows >= self.reach:
            self.drop_rows(0, self.rows - self.reach + 1)
        return out

    def end_prefix(self):
        """Compresses the prefix."""

    def run(self, states):
        """attend() of all tokens of a forward pass, cut where the method acts."""
        outputs, begin, tokens = [], 0, states.q.shape[-2]
        while begin < tokens:
            count = min(self.room(), tokens - begin, self.prefix - self.seen if self.in_prefix else self.unlimited)
            part = states.part(begin, count)
            part.first = self.seen
            outputs.append(self.attend(part))
            self.seen += count
            if self.seen == self.prefix:
                self.end_prefix()
            begin += count
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, -2)

    def add(self, k, v):
        """Holds k and v. @return held(): tokens read themselves as they are held, too"""
        self.keys = joined(self.keys, self.k_rows.encode(k))
        self.values = joined(self.values, self.v_rows.encode(v))
        self.like = k.new_empty(0)
        return self.held()

    def held(self, rows=slice(None)):
        """@return keys and values of some rows, of all without an argument"""
        return (self.k_rows.decode(self.keys[..., rows, :], self.like),
                self.v_rows.decode(self.values[..., rows, :], self.like))

    def hold(self, keys, values):
        """Holds these alone."""
        self.keys, self.values = self.k_rows.encode(keys), self.v_rows.encode(values)

    def add_rotated(self, states):
        return self.add(self.rotation(states.k, states.first), states.v)

    def keep(self, first, count, kept):
        """Keeps `kept` [kv_head, number], counted from `first`, of the rows first … first + count − 1."""
        rows = (first + kept)[None, :, :, None]
        self.keys, self.values = (
            torch.cat([x[..., :first, :], x.take_along_dim(rows, -2), x[..., first + count:, :]], -2)
            for x in (self.keys, self.values))

    def drop_rows(self, first, last):
        self.keys, self.values = (torch.cat([x[..., :first, :], x[..., last:, :]], -2)
                                  for x in (self.keys, self.values))


def owned(x):
    """x in memory of its own where it is a part of a larger tensor, which it would keep in memory."""
    return x.clone() if x.untyped_storage().nbytes() > x.numel() * x.element_size() else x


def joined(rows, new):
    return owned(new) if rows is None else torch.cat([rows, new], -2)


def attention(q, k, v, scale, window=0):
    """Attention of queries that are the last of the keys' tokens.
    @param window  the last keys that a query reads, its own included; 0: all"""
    queries, keys = q.shape[-2], k.shape[-2]
    mask, limited = None, 0 < window < keys
    if 1 < queries < keys or limited:
        mask = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
        if limited:
            mask = mask.triu(keys - queries - window + 1)
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=mask is None and queries == keys > 1, scale=scale, enable_gqa=True)


def attention_with_mass(q, k, v, scale):
    """attention(), and the sum over a KV head's queries of the softmax weights that each key gets.
    @return out, mass [kv_head, key]"""
    heads, (queries, keys) = k.shape[1], (q.shape[-2], k.shape[-2])
    grouped = q.unflatten(1, (heads, -1))  # [1, kv_head, group, token, head_dim]
    scores = grouped @ k[:, :, None].mT * scale
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1, dtype=torch.promote_types(q.dtype, torch.float32))
    return (weights.to(v.dtype) @ v[:, :, None]).flatten(1, 2), weights.double().sum((0, 2, 3))


def best_tokens(scores, count):
    """Indices of the `count` largest of scores [head, token], the first of equal ones, ascending."""
    return scores.sort(dim=-1, descending=True, stable=True).indices[:, :count].sort(dim=-1).values
