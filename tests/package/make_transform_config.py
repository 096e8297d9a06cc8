#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a config of `transform` with rows by head, 4 bits for each value, for the model of lagkv.json.

Usage: make_transform_config.py LAGKV.json FOLDER    writes FOLDER/transform.json and transform.safetensors"""
import hashlib
import json
import pathlib
import struct
import sys

LAYERS, HEADS, DIM, BITS = [0, 29], 3, 64, 4


def tensors():
    """Books of evenly spread entries; bases that leave values as they are."""
    identity = [float(row == column) for _ in range(HEADS) for row in range(DIM) for column in range(DIM)]
    yield "books", [9, 256], [(entry * 37 % 256 - 127.5) / 64 for entry in range(9 * 256)]
    for layer in LAYERS:
        values = 2 * HEADS * DIM
        for name, shape, numbers in (("mean", [values], [0.0] * values), ("analysis", [HEADS, DIM, DIM], identity),
                                     ("synthesis", [HEADS, DIM, DIM], identity),
                                     ("deviations", [values // 2], [0.3] * (values // 2)),
                                     ("bits", [values], [BITS] * values), ("weights", [values], [1.0] * values)):
            yield f"layers.{layer}.{name}", shape, numbers


def safetensors():
    header, data = {}, b""
    for name, shape, numbers in tensors():
        packed = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    folder, data = pathlib.Path(sys.argv[2]), safetensors()
    config = json.loads(pathlib.Path(sys.argv[1]).read_text())
    config["method"] = "transform"
    config["parameters"] = {
        "layers": LAYERS, "rows": "head", "sinks": 4, "recent": 0,
        "code_bytes": [2 * HEADS * DIM * BITS // 8] * len(LAYERS), "thresholds": [0.0] * len(LAYERS), "outliers": 0.0,
    }
    config["calibration"] |= {"budget": {"window": 64, "bytes": 1000000},
                              "costs": {"keys": [1.0] * len(LAYERS), "values": [1.0] * len(LAYERS)}}
    config["files"] = [{"path": "transform.safetensors", "sha256": hashlib.sha256(data).hexdigest()}]
    (folder / "transform.safetensors").write_bytes(data)
    (folder / "transform.json").write_text(json.dumps(config))


main()
