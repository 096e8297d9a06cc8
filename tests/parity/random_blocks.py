#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random blocks of GGUF's types: our decoders compared bit for bit with the package `gguf`.

Usage: random_blocks.py PATH/TO/read_files [--blocks 20000] [--seed 0]

Exits with 1 if a value of a type differs, and with 77 (skipped) without the package. Blocks whose values are not all
finite are left out. Checked with gguf 0.19.0.
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WHOLE = {"F32", "F16", "F64"}  # numpy's own types, which quants.py leaves to it


def decoded(blocks, kind):
    """Returns the values of blocks, [block, value], or None if the package does not decode the type."""
    try:
        with numpy.errstate(all="ignore"):
            return gguf.quants.dequantize(blocks, kind).astype("<f4").reshape(len(blocks), -1)
    except NotImplementedError:
        return None


def write(path, blocks, kind):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("w", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--blocks", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = numpy.random.default_rng(options.seed)
    expected = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, (_, size) in gguf.GGML_QUANT_SIZES.items():
            blocks = rng.integers(0, 256, (options.blocks, size), dtype=numpy.uint8)
            values = None if kind.name in WHOLE else decoded(blocks, kind)
            if values is None:
                continue
            finite = numpy.isfinite(values).all(axis=1)
            path = pathlib.Path(folder) / f"{kind.name}.gguf"
            write(path, blocks[finite], kind)
            expected[path] = f"ok {hashlib.sha256(values[finite].tobytes()).hexdigest()}"
        lines = "".join(f"{path}\n" for path in expected)
        found = subprocess.run([options.program, "--digest"], input=lines, text=True, check=True, capture_output=True)
    differ = [path.stem for (path, line), own in zip(expected.items(), found.stdout.splitlines(), strict=True) if line != own]
    print(f"{len(expected)} types, {options.blocks} blocks each: {'differ: ' + ', '.join(differ) if differ else 'equal'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
