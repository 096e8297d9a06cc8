"""A config at work in Transformers."""

from transformers import Cache

from kvspectrum.attention import attach
from kvspectrum.config import Config, ConfigError
from kvspectrum.layer import CalibratedLayer, Setting
from kvspectrum.methods import METHODS
from kvspectrum.rotation import Rotation
from kvspectrum.stores import ADJACENT, Stores


class CalibratedCache(Cache):
    """The cache that a config describes, for one sequence: past_key_values of model(...) and generate(...).

    It counts positions itself, from 0. Every sequence takes a new cache, or reset()."""

    @classmethod
    def from_config(cls, path, model, prefix=None):
        """The cache of the config at `path`. It needs the model, not just its config: RoPE is its rotary embedding's,
        and its attention modules are given the function that the cache works in (attention.py).
        @param prefix  for methods that compress a prefix once: its tokens, instead of the config's number
        @raises ConfigError for a file that is no config, parameters that no method here has, another model"""
        config = Config(path)
        if config.method not in METHODS:
            raise ConfigError(f"{path}: found method {config.method}, expected one of {', '.join(METHODS)}")
        config.check_model(model)
        method = METHODS[config.method]
        whole = config.prefix(method.always_whole)
        if prefix is not None and whole == 0:
            raise ConfigError(f"{path}: found a prefix of {prefix} tokens, expected none: {config.method} acts while "
                              "tokens come")
        factors, modules, rotation = config.factors(), attach(model), Rotation(model.get_decoder().rotary_emb)
        layers = []
        for index, module in enumerate(modules):
            parameters = config.parameters(index)
            setting = Setting(module, rotation, whole if prefix is None else prefix, factors, index)
            if parameters is not None and method.takes_types:
                stores = Stores(parameters, index)
                setting.stores = None if stores.plain else stores
                setting.adjacent = 2 * rotation.chunks if config.model["architecture"] in ADJACENT else 0
            full = parameters is None or method.keeps_all(parameters, index)
            layers.append(CalibratedLayer(parameters, setting) if full else method(parameters, setting))
        return cls(layers=layers)
