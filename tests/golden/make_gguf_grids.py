#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the grids of GGUF's types IQ1, IQ2 and IQ3 as a C++ header, from the Python package gguf (version 0.19.0).

Usage: make_gguf_grids.py > src/io/gguf_blocks/grids.h
"""
import gguf.quants as quants

WIDTH = 112
GRIDS = {"Iq1": quants.IQ1_S, "Iq2Xxs": quants.IQ2_XXS, "Iq2Xs": quants.IQ2_XS, "Iq2S": quants.IQ2_S,
         "Iq3Xxs": quants.IQ3_XXS, "Iq3S": quants.IQ3_S}

print("""// SPDX-License-Identifier: MIT
#pragma once

// Written by tests/golden/make_gguf_grids.py from the Python package gguf 0.19.0, which is under the MIT License,
// Copyright (c) 2023 Georgi Gerganov (docs/licences.md).

#include <string_view>

/// Grids in the package's form: bytes as two hexadecimal digits. Each byte holds the indices of 4 values of 2 bits, or
/// of 2 values of 4 bits, in order from the lowest bit.
namespace kvs::blocks::packed {
""")
for name, kind in GRIDS.items():
    digits = kind.grid_hex.decode()
    lines = [digits[at:at + WIDTH] for at in range(0, len(digits), WIDTH)]
    rows, columns = kind.grid_shape
    print(f"/// {rows} rows of {columns} values.")
    print(f"inline constexpr std::string_view k{name} =")
    print("\n".join(f'    "{line}"' for line in lines) + ";\n")
print("}  // namespace kvs::blocks::packed")
