# SPDX-License-Identifier: Apache-2.0
"""JSON as strictly as the programs read it."""

import json
import math

MOST_BYTES, MOST_DEPTH = 64 << 20, 64


def _members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("found a key twice")
    return members


def _real(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"found {text[:80]}, expected a number that float64 holds")
    return value


def _integer(text):
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else _real(text)


def _constant(name):
    raise ValueError(f"found {name}, expected a number")


def _check_depth(value):
    level, depth = [value], 0
    while level:
        level = [below for one in level if isinstance(one, (list, dict))
                 for below in (one.values() if isinstance(one, dict) else one)]
        depth += 1
        if depth > MOST_DEPTH + 1:
            raise ValueError(f"found more than {MOST_DEPTH} levels")


def parse(data):
    """@param data  bytes;  @raises ValueError, RecursionError"""
    if len(data) > MOST_BYTES:
        raise ValueError(f"found {len(data)} bytes, expected at most {MOST_BYTES}")
    document = json.loads(data.decode("utf-8"), object_pairs_hook=_members, parse_float=_real, parse_int=_integer,
                          parse_constant=_constant)
    json.dumps(document, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair
    _check_depth(document)
    return document
