#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of KVTC by a program of its own in NumPy: principal components of two layers together, the groups and types
that a dynamic program finds for budgets of bits, the packed codes of four tokens and what they decode to
(Staniszewski and Łańcucki 2025, sections 3.1 to 3.3; docs/kvtc.md for what the paper leaves open).

Usage: make_kvtc_golden.py OUT.json        (needs numpy)
"""
import functools
import json
import sys
import zlib

import numpy as np

TOKENS, LAYERS, WIDTH, SINKS, BLOCK = 66, 2, 20, 2, 4
VALUES, STEP, SIZES, TYPES = LAYERS * WIDTH, 16, (16, 64, 256, 1024), {"int2": 2, "int4": 4, "fp8": 8}
BUDGETS = (31, 64, 100, 200, 400, 700, 1200)
PACKED = (400, 700)  # bits of keys and of values: all four types


def random_values(seed, count):
    """splitmix64, the top 24 bits, in [-1, 1)"""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1


def states(side):
    """[token, value]: random values of falling size, mixed, around means; sinks are a hundred times as large."""
    mix = random_values(100 + side, VALUES * VALUES).reshape(VALUES, VALUES)
    sources = random_values(200 + side, TOKENS * VALUES).reshape(TOKENS, VALUES) * 0.9 ** np.arange(VALUES)
    x = sources @ mix + 3 * random_values(300 + side, VALUES)
    x[:SINKS] *= 100
    return np.round(x * 4096).astype(np.float32) / np.float32(4096)


def half(x):
    return np.float32(x).astype(np.float16)


def coded(block, kind):
    """[token, component] of a group: shifts, scales, codes and decoded values."""
    low, high = block.min(1, keepdims=True), block.max(1, keepdims=True)
    if kind == "fp8":
        shift, scale = half((low + high) / 2), half(np.maximum((high - low) / 2 / np.float32(448), np.float32(1e-7)))
        steps = (block - np.float32(shift)) / np.maximum(np.float32(scale), np.float32(6e-8))
        codes = np.vectorize(e4m3, otypes=[np.uint8])(steps)
        values = np.vectorize(e4m3_value, otypes=[np.float32])(codes)
    else:
        most = 2 ** TYPES[kind] - 1
        shift, scale = half(low), half((high - low) / np.float32(most))
        steps = (block - np.float32(shift)) / np.maximum(np.float32(scale), np.float32(6e-8))
        codes = np.clip(np.rint(steps), 0, most).astype(np.uint8)
        values = codes.astype(np.float32)
    return shift, scale, codes, values * np.maximum(np.float32(scale), np.float32(6e-8)) + np.float32(shift)


def e4m3_value(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    size = mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (int(exponent) - 7)
    return -size if code & 128 else size


E4M3 = np.array([e4m3_value(code) for code in range(127)])


def e4m3(x):
    """The nearest value; of two, the one with an even code."""
    size = min(abs(float(x)), 448.0)
    error = np.abs(E4M3 - size)
    best = np.flatnonzero(error == error.min())
    return (best[0] if len(best) == 1 else best[best % 2 == 0][0]) | (128 if np.signbit(x) else 0)


def error_of(block, kind):
    found = np.float32(half(block)) if kind == "f16" else coded(block, kind)[3]
    return float(((found.astype(np.float64) - block.astype(np.float64)) ** 2).sum())


def best_groups(samples, budget):
    """The groups of least error under `budget` bits a token, by recursion over the components."""
    steps = samples.shape[1] // STEP

    @functools.cache
    def error(first, size, kind):
        return error_of(samples[:, first * STEP:first * STEP + size], kind)

    @functools.cache
    def best(step, bits):
        """Least error of components before `step`, all of which are coded, and their groups."""
        if step == 0:
            return 0.0, ()
        found = (np.inf, ())
        for size in SIZES:
            for kind, each in TYPES.items():
                first, cost = step - size // STEP, size * each + 32
                if first < 0 or cost > bits:
                    continue
                before, groups = best(first, bits - cost)
                if before + error(first, size, kind) < found[0]:
                    found = before + error(first, size, kind), (*groups, (size, kind))
        if STEP * 34 <= bits:  # sixteen groups of one: 2 bits, a shift and a scale each
            before, groups = best(step - 1, bits - STEP * 34)
            if before + error(step - 1, STEP, "f16") < found[0]:
                found = before + error(step - 1, STEP, "f16"), groups + STEP * ((1, "f16"),)
        return found

    tails = [float((samples[:, step * STEP:].astype(np.float64) ** 2).sum()) for step in range(steps + 1)]
    return min((best(step, budget)[0] + tails[step], step, best(step, budget)[1]) for step in range(steps + 1))


def pack(rows, groups):
    """Codes by group: shifts, scales, then codes by component, from the lowest bit on; and the decoded rows."""
    stream, first, decoded = b"", 0, np.zeros_like(rows)
    for size, kind in groups:
        block = rows[:, first:first + size]
        if kind == "f16":
            stream += half(block).tobytes()
            decoded[:, first:first + size] = np.float32(half(block))
        else:
            shift, scale, codes, values = coded(block, kind)
            stream += shift.tobytes() + scale.tobytes()
            bits = "".join(format(code, f"0{TYPES[kind]}b")[::-1] for code in codes.T.reshape(-1))
            bits += "0" * (-len(bits) % 8)
            stream += bytes(int(bits[n:n + 8][::-1], 2) for n in range(0, len(bits), 8))
            decoded[:, first:first + size] = values
        first += size
    return stream, decoded[:, :first]


def side_values(side):
    x = states(side)[SINKS:].astype(np.float64)
    mean = x.mean(0)
    centred = x - mean
    _, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    basis = vectors.T[::-1]
    basis = basis * np.sign(basis[np.arange(VALUES), np.abs(basis).argmax(1)])[:, None]
    basis = basis.astype(np.float32).astype(np.float16).astype(np.float64)
    basis = np.concatenate([basis, np.zeros((-VALUES % STEP, VALUES))])
    samples = ((x.astype(np.float32) - mean.astype(np.float32)).astype(np.float64) @ basis.T).astype(np.float32)
    plans = []
    for budget in BUDGETS:
        error, _, groups = best_groups(samples, budget)
        plans.append({"bits": budget, "error": error, "groups": groups})
    groups = next(plan["groups"] for plan in plans if plan["bits"] == PACKED[side])
    stream, decoded = pack(samples[:BLOCK], groups)
    rows = decoded.astype(np.float64) @ basis[:decoded.shape[1]] + mean.astype(np.float32)
    return {"plans": plans, "packed_bits": PACKED[side], "components": samples[:BLOCK, :decoded.shape[1]].tolist(),
            "packed": stream.hex(), "decoded": decoded.tolist(), "rows": rows.tolist()}


def main():
    keys, values = side_values(0), side_values(1)
    stream = zlib.compress(bytes.fromhex(keys["packed"] + values["packed"]), 1)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"keys": keys, "values": values, "stream": stream.hex()}, out, indent=1)
        out.write("\n")


main()
