#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file names its licence in its first lines, as an SPDX identifier.

Usage: spdx.py [--fix] [FILE...]   --fix adds the missing lines; without FILE: all sources of the tree
"""
import pathlib
import re
import sys

from markdown import ROOT, tracked

LICENCE = "Apache-2.0"
OTHERS = {"src/io/gguf_blocks/grids.h": "MIT", "src/tokenizer/new_characters_table.h": "Unicode-3.0"}  # NOTICE
SLASHES = {".h", ".cpp", ".c", ".cu", ".cuh"}
HASHES = {".py", ".sh", ".cmake"}
SKIPPED = ("third_party/", "tests/fuzz/corpus/")


def comment_of(path):
    """Returns what begins a comment in a source file; None for other files."""
    if path.suffix in SLASHES:
        return "//"
    return "#" if path.suffix in HASHES or path.name == "CMakeLists.txt" else None


def sources():
    for path in tracked():
        if not str(path.relative_to(ROOT)).startswith(SKIPPED) and comment_of(path):
            yield path


def wanted(path):
    return f"{comment_of(path)} SPDX-License-Identifier: {OTHERS.get(str(path.relative_to(ROOT)), LICENCE)}"


def has_line(path):
    return wanted(path) in path.read_text(encoding="utf-8").split("\n", 2)[:2]


def add_line(path):
    text = path.read_text(encoding="utf-8")
    first = re.match(r"#!.*\n", text)
    end = first.end() if first else 0
    path.write_text(f"{text[:end]}{wanted(path)}\n{text[end:]}", encoding="utf-8")


def main():
    words = sys.argv[1:]
    fixes = words[:1] == ["--fix"]
    named = {pathlib.Path(word).resolve() for word in words[fixes:]}
    missing = [path for path in sources() if (not named or path in named) and not has_line(path)]
    for path in missing:
        if fixes:
            add_line(path)
        else:
            print(f"{path.relative_to(ROOT)}: found no line '{wanted(path)}'; scripts/lint/spdx.py --fix adds it")
    return 0 if fixes or not missing else 1


if __name__ == "__main__":
    sys.exit(main())
