# SPDX-License-Identifier: Apache-2.0
import torch
from safetensors import safe_open

from kvspectrum.config import is_index_list
from kvspectrum.layer import CalibratedLayer, attention, joined
from kvspectrum.rotation import rotated
from kvspectrum.stores.rows import PlainRows


def _picks(value):
    return isinstance(value, list) and len(value) > 0 and all(map(is_index_list, value))


class ElitekvLayer(CalibratedLayer):
    """Chunks `elite` of each KV head are rotated, the others are not. With factors it holds of a token the rotated
    elite rows of all KV heads (`keys`) and the latent down · x (`values`), 2rG + d_ckv values, and gets keys and values
    back by one product for each group that attends; without, keys and values. YaRN's factor stays in the channels that
    are not rotated. Fitted queries take W_q's place, fitted outputs multiply what attention yields (docs/configs.md).
    Source: EliteKV, sections 3.1 and 3.2."""

    no_press = "a press chooses tokens, a latent has all of them"
    acts_in_windows = True

    def __init__(self, parameters, setting):
        elite = parameters.read("elite", _picks, "chunks for each KV head")
        attention_module = setting.module
        self.head_dim = attention_module.head_dim
        heads = attention_module.config.num_key_value_heads
        if len(elite) != heads:
            parameters.refuse("elite", f"found {len(elite)} heads, expected {heads}: query heads that share a key "
                                       "cannot have rows of their own")
        self.elite = torch.tensor(elite)  # [kv_head, pick]
        self.factors: dict[str, torch.Tensor] = {}  # none: keys and values are held
        self.split = 2 * self.elite.numel()
        if setting.factors:
            self.factors = _read_factors(setting.factors, f"layers.{setting.index}.")
            self.biases = [getattr(getattr(attention_module, name, None), "bias", None)
                           for name in ("k_proj", "v_proj")]
        super().__init__(parameters, setting)

    def rows_of(self, setting):
        if not self.factors or setting.stores is None:
            return super().rows_of(setting)
        return setting.stores.of_rows(self.split, self.split + len(self.factors["down"])), PlainRows()

    def add_rows(self, rows, latent):
        """With a storage type both are one row: the first channels of every head's chunks, the second ones, the latent.
        @return elite rows [1, kv_head, token, 2r] and latents [1, 1, token, d_ckv] of all tokens"""
        if not self.k_rows.coded:
            return self.add(rows, latent)
        heads = rows.shape[1]
        elite = rows.unflatten(-1, (2, -1)).permute(0, 2, 3, 1, 4).flatten(3).transpose(1, 2).flatten(2)[:, None]
        self.keys = joined(self.keys, self.k_rows.encode(torch.cat([elite, latent], -1)))
        held = self.k_rows.decode(self.keys, rows)
        elite, latent = held[..., :self.split], held[..., self.split:]
        return elite[:, 0].unflatten(-1, (2, heads, -1)).permute(0, 3, 1, 2, 4).flatten(3), latent

    def attend(self, states):
        k = self.partly_rotated(states.k, states.first)
        if not self.factors:
            keys, values = self.add(k, states.v)
            return attention(self.partly_rotated(states.q, states.first), keys, values, states.scale, self.reach)
        factors = self.factors_like(states.x)
        q = states.q
        if "query" in factors:
            rows = torch.nn.functional.linear(states.x, factors["query"], factors.get("query_bias"))
            q = rows.unflatten(-1, (q.shape[1], -1)).transpose(1, 2)
        latent = (states.x @ factors["down"].T)[:, None]
        rows, latent = self.add_rows(k.take_along_dim(self.elite_channels(k), -1), latent)
        keys, values = self.expanded(rows, latent)
        out = attention(self.partly_rotated(q, states.first), keys, values, states.scale, self.reach)
        if "output" in factors:
            rows = out.transpose(1, 2).flatten(2) @ factors["output"].T
            out = rows.unflatten(-1, (q.shape[1], -1)).transpose(1, 2)
        return out

    def partly_rotated(self, x, first):
        """RoPE in the elite chunks alone."""
        cos, sin = self.rotation.table(first, x.shape[-2], x)
        chunks = cos.shape[-1] // 2
        turns = torch.zeros(len(self.elite), chunks, dtype=torch.bool).scatter(1, self.elite, True)
        turns = turns.repeat_interleave(x.shape[1] // len(self.elite), 0).repeat(1, 2)[:, None].to(x.device)
        return rotated(x, torch.where(turns, cos, self.rotation.factor), torch.where(turns, sin, 0))

    def elite_channels(self, x):
        """[1, kv_head, 1, 2r]: the first channels of the chunks, then the second ones."""
        chunks = self.rotation.chunks
        return torch.cat([self.elite, self.elite + chunks], -1)[None, :, None].to(x.device)

    def factors_like(self, x):
        self.factors = {name: factor.to(x) for name, factor in self.factors.items()}
        return self.factors

    def expanded(self, rows, latent):
        """K and V [1, kv_head, token, head_dim]."""
        heads, tokens = rows.shape[1], rows.shape[2]
        columns = latent[0, 0] @ self.factors["up"].T  # [token, rest of the keys by head, values by head]
        rest, values = columns.split([columns.shape[1] - heads * self.head_dim, heads * self.head_dim], -1)
        elite = self.elite_channels(rows)
        plain = torch.ones(heads, self.head_dim, dtype=torch.bool, device=rows.device).scatter(1, elite[0, :, 0], False)
        keys = rows.new_zeros(tokens, heads, self.head_dim)
        keys[:, plain] = rest
        key_bias, value_bias = self.biases
        if key_bias is not None:
            keys = keys + key_bias.view(heads, -1)
        if value_bias is not None:
            values = values + value_bias
        keys = (self.rotation.factor * keys).transpose(0, 1)[None].scatter(-1, elite.expand(1, -1, tokens, -1), rows)
        return keys, values.view(1, tokens, heads, -1).transpose(1, 2)


def _read_factors(path, prefix):
    """A layer's tensors by their names: down [d_ckv, d_model] and up [rows, d_ckv], those of S-LRD as blocks of one
    pair; query, query_bias and output where they were fitted."""
    with safe_open(path, "pt") as file:  # no dict
        found = {name.removeprefix(prefix): file.get_tensor(name) for name in file.keys()  # noqa: SIM118
                 if name.startswith(prefix)}
    if "down_k" in found:
        found["down"] = torch.cat([found.pop("down_k"), found.pop("down_v")])
        found["up"] = torch.block_diag(found.pop("up_k"), found.pop("up_v"))
    return found
