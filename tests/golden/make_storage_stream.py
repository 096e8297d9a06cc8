#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Codes the block of levels of StorageLevels.FromIntegersAloneDecodeToTheSameEverywhere (transform_storage_test.cpp).

Written from docs/transform.md, Storage form; prints the words.
"""

ROWS = [[4, -2, 4, -3], [0, 0, 0, 0], [-2, 6, 69, -2]]
FREQUENCIES = [4096 - 15 * 100] + 15 * [100]


def next_state(state, level):
    """Eight states, parity checks 13 and 4 in octal; the last bit is the quantiser."""
    first, second, third = state & 1, state >> 1 & 1, state >> 2 & 1
    parity = level & 1
    return (second ^ first) | (third ^ parity) << 1 | first << 2


def bits_of_escape(excess):
    digits = bin(excess + 1)[2:]
    return [1] * (len(digits) - 1) + [0] + [int(digit) for digit in digits[1:]]


def intervals():
    """Every probability of this model depends on the level alone, so contexts do not matter."""
    for row in ROWS:
        state = 0
        for value in row:
            level = (abs(value) + 1) // 2
            assert value == 0 or abs(value) % 2 == state % 2, "not on a path of the trellis"
            held = min(level, 15)
            yield sum(FREQUENCIES[:held]), FREQUENCIES[held]
            bits = [] if level == 0 else [int(value < 0)]
            if held == 15:
                bits += bits_of_escape(level - 15)
            for bit in bits:
                yield 2048 * bit, 2048
            state = next_state(state, level)


def main():
    state, words = 1 << 16, []
    for start, size in reversed(list(intervals())):
        if state >= size << 20:
            words.append(state & 0xFFFF)
            state >>= 16
        state = (state // size << 12) + state % size + start
    words += [state & 0xFFFF, state >> 16]
    print(*reversed(words), sep=", ")


if __name__ == "__main__":
    main()
