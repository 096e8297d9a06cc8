#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MB/s of the `tokenizers` package and of our tokenizer on the same text, one thread each, in turns in one run.

Usage: tokenizers_bench.py build/cpu/bin/tokenizer_bench MODEL.gguf TEXT [--rounds 3]

The tokenizer.json that `tokenizers` reads is SmolLM2's pipeline over the GGUF's vocabulary. The ids of both must be equal.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import make_tokenizer_golden as golden  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    for name in ["program", "model", "text"]:
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    text = pathlib.Path(options.text).read_bytes().decode()
    tokenizer = Tokenizer.from_str(json.dumps(golden.smollm2_document(options.model)))
    best, size = float("inf"), len(text.encode())
    with tempfile.TemporaryDirectory() as folder:
        ours = pathlib.Path(folder) / "ids.json"
        for _ in range(options.rounds):
            start = time.perf_counter()
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            best = min(best, time.perf_counter() - start)
            subprocess.run([options.program, options.model, options.text, "2", "--ids", str(ours)], check=True)
        assert json.loads(ours.read_text()) == ids, "the ids differ"
    print(f"tokenizers: {size} bytes, {len(ids)} tokens, {size / best / 1e6:.2f} MB/s")


if __name__ == "__main__":
    main()
