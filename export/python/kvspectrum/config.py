# SPDX-License-Identifier: Apache-2.0
"""Reads a config (docs/configs.md) and checks that it fits a model."""

import json
from pathlib import Path

import torch

from kvspectrum.reader import ConfigError, read_config
from kvspectrum.rotation import NoRotation, Rotation


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_index_list(value):
    return isinstance(value, list) and all(map(is_count, value))


class Parameters:
    """A layer's parameters. A list has a value for each layer that the config names, anything else is every layer's.
    There are no standards here: `kvcalibrate eval --save-config` writes every parameter."""

    def __init__(self, values, where, position=None):
        self._values, self._where, self._position = values, where, position

    def __contains__(self, name):
        return name in self._values

    def refuse(self, name, problem):
        raise ConfigError(f"{self._where}: /parameters/{name}: {problem}")

    def read(self, name, fits, expected):
        """@param fits  whether a value is one layer's; a list that is not is taken apart"""
        found = self._values.get(name)
        if isinstance(found, list) and not fits(found) and self._position is not None:
            found = found[self._position] if self._position < len(found) else None
        if not fits(found):
            self.refuse(name, f"found {json.dumps(found)}, expected {expected}")
        return found

    def count(self, name, least=0):
        return self.read(name, lambda value: is_count(value) and value >= least, f"a whole number of at least {least}")

    def ratio(self, name):
        return self.read(name, lambda value: isinstance(value, (int, float)) and 0 <= value <= 1,
                         "a number from 0 to 1")

    def weight(self, name):
        """1 where a config says none: earlier ones do not."""
        if name not in self:
            return 1
        return self.read(name, lambda value: isinstance(value, (int, float)) and value >= 0, "a number of at least 0")

    def numbers(self, name):
        """A number, or one for each head, which only stands in a list of layers."""
        found = self._values.get(name)
        if isinstance(found, list) and self._position is not None:
            found = found[self._position]
        return found if isinstance(found, list) else [found]

    def word(self, name, *words):
        return self.read(name, lambda value: value in words, "one of " + ", ".join(words))

    def on(self, name):
        return self.word(name, "on", "off") == "on"

    def indices(self, name):
        """Ascending."""
        found = self.read(name, lambda value: is_count(value) or is_index_list(value) or value == "none",
                          "numbers, or none")
        return [] if found == "none" else sorted([found] if is_count(found) else found)


class Config:
    """A config document. @raises ConfigError for what `kvcalibrate validate` refuses"""

    def __init__(self, path):
        self.path = Path(path)
        document = read_config(self.path)
        self.method, self.model, self.files = document["method"], document["model"], document["files"]
        self._values = document["parameters"]
        without = self.model.get("layers_without_cache", [])
        cached = [layer for layer in range(self.model["layers"]) if layer not in without]
        layers = self._values.get("layers", cached)
        self.layers = [layers] if is_count(layers) else layers

    def parameters(self, layer=None):
        """Those of a layer; without one, those that all layers share. None for a layer that keeps everything."""
        if layer is not None and layer not in self.layers:
            return None
        return Parameters(self._values, str(self.path), None if layer is None else self.layers.index(layer))

    def prefix(self, always):
        """Tokens that attend to all of themselves and are compressed once, at their end; 0: none.
        @param always  whether the method works in no other way"""
        parameters = self.parameters()
        whole = always or ("prefill" in parameters and parameters.word("prefill", "stepwise", "whole") == "whole")
        return parameters.count("prefix", 1) if whole else 0

    def factors(self):
        """The tensor file of an elitekv or triattention config, or None."""
        return self.path.parent / self.files[0]["path"] if self.files else None

    def size(self, name, layer):
        found = self.model[name]
        return found[layer] if isinstance(found, list) else found

    def check_model(self, model, modules):
        """@param modules  the attention modules of the layers, None for a layer without attention
        @raises ConfigError if the config is of another geometry, or the model has what no method here works with.
        Weights are not compared: the digest in the config is of a file."""
        text, decoder, name = model.config.get_text_config(), model.get_decoder(), type(model).__name__
        if len(modules) != self.model["layers"]:
            raise ConfigError(f"{self.path}: config for another model: found layers {self.model['layers']}, expected "
                              f"{len(modules)}")
        for layer, module in enumerate(modules):
            self.check_layer(text, layer, module)
        if getattr(text, "attn_logit_softcapping", None):
            raise ConfigError(f"{name}: found attn_logit_softcapping, expected scores without a cap")
        if any(hasattr(module, "query_layernorm") for module in decoder.modules()):
            raise ConfigError(f"{name}: found norms of queries and keys after RoPE, expected none")
        if not hasattr(decoder, "rotary_emb"):
            raise ConfigError(f"{name}: found no rotary embedding, expected one of all layers")

    def check_layer(self, text, layer, module):
        kind = (getattr(text, "layer_types", None) or {layer: "full_attention"})[layer]
        if module is None or layer in self.model.get("layers_without_cache", []):
            if (module is None) != (layer in self.model.get("layers_without_cache", [])):
                raise ConfigError(f"{self.path}: config for another model: found layer {layer} "
                                  f"{'with' if module is None else 'without'} a KV cache, expected the other")
            return
        if kind not in ("full_attention", "attention", "sliding_attention"):
            raise ConfigError(f"layer {layer}: found {kind}, expected full_attention or sliding_attention")
        heads = text.num_attention_heads
        found = {"query_heads": heads, "kv_heads": getattr(text, "num_key_value_heads", None) or heads,
                 "head_dim": getattr(module, "head_dim", None) or text.hidden_size // heads}
        for name, value in found.items():
            if self.size(name, layer) != value:
                raise ConfigError(f"{self.path}: config for another model: found {name} {self.size(name, layer)}, "
                                  f"expected {value}")

    def rotation(self, model, layer):
        """RoPE of a layer. @raises ConfigError unless its frequencies are the config's, for all lengths"""
        rope, embedding, name = self.model["rope"], model.get_decoder().rotary_emb, type(model).__name__
        which = rope["layer_kinds"][layer]
        frequencies = torch.tensor(rope["frequencies"][which])
        if not frequencies.any():
            return NoRotation()
        kinds = getattr(model.config.get_text_config(), "layer_types", None)
        kind = kinds[layer] if kinds and hasattr(embedding, f"{kinds[layer]}_inv_freq") else None
        found = getattr(embedding, "rope_type", None)
        found = found.get(kind) if isinstance(found, dict) else found
        if found in ("dynamic", "longrope") or kind is None and not hasattr(embedding, "inv_freq"):
            raise ConfigError(f"{name}: found RoPE {found}, expected one whose frequencies are those of all lengths")
        rotation = Rotation(embedding, kind)
        if (rotation.frequencies.shape != frequencies.shape
                or not torch.allclose(rotation.frequencies.float().cpu(), frequencies, rtol=1e-4, atol=0)
                or abs(rotation.factor - rope["factors"][which]) > 1e-4):
            raise ConfigError(f"{self.path}: config for another model: found other frequencies of RoPE")
        return rotation

    def check_rows(self):
        """@raises ConfigError for rows of a transform config that no cache of one layer can hold"""
        problems = {"groups": "layers that share rows, all of which have to come before the first one reads",
                    "predict": "rows that are predicted from embeddings",
                    "form": "the storage form, which is decoded as a whole"}
        for name, found in problems.items():
            if name in self._values:
                raise ConfigError(f"{self.path}: /parameters/{name}: found {found}, expected a row for each layer: "
                                  "kvspectrum.codec and the programs code the others")

    def check_types(self):
        """@raises ConfigError if rows are stored in another form than the model's, for presses"""
        for layer in self.layers:
            parameters = self.parameters(layer)
            for name in ("type", "type_k", "type_v"):
                if name in parameters:
                    parameters.read(name, lambda value: value in ("none", "type"),
                                    "none: a press chooses tokens, it does not code them")
