# SPDX-License-Identifier: Apache-2.0
"""A config at work in Transformers."""

from functools import partial

import torch
from transformers import Cache, DynamicCache, cache_utils

from kvspectrum.attention import attach, attention_modules, check_rotation
from kvspectrum.batch import Padding, Sequences
from kvspectrum.codec import opened
from kvspectrum.config import Config, ConfigError
from kvspectrum.layer import CalibratedLayer, Setting
from kvspectrum.methods import METHODS
from kvspectrum.stores import ADJACENT, Stores


class CalibratedCache(Cache):
    """The cache that a config describes: past_key_values of model(...) and generate(...).

    It counts the positions of each sequence itself, from 0, without padding. Every batch takes a new cache, or
    reset()."""

    @classmethod
    def from_config(cls, path, model, prefix=None):
        """The cache of the config at `path`. It needs the model, not just its config: RoPE is its rotary embedding's,
        and its attention modules are given the function that the cache works in (attention.py).
        @param prefix  for methods that compress a prefix once: its tokens, instead of the config's number
        @raises ConfigError for a file that is no config, parameters that no method here has, another model"""
        config = Config(path)
        if config.method not in METHODS:
            raise ConfigError(f"{path}: found method {config.method}, expected one of {', '.join(METHODS)}")
        modules = attention_modules(model)
        config.check_model(model, modules)
        config.check_rows()
        whole = config.prefix(METHODS[config.method].always_whole)
        if prefix is not None and whole == 0:
            raise ConfigError(f"{path}: found a prefix of {prefix} tokens, expected none: {config.method} acts while "
                              "tokens come")
        on_cpu = config.method == "transform" and model.device.type == "cpu"
        codec = opened(config.path, torch.get_num_threads()) if on_cpu else None
        others, padding, layers = other_layers(model, modules), Padding(), []
        for index, module in enumerate(modules):
            if module is None:
                layers.append(others[index])
                continue
            make = layer_maker(config, model, module, index, whole if prefix is None else prefix, codec)
            layers.append(Sequences(make, padding))
        attach(model, modules)
        return cls(layers=layers)


def layer_maker(config, model, module, index, prefix, codec):
    """@return what makes the cache of one sequence in a layer"""
    method, parameters = METHODS[config.method], config.parameters(index)
    setting = Setting(module, config.rotation(model, index), prefix, config.factors(), index,
                      codec=codec, window=window_of(model.config.get_text_config(), index))
    check_rotation(module, setting.rotation)
    if parameters is not None and method.takes_types:
        stores = Stores(parameters, index)
        setting.stores = None if stores.plain else stores
        if config.model["architecture"] in ADJACENT:
            setting.adjacent = config.model["rope"]["rotary_dim"]
    full = (parameters is None or method.keeps_all(parameters, index)
            or setting.window > 0 and not method.acts_in_windows)
    return partial(CalibratedLayer if full else method, parameters, setting)


def window_of(text, layer):
    """@return the last positions that a token reads; 0: all"""
    kinds = getattr(text, "layer_types", None)
    reads_window = kinds is None or kinds[layer] == "sliding_attention"
    return (getattr(text, "sliding_window", None) or 0) if reads_window else 0


def other_layers(model, modules):
    """@return the caches that Transformers has for layers without attention: recurrent states
    @raises ConfigError for a version that keeps them elsewhere, and for layers that have attention, too"""
    if all(modules) and not hasattr(model.get_decoder().layers[0], "mamba"):
        return None
    states = getattr(cache_utils, "LinearAttentionCacheLayerMixin", None)
    layers = DynamicCache(config=model.config).layers if states else []
    for layer, module in zip(layers or [None] * len(modules), modules):
        if states is None or isinstance(layer, states) != (module is None):
            raise ConfigError(f"{type(model).__name__}: found recurrent layers whose states this version of "
                              "Transformers keeps elsewhere, or with the attention's, expected layers of their own")
    return layers
