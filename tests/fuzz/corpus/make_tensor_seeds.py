#!/usr/bin/env python3
"""Writes the seeds of the targets safetensors and gguf into the folders beside this script: small files with every
element type and every kind of metadata, and a few that are wrong in one place."""
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
PLAIN = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "U8": 1, "F8_E4M3": 1}


def safetensors(header, data=b"", whole=False):
    """Returns the target's first byte, then a whole file or a header, a NUL byte and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"r" + struct.pack("<Q", len(text)) + text + data if whole else b"h" + text + b"\0" + data


def one(dtype, size, shape=(2, 3)):
    count = shape[0] * shape[1]
    info = {"dtype": dtype, "shape": list(shape), "data_offsets": [0, count * size]}
    return safetensors({"__metadata__": {"format": "pt"}, "w": info}, bytes(range(count * size)))


def safetensors_seeds():
    seeds = {name.lower(): one(name, size) for name, size in PLAIN.items()}
    info = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    two = {"a": info, "b": {**info, "shape": [], "data_offsets": [4, 8]}}
    seeds["two"] = safetensors(two, bytes(8))
    seeds["whole"] = safetensors(two, bytes(8), whole=True)
    seeds["long_header"] = b"r" + struct.pack("<Q", 2**63) + b"{}"
    seeds["pickle"] = b"r\x80\x02}q\x01X\x06weight"
    seeds["empty_tensor"] = safetensors({"a": {"dtype": "F32", "shape": [0, 3], "data_offsets": [0, 0]}})
    seeds["overlap"] = safetensors({"a": info, "b": info}, bytes(4))
    seeds["hole"] = safetensors({"a": info, "b": {**info, "data_offsets": [8, 12]}}, bytes(12))
    seeds["overflow"] = safetensors({"a": {**info, "shape": [2, 2**64 - 2]}}, bytes(4))
    seeds["nothing"] = safetensors(b"  {} ")
    seeds["duplicate"] = safetensors(b'{"a":{},"\\u0061":{}}')
    seeds["index"] = b'i{"metadata":{"total_size":8},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}'
    seeds["index_escape"] = b'i{"weight_map":{"a":"../1.safetensors"}}'
    return seeds


def text(characters):
    return struct.pack("<Q", len(characters)) + characters


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def tensor(name, lengths, kind, offset):
    return text(name) + struct.pack(f"<I{len(lengths)}QIQ", len(lengths), *lengths, kind, offset)


def gguf(keys=(), tensors=(), data=b"", version=3, alignment=32):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


def gguf_seeds():
    scalars = [(0, "B", 1), (1, "b", -1), (2, "H", 1), (3, "h", -1), (4, "I", 1), (5, "i", -1), (6, "f", 0.5),
               (7, "B", 1), (10, "Q", 1), (11, "q", -1), (12, "d", 0.5)]
    values = [(kind, struct.pack("<" + code, value)) for kind, code, value in scalars] + [(8, text(b"llama"))]
    keys = [key(b"k%d" % kind, kind, value) for kind, value in values]
    arrays = [key(b"a%d" % kind, 9, struct.pack("<IQ", kind, 2) + 2 * value) for kind, value in values]
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 28: (1, 8),
              30: (1, 2), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18),
              23: (256, 136), 39: (32, 17), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 21: (256, 110),
              22: (256, 82), 29: (256, 56), 34: (256, 54), 35: (256, 66), 40: (64, 36), 41: (128, 18)}
    seeds = {"scalars": gguf(keys), "arrays": gguf(arrays), "version2": gguf(keys[:1], version=2), "nothing": gguf()}
    for kind, (count, size) in blocks.items():
        data = bytes(n % 251 for n in range(2 * size))
        seeds[f"type{kind}"] = gguf([], [tensor(b"w", (count, 2), kind, 0)], data)
    seeds["two"] = gguf(
        [key(b"general.alignment", 4, struct.pack("<I", 8))],
        [tensor(b"a", (1,), 0, 0), tensor(b"b", (1, 2, 1, 1), 0, 8)], bytes(16), alignment=8)
    seeds["overlap"] = gguf([], [tensor(b"a", (9,), 0, 0), tensor(b"b", (8,), 0, 32)], bytes(64))
    seeds["overflow"] = gguf([], [tensor(b"w", (32, 2**59), 3, 0)], bytes(32))
    seeds["nested"] = gguf([key(b"a", 9, struct.pack("<IQIQ", 9, 1, 9, 1))])
    seeds["split"] = gguf([key(b"split.count", 2, b"\2\0"), key(b"split.no", 2, b"\0\0"),
                           key(b"split.tensors.count", 5, b"\0\0\0\0")])
    return seeds


for folder, seeds in (("safetensors", safetensors_seeds()), ("gguf", gguf_seeds())):
    (HERE / folder).mkdir(exist_ok=True)
    for name, content in seeds.items():
        (HERE / folder / name).write_bytes(content)
