# SPDX-License-Identifier: Apache-2.0
"""The one way into a model: its attention modules hand a CalibratedCache queries, keys and values before RoPE.

A hook before each attention module gives it cos = 1 and sin = 0, so that what it rotates stays as it was, and adds the
layer's cache and input to its arguments; those reach the attention function "kvspectrum". Without a CalibratedCache
that function is "sdpa"."""

import inspect
from dataclasses import dataclass, replace

import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from kvspectrum.batch import Sequences
from kvspectrum.config import ConfigError
from kvspectrum.rotation import rotated

NAME = "kvspectrum"
CACHE_NAMES = ("cache", "past_key_values")  # what models call their cache: from Transformers 5.24 on, and before
UNSUPPORTED = ("softcap", "s_aux", "position_bias")  # what changes scores, in some models


@dataclass
class States:
    """A layer's new tokens, before RoPE (after biases and QK-norm). Methods get those of one sequence."""

    q: torch.Tensor  # [sequence, query_head, token, head_dim]
    k: torch.Tensor  # [sequence, kv_head, token, head_dim]
    v: torch.Tensor
    x: torch.Tensor  # [sequence, token, d_model]: input of the attention module
    scale: float  # of scores
    first: int = 0  # position of the first token

    def sequence(self, n, places=slice(None)):
        """Those of a sequence, without the tokens that are not among `places`."""
        q, k, v = (states[n:n + 1, :, places] for states in (self.q, self.k, self.v))
        return replace(self, q=q, k=k, v=v, x=self.x[n:n + 1, places])

    def part(self, begin, count):
        tokens = slice(begin, begin + count)
        return replace(self, q=self.q[:, :, tokens], k=self.k[:, :, tokens], v=self.v[:, :, tokens],
                       x=self.x[:, tokens])


def kvspectrum_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, calibrated=None,
                         **kwargs):
    if calibrated is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **kwargs)
    found = [name for name in UNSUPPORTED if kwargs.get(name) is not None]
    if found:
        raise ValueError(f"CalibratedCache: found attention with {', '.join(found)}, expected none: no method has it")
    layer, x = calibrated
    if (window := kwargs.get("sliding_window") or 0) != layer.window:
        raise ValueError(f"CalibratedCache: found attention over a window of {window} tokens, expected {layer.window}")
    states = States(query, key, value, x, query.shape[-1] ** -0.5 if scaling is None else scaling)
    out = layer.run(states, attention_mask)
    return out.transpose(1, 2).contiguous(), None


def before_attention(module, args, kwargs):
    cache = next((kwargs[name] for name in CACHE_NAMES if kwargs.get(name) is not None), None)
    layer = cache.layers[module.layer_idx] if cache is not None and len(cache.layers) > module.layer_idx else None
    if not isinstance(layer, Sequences):
        return None
    if module.config._attn_implementation != NAME:
        raise ValueError(f"CalibratedCache: found attention {module.config._attn_implementation}, expected {NAME}: "
                         "call from_config after the last set_attn_implementation")
    layer.awaits = True
    cos, sin = kwargs["position_embeddings"]
    x = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
    return args, {**kwargs, "position_embeddings": (torch.ones_like(cos), torch.zeros_like(sin)),
                  "calibrated": (layer, x)}


def attention_modules(model):
    """@return the attention modules of a model's layers, None for a layer without attention"""
    modules = [getattr(layer, "self_attn", None) for layer in model.get_decoder().layers]
    if not any(modules):
        raise ConfigError(f"{type(model).__name__}: found layers without self_attn, expected layers as Llama's")
    return modules


def check_rotation(module, rotation):
    """@raises ConfigError where a model pairs channels for RoPE in another way than Llama"""
    apply = getattr(inspect.getmodule(type(module)), "apply_rotary_pos_emb", None)
    if apply is None or rotation.chunks == 0 or not {"q", "k"} <= set(inspect.signature(apply).parameters):
        return
    x = torch.arange(1.0, 2 * rotation.chunks + 1, device=rotation.frequencies.device)[None, None, None]
    cos, sin = (table[None] for table in rotation.table(1, 1, x))
    if not torch.allclose(apply(x, x, cos, sin)[1], rotated(x, cos, sin), rtol=1e-3, atol=1e-3):
        raise ConfigError(f"{type(module).__name__}: found RoPE over other pairs of channels, expected (c, c + n / 2)")


def attach(model, modules):
    """Gives a model with these attention modules the attention function and the hooks."""
    taken = set(inspect.signature(next(filter(None, modules)).forward).parameters)
    if not ({"position_embeddings", "kwargs"} <= taken and taken & set(CACHE_NAMES)):
        raise ConfigError(f"{type(model).__name__} of Transformers {transformers.__version__}: found an attention "
                          f"module that takes {', '.join(sorted(taken))}, expected position_embeddings and "
                          f"{' or '.join(CACHE_NAMES)}, as Llama's")
    AttentionInterface.register(NAME, kvspectrum_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)
    for module in filter(None, modules):
        if before_attention not in module._forward_pre_hooks.values():
            module.register_forward_pre_hook(before_attention, with_kwargs=True)
