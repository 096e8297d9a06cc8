# SPDX-License-Identifier: Apache-2.0
"""Checks the tensors of a config's file: their shapes, and that their values are finite."""

import array
import math
import struct
import sys
from pathlib import Path
from typing import Any

from kvspectrum.reader.error import ConfigError
from kvspectrum.reader.groups import groups_of
from kvspectrum.reader.json_text import parse
from kvspectrum.reader.sizes import size_of

_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8}
_F32_MOST = 3.4028234663852886e38
_MOST_BITS = 8
_BOOKS = (_MOST_BITS + 1, 256)  # of the trellis codes: [bits, state]
_SCALES, _LEVELS, _FREQUENCIES = 36, 16, 4096  # of the storage form's tables: classes of deviations, levels, their sum


def _numbers(kind, data):
    """As an array of floats."""
    if kind == "F16":
        return array.array("f", struct.unpack(f"<{len(data) // 2}e", data))
    values = array.array({"F32": "f", "F64": "d", "BF16": "H"}[kind], data.tobytes())
    if sys.byteorder == "big":
        values.byteswap()
    if kind == "BF16":
        return array.array("f", array.array("I", (value << 16 for value in values)).tobytes())
    return values


class Tensors:
    """A safetensors file in memory."""

    def __init__(self, path):
        self.path, data = Path(path), Path(path).read_bytes()
        try:
            length = int.from_bytes(data[:8], "little")
            header: Any = parse(data[8:8 + length]) if 8 + length <= len(data) else None
            self.entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            self.data = memoryview(data)[8 + length:]
            self._check_offsets()
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: found a damaged header ({error}), expected a safetensors file") from error

    def _check_offsets(self):
        end = 0
        for name, entry in sorted(self.entries.items(), key=lambda item: item[1]["data_offsets"]):
            if entry["dtype"] in _BYTES:
                size = math.prod(entry["shape"]) * _BYTES[entry["dtype"]]
                if entry["data_offsets"] != [end, end + size]:
                    raise ValueError(f"tensor {name}: offsets {entry['data_offsets']}")
            end = entry["data_offsets"][1]
        if end != len(self.data):
            raise ValueError(f"tensors of {end} bytes in {len(self.data)}")

    def refuse(self, name, problem):
        raise ConfigError(f"{self.path}: tensor {name}: {problem}")

    def values(self, name, shape):
        """As numbers that can be compared. @raises ConfigError unless the tensor has this shape and finite values"""
        entry: Any = self.entries.get(name)
        found = None if entry is None else entry["shape"]
        if found != list(shape):
            self.refuse(name, f"found {'none' if found is None else found}, expected shape {list(shape)}")
        kind = entry["dtype"]
        if kind not in _BYTES:
            self.refuse(name, f"found element type {kind}, expected one of {', '.join(_BYTES)}")
        begin, end = entry["data_offsets"]
        values = _numbers(kind, self.data[begin:end])
        finite = math.isfinite(sum(values)) and (kind != "F64" or max(map(abs, values), default=0) <= _F32_MOST)
        if not finite:
            self.refuse(name, "found NaN or infinity, expected finite numbers")
        return values


def _check_elitekv(document, tensors):
    model, parameters = document["model"], document["parameters"]
    def of_layer(name, position):
        value = parameters[name]
        return value[position] if isinstance(value, list) else value

    width = None
    for n, layer in enumerate(parameters["layers"]):
        kv_heads, head_dim = size_of(model, "kv_heads", layer), size_of(model, "head_dim", layer)
        queries, rows = size_of(model, "query_heads", layer) * head_dim, kv_heads * head_dim
        keys = rows - 2 * kv_heads * of_layer("r", n)
        pairs = [("", keys + rows, of_layer("d_ckv", n))]
        if parameters["factorization"] == "separate":
            pairs = [("_k", keys, parameters["ranks"][n][0]), ("_v", rows, parameters["ranks"][n][1])]
        for side, count, rank in pairs:
            down = f"layers.{layer}.down{side}"
            if width is None:
                shape = tensors.entries.get(down, {}).get("shape", [])
                width = shape[1] if len(shape) == 2 else 0
            tensors.values(f"layers.{layer}.up{side}", (count, rank))
            tensors.values(down, (rank, width))
        if "queries" in parameters:
            tensors.values(f"layers.{layer}.query", (queries, width))
            if f"layers.{layer}.query_bias" in tensors.entries:
                tensors.values(f"layers.{layer}.query_bias", (queries,))
        if "outputs" in parameters:
            tensors.values(f"layers.{layer}.output", (queries, queries))


def _row_sets(rows, kv_heads, head_dim):
    """Coefficients that are coded as one row: lists of (first, size), each list of rows with as many bits."""
    if rows == "layer":
        return [[(0, 2 * kv_heads * head_dim)]]
    return [[(side * kv_heads * head_dim + head * head_dim, head_dim) for head in range(kv_heads)] for side in (0, 1)]


def _whole(most):
    return lambda value: 0 <= value <= most and value == int(value)


def _check_entropy(tensors, read):
    """The tables of the storage form."""
    frequencies = read("frequencies", (_SCALES, 7, 5, 2, _LEVELS), _whole(_FREQUENCIES), "whole numbers up to 4096")
    for at in range(0, len(frequencies), _LEVELS):
        of_context = frequencies[at:at + _LEVELS]
        if min(of_context) < 1 or sum(of_context) != _FREQUENCIES:
            tensors.refuse("frequencies", f"found those of context {at // _LEVELS} with a 0 or another sum, expected "
                           f"at least 1 each and the sum {_FREQUENCIES}")
    read("expected", (_SCALES,), _whole(1 << 24), "whole numbers up to 16777216")
    read("values", (_SCALES, 2, _LEVELS), lambda value: 0 <= value <= 2 * _LEVELS, "magnitudes of levels in steps")


def _check_transform(document, tensors):
    model, parameters = document["model"], document["parameters"]
    by_head, stored = parameters["rows"] == "head", "form" in parameters

    def read(name, shape, fits=None, expected=""):
        found = tensors.values(name, shape)
        if fits and not all(map(fits, set(found))):
            tensors.refuse(name, f"found another value, expected {expected}")
        return found

    def size_in_file(name, axis):
        shape = tensors.entries.get(name, {}).get("shape", [])
        return shape[axis] if len(shape) > axis else 0

    if stored:
        _check_entropy(tensors, read)
    else:
        read("books", _BOOKS)
    channels = size_in_file(f"layers.{parameters['layers'][0]}.prediction", 1) if "predict" in parameters else 0
    for layers in groups_of(parameters):
        layer, kv_heads = layers[0], size_of(model, "kv_heads", layers[0])
        head_dim, of = size_of(model, "head_dim", layer), f"layers.{layer}."
        values = kept = len(layers) * 2 * kv_heads * head_dim
        if stored or len(layers) > 1:
            kept = size_in_file(of + ("scales" if stored else "bits"), 0) or values
        analysis = (kv_heads, head_dim, head_dim) if by_head else (kept, values)
        read(of + "mean", (values,))
        read(of + "analysis", analysis)
        read(of + "synthesis", analysis if by_head else analysis[::-1])
        if by_head:
            read(of + "deviations", (values // 2,), lambda value: value > 0, "numbers above 0")
        if "predict" in parameters:
            if channels == 0:
                tensors.refuse(of + "prediction", "found no matrix, expected [values, channels]")
            read(of + "prediction", (values, channels))
        if kept > values:
            tensors.refuse(of + ("scales" if stored else "bits"), f"found {kept} coefficients, expected at most {values}")
        if stored:
            read(of + "scales", (kept,), _whole(_SCALES - 1), f"whole numbers up to {_SCALES - 1}")
            continue
        read(of + "weights", (kept,), lambda value: 0 <= value <= 1, "numbers from 0 to 1")
        bits = read(of + "bits", (kept,), _whole(_MOST_BITS), f"bits from 0 to {_MOST_BITS}")
        sets = _row_sets(parameters["rows"], kv_heads, head_dim) if len(layers) == 1 else [[(0, kept)]]
        _check_bits(tensors, of + "bits", bits, sets, parameters["code_bytes"][parameters["layers"].index(layer)])


def _check_bits(tensors, name, bits, row_sets, expected):
    sums = [[int(sum(bits[first:first + size])) for first, size in rows] for rows in row_sets]
    if any(len(set(row)) != 1 for row in sums):
        tensors.refuse(name, "found heads with other numbers of bits, expected as many in every head")
    found = sum(-(-row // 8) for rows in sums for row in rows)
    if found != expected:
        tensors.refuse(name, f"found {found} bytes of a token, expected {expected}, as code_bytes says")


def _check_triattention(document, tensors):
    model, rope = document["model"], document["model"]["rope"]
    for layer in range(model["layers"]):
        if layer in model.get("layers_without_cache", []):
            continue
        heads, head_dim = size_of(model, "query_heads", layer), size_of(model, "head_dim", layer)
        chunks = len(rope["frequencies"][rope["layer_kinds"][layer]]) if rope["frequencies"] else 0
        if 2 * chunks > head_dim or heads % size_of(model, "kv_heads", layer) != 0:
            raise ConfigError(f"{tensors.path}: found layer {layer} of another geometry, expected heads that hold their "
                              "RoPE chunks and KV heads that divide the query heads")
        tensors.values(f"layers.{layer}.query_mean", (heads, head_dim))
        if min(tensors.values(f"layers.{layer}.query_magnitude", (heads, head_dim - chunks))) < 0:
            tensors.refuse(f"layers.{layer}.query_magnitude", "found a number below 0, expected magnitudes")


def _check_oscar(document, tensors):
    model = document["model"]
    for layer in range(model["layers"]):
        if layer in model.get("layers_without_cache", []):
            continue
        head_dim = size_of(model, "head_dim", layer)
        for side in ("key", "value"):
            tensors.values(f"layers.{layer}.{side}_rotation", (size_of(model, "kv_heads", layer), head_dim, head_dim))


def _check_kvtc(_document, tensors):
    raise ConfigError(f"{tensors.path}: found a config of kvtc, expected another method: the package has no KVTC coder")


_METHODS = {"elitekv": _check_elitekv, "kvtc": _check_kvtc, "oscar": _check_oscar, "transform": _check_transform,
            "triattention": _check_triattention}


def check_tensors(document, path):
    """@param path  of the file that the document names"""
    _METHODS[document["method"]](document, Tensors(path))
