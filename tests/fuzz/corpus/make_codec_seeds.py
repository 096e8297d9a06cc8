#!/usr/bin/env python3
"""Writes corpus/codec: streams of the configs of codec_fuzz.cpp, after a byte that selects one of them."""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "codec"
SINK, OUTLIER = 16 * 4, 16 * 2
TOKEN = {0: 2 + 6, 1: 2 * 2 * (2 + 2)}  # 16 coefficients of 3 bits; rows of 4 coefficients


def stream(rows, tokens, first, positions=()):
    """A stream whose codes are a pattern: any bytes are codes."""
    sinks = min(tokens, 2 - min(2, first))
    head = b"KVSC" + struct.pack("<HH16sIIQII", 1, rows, b"\x11" * 16, 1, tokens, first, sinks, len(positions))
    codes = bytes(0x30 + n * 7 % 64 for n in range((tokens - sinks) * TOKEN[rows]))
    return (bytes([rows]) + head + struct.pack("<16f", *range(16)) * sinks + codes +
            struct.pack(f"<{len(positions)}I", *positions) + b"\x3c" * (OUTLIER * len(positions)))


def group_stream(select, rows, tokens, first, rest):
    """A stream of layers 1 and 2."""
    sinks = min(tokens, 2 - min(2, first))
    head = b"KVSC" + struct.pack("<HH16sIIQII", 1, rows, b"\x11" * 16, 1, tokens, first, sinks, 0)
    return bytes([select]) + head + struct.pack("<32f", *range(32)) * sinks + rest


def blocks(*words):
    """Blocks of levels. The words 1, 0 are a state of 2^16, which decodes to levels of high probability."""
    return b"".join(struct.pack(f"<I{len(block)}H", len(block), *block) for block in words)


FOLDER.mkdir(exist_ok=True)
SEEDS = {
    "layer": stream(0, 5, 0, (3, 4)),
    "layer_later": stream(0, 3, 100, (0,)),
    "layer_sinks": stream(0, 2, 0),
    "head": stream(1, 5, 0),
    "head_later": stream(1, 3, 7),
    "order": stream(0, 5, 0, (4, 3)),
    "cut": stream(0, 5, 0)[:-1],
    "group": group_stream(3, 0, 4, 0, bytes(2 * (2 + 8))),
    "blocks": group_stream(2, 2, 9, 0, blocks((1, 0), (1, 0, 7), (9, 9, 9, 9))),
    "blocks_later": group_stream(2, 2, 3, 5, blocks((4095, 4095, 1), (1, 0))),
    "blocks_sinks": group_stream(2, 2, 2, 0, b""),
    "blocks_long": group_stream(2, 2, 3, 2, struct.pack("<I", 0xffffffff) + bytes(8)),
}
for name, data in SEEDS.items():
    (FOLDER / name).write_bytes(data)
