# SPDX-License-Identifier: Apache-2.0
"""Checks the tensors of a config's file: their shapes, and that their values are finite."""

import array
import math
import struct
import sys
from pathlib import Path
from typing import Any

from kvspectrum.reader.error import ConfigError
from kvspectrum.reader.json_text import parse
from kvspectrum.reader.sizes import size_of

_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8}
_F32_MOST = 3.4028234663852886e38
_MOST_BITS = 8
_BOOKS = (_MOST_BITS + 1, 256)  # of the trellis codes: [bits, state]


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


def _check_transform(document, tensors):
    model, parameters = document["model"], document["parameters"]
    if "groups" in parameters:
        raise ConfigError(f"{tensors.path}: found layers that share a row (--layers-per-group), expected a row for "
                          "each layer")
    if "predict" in parameters:
        raise ConfigError(f"{tensors.path}: found rows that are predicted from embeddings (--predict), expected rows "
                          "without a prediction")
    if "form" in parameters:
        raise ConfigError(f"{tensors.path}: found the storage form (--form storage), expected random access")
    by_head = parameters["rows"] == "head"
    tensors.values("books", _BOOKS)
    for n, layer in enumerate(parameters["layers"]):
        kv_heads, head_dim = size_of(model, "kv_heads", layer), size_of(model, "head_dim", layer)
        values = 2 * kv_heads * head_dim
        product = (kv_heads, head_dim, head_dim) if by_head else (values, values)

        def read(what, shape, fits=lambda value: True, expected="", layer=layer):
            name = f"layers.{layer}.{what}"
            found = tensors.values(name, shape)
            if not all(map(fits, set(found))):
                tensors.refuse(name, f"found another value, expected {expected}")
            return found

        read("mean", (values,))
        read("analysis", product)
        read("synthesis", product)
        if by_head:
            read("deviations", (values // 2,), lambda value: value > 0, "numbers above 0")
        read("weights", (values,), lambda value: 0 <= value <= 1, "numbers from 0 to 1")
        bits = read("bits", (values,), lambda value: 0 <= value <= _MOST_BITS and value == int(value),
                    f"bits from 0 to {_MOST_BITS}")
        _check_bits(tensors, f"layers.{layer}.bits", bits, _row_sets(parameters["rows"], kv_heads, head_dim),
                    parameters["code_bytes"][n])


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


_METHODS = {"elitekv": _check_elitekv, "transform": _check_transform, "triattention": _check_triattention}


def check_tensors(document, path):
    """@param path  of the file that the document names"""
    _METHODS[document["method"]](document, Tensors(path))
