#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged safetensors and GGUF files: our readers compared with those of the packages `safetensors` and `gguf`.

Usage: mutated_files.py PATH/TO/read_files [--files 10000] [--seed 0]

Seeded changes make --files files of each format from a few sound ones. Exits with 1 if the program accepts a file that
the package refuses, and with 77 (skipped) without the packages. Checked with safetensors 0.8.0 and gguf 0.19.0.
"""
import argparse
import collections
import json
import logging
import pathlib
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WORDS = [b'"F32"', b'"F16"', b'"BF16"', b'"I64"', b'"U8"', b'"BOOL"', b'"F8_E4M3"', b'"Q"', b"shape", b"dtype", b"null", b"true",
         b"{}", b"[]", b"-1", b"1e3", b"4.0", b"00", b"18446744073709551615", b" ", b"\n", b",", b":", b"[", b"]", b"{", b"}",
         b"\\u0000", b"\xc3\xa9", b'"__metadata__":', b'"a":']
NUMBERS = [0, 1, 2, 7, 8, 12, 30, 31, 32, 33, 64, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, 1 << 63,
           (1 << 64) - 1]


def sound_safetensors():
    rng = numpy.random.default_rng(0)
    tensors = {name: rng.standard_normal(shape).astype(kind)
               for name, shape, kind in [("a", (2, 3), "f4"), ("b.weight", (4,), "f2"), ("c", (0, 5), "f4"), ("d", (), "f8")]}
    integers = {"i": numpy.arange(6, dtype="i8").reshape(3, 2), "u": numpy.arange(5, dtype="u1"), "z": numpy.array([True, False])}
    return [safetensors.numpy.save(tensors), safetensors.numpy.save(integers, {"format": "pt", "é": "x"}),
            safetensors.numpy.save({"a": numpy.zeros(3, "f4")}), safetensors.numpy.save({})]


def sound_gguf(folder):
    files = []
    for number in range(3):
        path = folder / f"sound{number}.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        if number > 0:
            writer.add_uint32("x.u32", 7)
            writer.add_int64("x.i64", -7)
            writer.add_float64("x.f64", 0.5)
            writer.add_bool("x.bool", True)
            writer.add_string("x.text", "é text")
            writer.add_array("x.numbers", [1, 2, 3])
            writer.add_array("x.texts", ["a", "", "bc"])
        if number == 2:
            writer.add_custom_alignment(64)
        writer.add_tensor("a", numpy.arange(6, dtype="f4").reshape(2, 3))
        writer.add_tensor("b.weight", numpy.arange(4, dtype="f2"))
        writer.add_tensor("q", numpy.zeros((2, 34), "u1"), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        files.append(path.read_bytes())
    return files


def mutated(data, rng, is_text):
    """Returns `data` after one to four changes, most of them near its start, where the header lies."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if len(data) < 16:
            return bytes(data)
        at = rng.randrange(len(data)) if rng.random() < 0.4 else rng.randrange(min(len(data), 300))
        kind = rng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice(b"0123456789\"{}[]:, \n\x00\xff\x7f") if is_text else rng.randrange(256)
        elif kind == 2:
            size = rng.choice([4, 8])
            data[at:at + size] = struct.pack("<Q", rng.choice(NUMBERS))[:size]
        elif kind == 3:
            del data[at:at + rng.choice([1, 1, 2, 4, 8, 40])]
        elif kind == 4:
            data[at:at] = bytes(rng.choice([1, 4, 8, 32]))
        elif kind == 5:
            other = rng.randrange(len(data))
            data[at:at] = data[other:other + rng.choice([1, 8, 30])]
        elif kind == 6:
            data[at:at + rng.choice([0, 1, 3])] = rng.choice(WORDS)
        else:
            del data[rng.randrange(len(data)):]
    if is_text and rng.random() < 0.7 and len(data) > 8:  # the header's length is right again
        end = bytes(data).rfind(b"}") + 1
        data[:8] = struct.pack("<Q", max(0, end - 8 + rng.choice([0, 0, 0, 1])))
    return bytes(data)


def mutated_header(data, rng):
    """Returns the safetensors file `data` with another value somewhere in its header's JSON."""
    size = struct.unpack("<Q", data[:8])[0]
    header, rest = json.loads(data[8:8 + size]), data[8 + size:]
    entries = [entry for entry in header.values() if "dtype" in entry]
    if not entries:
        return mutated(data, rng, True)
    for _ in range(rng.choice([1, 1, 2])):
        entry, change = rng.choice(entries), rng.randrange(9)
        if change == 0:
            entry["dtype"] = rng.choice(["F64", "F32", "F16", "BF16", "I8", "U16", "BOOL", "F8_E5M2", "F4", "C64", "f32", 3, None])
        elif change == 1:
            entry["shape"] = [rng.choice([0, 1, 2, 3, 5, 1 << 40, 1 << 63, -1, 2.0, "2"]) for _ in range(rng.randrange(4))]
        elif change == 2:
            entry["data_offsets"] = [rng.choice([0, 4, 8, 12, 24, 32, 48, 1 << 40, -4, 4.5]) for _ in range(rng.choice([2, 2, 2, 1, 3]))]
        elif change == 3:
            entry[rng.choice(["extra", "dtype ", "shape", "data_offsets"])] = rng.choice([1, [], {}, "x", None])
        elif change == 4:
            entry.pop(rng.choice(list(entry)), None)
            if "dtype" not in entry:
                break
        elif change == 5 and isinstance(entry.get("shape"), list):
            entry["shape"] = rng.choice([entry["shape"][::-1], entry["shape"] + [1], [1] + entry["shape"]])
        elif change == 6:
            entry["dtype"] = {"F32": "U32", "F16": "BF16", "F64": "I64", "U8": "I8", "BOOL": "F8_E4M3"}.get(str(entry["dtype"]), "F32")
        elif change == 7:
            header = dict(rng.sample(list(header.items()), len(header)))
        else:
            rest = rng.choice([rest[:-1], rest + b"\0", rest + rest[:4], rest])
    text = json.dumps(header, indent=rng.choice([None, None, 1])).encode() + rng.choice([b"", b"", b" ", b"      ", b"\n", b"\0", b"x"])
    return struct.pack("<Q", len(text)) + text + rest


def too_long(*_):
    raise TimeoutError("takes long")


def refusal_of_package(path):
    """Returns the package's objection to the file, or nothing."""
    signal.alarm(5)
    try:
        if path.suffix == ".safetensors":
            safetensors.deserialize(path.read_bytes())
        else:
            for tensor in gguf.GGUFReader(path).tensors:
                tensor.data.tobytes()
        return None
    except Exception as error:  # any exception is a refusal
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    # `gguf` believes counts: a file of 612 bytes can make it fill any memory.
    signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    failures = 0
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(
            [options.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        folder = pathlib.Path(name)
        for kind, sound in [("safetensors", sound_safetensors()), ("gguf", sound_gguf(folder))]:
            rng, counts = random.Random(f"{kind} {options.seed}"), collections.Counter()
            path = folder / f"file.{kind}"
            for number in range(options.files):
                data = rng.choice(sound)
                if number >= len(sound):
                    in_header = kind == "safetensors" and rng.random() < 0.5
                    data = mutated_header(data, rng) if in_header else mutated(data, rng, kind == "safetensors")
                else:
                    data = sound[number]
                path.write_bytes(data)
                program.stdin.write(f"{path}\n")
                program.stdin.flush()
                ours, theirs = program.stdout.readline().strip(), refusal_of_package(path)
                if ours == "":
                    sys.exit(f"{options.program} died of {kind} file {number} of seed {options.seed}")
                if number < len(sound) and (ours != "ok" or theirs):
                    sys.exit(f"the sound {kind} file {number}: {ours}; {theirs}")
                counts["taken" if ours == "ok" else "refused", "refused" if theirs else "taken"] += 1
                if ours == "ok" and theirs:
                    failures += 1
                    print(f"{kind} file {number}: taken, but by the package: {theirs}")
            for (here, there), count in sorted(counts.items()):
                print(f"{kind}: {count} {here} here, {there} by the package")
        program.stdin.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
