# SPDX-License-Identifier: Apache-2.0
"""Checks a method's parameters against each other and the model, as `kvcalibrate` does (calibrate/)."""

import struct

from kvspectrum.reader.error import ConfigError, shown
from kvspectrum.reader.schema import parameters_of
from kvspectrum.reader.sizes import size_of

_MOST = 1 << 40  # of a count
_SIZES = ("query_heads", "kv_heads", "head_dim")
_NUMBER_LISTS = {"kept", "kept_v", "skip_layers", "type_skip_layers"}
_SCALES = ("scale_k", "scale_v")
_SHARED = {"layers", "prefix", "prefill"}  # no lists by layer

# For each type: the block that head_dim is a multiple of, and the sides whose rotation needs a power of two.
_GGML = {name: (32, "") for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")}
_TYPES = _GGML | {
    "nvfp4": (16, ""),
    "int4_per_token_head": (2, ""), "turboquant_k8v4": (16, ""), "turboquant_4bit_nc": (16, "k"),
    "turboquant_k3v4_nc": (16, "k"), "turboquant_3bit_nc": (16, "k"), "quarot4": (2, "kv"),
}


class _Layer:
    """A layer's parameters, standards included."""

    def __init__(self, values, refuse, index, model):
        """@param model  with the sizes of layer `index`"""
        self.values, self.refuse, self.index, self.model = values, refuse, index, model

    def __getitem__(self, name):
        return self.values[name]

    def at_least(self, name, least):
        if not least <= self[name] <= _MOST:
            self.refuse(name, f"found {self[name]}, expected a whole number of at least {least}")

    def expect(self, name, fits, expected):
        if not fits:
            self.refuse(name, f"found {shown(self[name])}, expected {expected}")


class _Reader:
    def __init__(self, document, where):
        self.model, self.method, self.where = document["model"], document["method"], where
        self.given = {name: value for name, value in document["parameters"].items() if value is not None}
        self.standards = {name: node.get("default") for name, node in parameters_of(self.method).items()}
        without = self.model.get("layers_without_cache", [])
        all_layers = [layer for layer in range(self.model["layers"]) if layer not in without]
        self.layers = self.numbers("layers", self.given.get("layers", all_layers), self.model["layers"])
        if not self.layers or self.layers != sorted(set(self.layers)):
            self.refuse("layers", "found another list, expected some layers, ascending, each once")
        if not set(self.layers) <= set(all_layers):
            self.refuse("layers", "found a layer without a KV cache of its own, expected layers with one")

    def refuse(self, name, problem):
        raise ConfigError(f"{self.where}: /parameters/{name}: {problem}")

    def numbers(self, name, value, limit):
        """As a list: one, several or none."""
        found = [] if value == "none" else value if isinstance(value, list) else [value]
        if any(not isinstance(one, int) or not 0 <= one < limit for one in found):
            self.refuse(name, f"found {shown(value)}, expected numbers below {limit}, or none")
        if len(set(found)) != len(found):
            self.refuse(name, "found a number twice, expected each number once")
        return found

    def of_layer(self, name, position):
        value = self.given.get(name, self.standards[name])
        by_layer = isinstance(value, list) and (
            name not in _NUMBER_LISTS or (len(value) > 0 and isinstance(value[0], list)))
        if name not in self.given or not by_layer:
            return value
        if name in _SHARED:
            self.refuse(name, "found a list, expected one value for all layers")
        if len(value) != len(self.layers):
            self.refuse(name, f"found a list of {len(value)}, expected a value for each of {len(self.layers)} layers")
        return value[position]

    def layer(self, position):
        values = {name: self.of_layer(name, position) for name in self.standards if name != "layers"}
        index = self.layers[position]
        sizes = {name: size_of(self.model, name, index) for name in _SIZES}
        layer = _Layer(values, self.refuse, index, {**self.model, **sizes})
        for name in _NUMBER_LISTS & self.given.keys():
            limit = values["chunks"] if name.startswith("kept") else self.model["layers"]
            values[name] = self.numbers(name, values[name], limit)
        if "type_skip_layers" not in self.given:
            values["type_skip_layers"] = None
        return layer

    def check(self):
        for position in range(len(self.layers)):
            layer = self.layer(position)
            if "type" in layer.values:
                _check_types(layer)
            _METHODS.get(self.method, lambda _: None)(layer)
        self.check_prefix(layer)

    def check_prefix(self, layer):
        if layer["prefill"] == "whole":
            layer.at_least("prefix", 1)


def _check_types(layer):
    head_dim, heads = layer.model["head_dim"], layer.model["kv_heads"]
    for side in "kv":
        word = layer[f"type_{side}"]
        name = layer["type"] if word == "type" else word
        block, turned = _TYPES.get(name, (1, ""))
        layer.expect(f"type_{side}", head_dim % block == 0, f"another type: head_dim is {head_dim}")
        layer.expect(f"type_{side}", side not in turned or head_dim & (head_dim - 1) == 0,
                     f"another type: head_dim is {head_dim}, no power of two")
    for name in _SCALES:
        if isinstance(layer[name], list) and len(layer[name]) != heads:
            layer.refuse(name, f"found {len(layer[name])} scales, expected one for each of {heads} KV heads")


def _slots(layer):
    layer.at_least("cache_size", 2 + layer["sinks"])
    slots = layer["cache_size"] - layer["sinks"]
    kept = int(layer["gamma"] * slots)
    layer.expect("gamma", 0 < kept < slots, "one that keeps some slots and frees some")
    if "recent" in layer.values:
        layer.expect("recent", layer["recent"] < kept, f"fewer than the {kept} slots that a compression keeps")


def _streaming(layer):
    layer.at_least("cache_size", layer["sinks"] + (2 if layer["sinks"] == 0 else 1))


def _h2o(layer):
    layer.at_least("cache_size", 1 + layer["recent"])


def _triattention(layer):
    layer.at_least("cache_size", 1 + layer["interval"] + layer["sinks"] + layer["recent"])


def _snapkv(layer):
    layer.at_least("cache_size", 1 + layer["window"])
    layer.expect("kernel", layer["kernel"] % 2 == 1, "an odd number")
    layer.at_least("prefix", layer["window"])


def _lagkv(layer):
    layer.expect("ratio", int(layer["ratio"] * layer["lag"]) > 0, f"one that keeps some of {layer['lag']} tokens")


def _kivi(layer):
    layer.expect("bits", layer["bits"] in (2, 4), "2 or 4")
    group = layer["group"]
    layer.expect("group", 256 % group == 0, "a power of two of at most 256")
    layer.expect("residual", layer["residual"] % group == 0, f"a multiple of group, {group}")
    layer.expect("group", layer.model["head_dim"] % group == 0, "a divisor of head_dim")


def _oscar(layer):
    layer.expect("group", layer["group"] & (layer["group"] - 1) == 0, "a power of two")


def _gqa(layer):
    heads, all_heads = layer["heads"], layer.model["kv_heads"]
    layer.expect("heads", all_heads % heads == 0, f"a divisor of the model's {all_heads} KV heads")
    skipped = layer["type_skip_layers"]
    if skipped is None:  # turboquant leaves two at both ends
        ends = any(layer[name].startswith("turboquant") for name in ("type_k", "type_v"))
        ends = ends or layer["type"].startswith("turboquant") and "type" in (layer["type_k"], layer["type_v"])
        skipped = [n for n in range(layer.model["layers"]) if ends and not 2 <= n < layer.model["layers"] - 2]
    if heads == all_heads or layer.index in skipped:
        return
    for name in _SCALES:
        scales = layer[name] if isinstance(layer[name], list) else []
        layer.expect(name, len({struct.pack("f", scale) for scale in scales}) < 2,
                     "one for all KV heads: they are pooled before they are stored")


def _faedkv(layer):
    half = layer["transform"] == "dft" and layer["spectrum"] == "half"
    tokens = max(1, 2 * (layer["chunks"] - 1)) if half else 1
    layer.at_least("prefix", layer["sinks"] + layer["recent"] + tokens)
    if not half:
        return
    layer.expect("kept", layer["kept"], "at least one chunk")
    if layer["kept_v"] is not None:  # else as kept
        layer.expect("kept_v", layer["kept_v"], "at least one chunk")
    layer.expect("update", (layer["key_space"], layer["age"], layer["update"]) != ("k_pre", "on", "literal"),
                 "corrected with key_space k_pre")


_METHODS = {"dropping": _slots, "freqkv": _slots, "streaming": _streaming, "h2o": _h2o, "snapkv": _snapkv,
            "lagkv": _lagkv, "kivi": _kivi, "oscar": _oscar, "gqa": _gqa, "faedkv": _faedkv, "triattention": _triattention}


def check_parameters(document, where):
    """Checks the parameters of a document that follows the schema, with a method that `eval --method` takes."""
    _Reader(document, where).check()


def check_row_types(document, where):
    """How an elitekv config holds its rows, which are no heads."""
    types = document["parameters"].get("type", "none")
    for name in types if isinstance(types, list) else [types]:
        if name.startswith(("turboquant", "quarot", "int4")):
            raise ConfigError(f"{where}: /parameters/type: found {name}, expected another for rows that are not those "
                              "of a head")
