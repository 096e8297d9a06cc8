#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ids of tokenizers with random files next to tokenizer.json, compared with AutoTokenizer of Transformers.

Usage: auto_tokenizer_parity.py PATH/TO/tokenize_lines [--cases 300] [--seed 0]

tests/golden/make_auto_tokenizer_golden.py draws the files: classes, types of models, tokens by every key that names
some, flags, ids that contradict each other. A case is right if all ids are equal, or if a note of ours says that they
may differ. Cases that Transformers refuses are counted and left out. Exits with 77 (skipped) without transformers.
Checked with transformers 5.24.0, tokenizers 0.23.3.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
try:
    import make_auto_tokenizer_golden as golden
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def ours(program, folder):
    lines = "".join(json.dumps(text) + "\n" for text in golden.TEXTS)
    result = subprocess.run([program, str(folder / "tokenizer.json")], input=lines, capture_output=True, text=True)
    ids = [json.loads(line) for line in result.stdout.splitlines()]
    return (ids if result.returncode == 0 else None), result.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    equal = noted = refused = wrong = 0
    for seed in range(options.seed, options.seed + options.cases):
        one = golden.random_case(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            golden.write_folder(folder, one)
            try:
                expected = golden.reference(folder)["ids"]
            except Exception:
                refused += 1
                continue
            found, said = ours(options.program, folder)
        if found == expected:
            equal += 1
        elif "may differ" in said:
            noted += 1
        else:
            wrong += 1
            print(f"case {seed}: {json.dumps(one)}\n  {said.strip()}")
            for text, a, b in zip(golden.TEXTS, found or [], expected):
                if a != b:
                    print(f"  {text!r}: ours {a}, Transformers {b}")
    print(f"{equal} of {options.cases} equal, {noted} with a note, {refused} refused by Transformers, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
