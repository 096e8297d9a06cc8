#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Characters of Unicode 15 to 17 that tokenisers class or normalise differently from older PCRE2 and utf8proc tables.

Usage: make_new_characters.py V14 V15 V16 V17 > src/tokenizer/new_characters_table.h

The arguments are folders with the Python package unicodedata2 of these Unicode versions (pip install --target FOLDER
unicodedata2==15.1.0, 16.0.0, 17.0.0; V14 may be "-" for Python's own tables, where they are version 14). The package
tokenizers (0.23.3) tells which characters its normalisers leave unchanged.
"""
import importlib
import sys
import unicodedata

from tokenizers import normalizers

CODES = [code for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
CLASSES = "LMNPS"  # first letters of the categories that patterns ask for; M, P and S are asked for as a whole


def load(folder):
    if folder == "-":
        assert unicodedata.unidata_version.startswith("14.")
        return unicodedata
    sys.path.insert(0, folder)
    sys.modules.pop("unicodedata2", None)
    module = importlib.import_module("unicodedata2")
    sys.path.pop(0)
    return module


def categories(module):
    found = {code: module.category(chr(code)) for code in CODES}
    return {code: category[0] if category[0] in "MPS" else category for code, category in found.items()}


def length(code):
    return len(chr(code).encode())


def new_ranges(tables, old, own):
    """(first, last, stand-in, version): of one category, one version and one length in UTF-8 bytes."""
    stand_ins, ranges = {}, []
    for code in CODES:
        if old[code][0] in CLASSES and not own.decomposition(chr(code)):
            stand_ins.setdefault((old[code], length(code)), code)
    for code in CODES:
        if old[code][0] in CLASSES:
            continue
        for version, table in tables.items():
            category = table[code]
            if category[0] not in CLASSES or version == 17 and category[0] != "N":
                continue
            stand_in = stand_ins[category, length(code)]
            if ranges and ranges[-1][1:] == [code - 1, stand_in, version]:
                ranges[-1][1] = code
            else:
                ranges.append([code, code, stand_in, version])
            break
    return ranges


def merged(codes):
    ranges = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def inert(newest):
    """Returns the characters that Unicode reorders, decomposes or composes and that `tokenizers`, of Unicode 9,
    leaves."""
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    found = set()
    for code in CODES:
        character, combining = chr(code), newest.combining(chr(code))
        decomposition = newest.decomposition(character)
        if 0xAC00 <= code < 0xD7A4:
            continue
        if decomposition and nfkd.normalize_str(character) == character:
            found.add(code)
            if not decomposition.startswith("<"):
                found.update(int(part, 16) for part in decomposition.split()
                             if newest.category(chr(int(part, 16))) != unicodedata.ucd_3_2_0.category(chr(int(part, 16))))
        before = "a\u0345" if combining < 240 else None  # U+0345 has class 240, the highest
        if combining and before and nfd.normalize_str(before + character) == before + character:
            found.add(code)
    return merged(found)


def write(name, rows, width):
    print(f"inline constexpr std::array<{name[0]}, {len(rows)}> {name[1]}{{{{")
    line = "   "
    for row in rows:
        cell = " {" + ", ".join(row) + "},"
        if len(line) + len(cell) > width:
            print(line)
            line = "   "
        line += cell
    print(line)
    print("}};\n")


def main():
    own, *modules = [load(folder) for folder in sys.argv[1:]]
    old = categories(own)
    tables = {number: categories(module) for number, module in zip((15, 16, 17), modules)}
    print("// SPDX-License-Identifier: Unicode-3.0\n#pragma once\n\n// Written by tests/golden/make_new_characters.py from Unicode " +
          ", ".join(module.unidata_version for module in (own, *modules)) + ".\n")
    print('#include <array>\n\n#include "io/tokenizer/new_characters.h"\n\nnamespace kvs {\n')
    ranges = new_ranges(tables, old, own)
    write(("NewCharacters", "kNewCharacters"),
          [[*(f"0x{code:X}" for code in row[:3]), str(row[3])] for row in ranges], 120)
    print("/// What Unicode reorders, takes apart or composes, and Unicode 9 does not.")
    write(("CharacterRange", "kInertCharacters"), [[f"0x{code:X}" for code in row] for row in inert(modules[-1])], 120)
    print("}  // namespace kvs")


if __name__ == "__main__":
    main()
