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

from kvspectrum.config import ConfigError
from kvspectrum.layer import CalibratedLayer

NAME = "kvspectrum"
CACHE_NAMES = ("cache", "past_key_values")  # what models call their cache: from Transformers 5.24 on, and before
UNSUPPORTED = ("softcap", "s_aux", "position_bias", "sliding_window")  # what changes scores, in some models


@dataclass
class States:
    """A layer's new tokens, before RoPE (after biases and QK-norm)."""

    q: torch.Tensor  # [1, query_head, token, head_dim]
    k: torch.Tensor  # [1, kv_head, token, head_dim]
    v: torch.Tensor
    x: torch.Tensor  # [1, token, d_model]: input of the attention module
    scale: float  # of scores
    first: int = 0  # position of the first token

    def part(self, begin, count):
        tokens = slice(begin, begin + count)
        return replace(self, q=self.q[:, :, tokens], k=self.k[:, :, tokens], v=self.v[:, :, tokens],
                       x=self.x[:, tokens])


def kvspectrum_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, calibrated=None,
                         **kwargs):
    if calibrated is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **kwargs)
    if query.shape[0] != 1 or attention_mask is not None:
        mask = "" if attention_mask is None else " with a mask"
        raise ValueError(f"CalibratedCache: found a batch of {query.shape[0]}{mask}, expected one sequence, not padded")
    found = [name for name in UNSUPPORTED if kwargs.get(name) is not None]
    if found:
        raise ValueError(f"CalibratedCache: found attention with {', '.join(found)}, expected none: no method has it")
    layer, x = calibrated
    out = layer.run(States(query, key, value, x, query.shape[-1] ** -0.5 if scaling is None else scaling))
    return out.transpose(1, 2).contiguous(), None


def before_attention(module, args, kwargs):
    cache = next((kwargs[name] for name in CACHE_NAMES if kwargs.get(name) is not None), None)
    layer = cache.layers[module.layer_idx] if cache is not None and len(cache.layers) > module.layer_idx else None
    if not isinstance(layer, CalibratedLayer):
        return None
    if module.config._attn_implementation != NAME:
        raise ValueError(f"CalibratedCache: found attention {module.config._attn_implementation}, expected {NAME}: "
                         "call from_config after the last set_attn_implementation")
    layer.awaits = True
    cos, sin = kwargs["position_embeddings"]
    x = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
    return args, {**kwargs, "position_embeddings": (torch.ones_like(cos), torch.zeros_like(sin)),
                  "calibrated": (layer, x)}


def attach(model):
    """Gives `model` the attention function and the hooks. @return its attention modules, one for each layer"""
    modules = [getattr(layer, "self_attn", None) for layer in model.get_decoder().layers]
    if None in modules:
        raise ConfigError(f"{type(model).__name__}: found layers without self_attn, expected layers as Llama's")
    taken = set(inspect.signature(modules[0].forward).parameters)
    if not ({"position_embeddings", "kwargs"} <= taken and taken & set(CACHE_NAMES)):
        raise ConfigError(f"{type(model).__name__} of Transformers {transformers.__version__}: found an attention module "
                          f"that takes {', '.join(sorted(taken))}, expected position_embeddings and "
                          f"{' or '.join(CACHE_NAMES)}, as Llama's")
    AttentionInterface.register(NAME, kvspectrum_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)
    for module in modules:
        if before_attention not in module._forward_pre_hooks.values():
            module.register_forward_pre_hook(before_attention, with_kwargs=True)
    return modules
