# SPDX-License-Identifier: Apache-2.0
"""The storage types of export/python against the vectors of tests/golden."""

import json

import torch

from exports import ROOT, check

from kvspectrum.config import ConfigError, Parameters
from kvspectrum.stores import TYPES, Stores
from kvspectrum.stores.basis import Basis
from kvspectrum.stores.rows import CodedRows
from kvspectrum.stores.steps import Stepped

GOLDEN, FLOATS = (json.loads((ROOT / "tests" / "golden" / name).read_text())
                  for name in ("cache_rows.json", "float_rows.json"))


def heads(values, adjacent=0, **settings):
    """[keys, values] of heads of so many channels."""
    parameters = Parameters({name: [value] for name, value in settings.items()}, "test", 0)
    return Stores(parameters, 0).of_heads(values, adjacent)


def decoded(rows, x):
    x = torch.tensor(x)[None, None]
    return rows.decode(rows.encode(x), x)[0, 0]


def bytes_of(rows, x):
    return bytes(rows.encode(torch.tensor(x)[None, None])[0, 0].flatten().tolist()).hex()


def check_values(name, rows, x, most=1.5e-6):
    expected = torch.tensor(GOLDEN[name] if isinstance(GOLDEN[name], list) else GOLDEN[name]["values"])
    check(name, (decoded(rows, [x])[0] - expected).abs().max().item(), most)


def check_vectors():
    x, x64 = GOLDEN["x"], GOLDEN["x64"]
    for kind in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"):
        keys, values = heads(32, type=kind)
        assert bytes_of(keys, [x]) == GOLDEN[kind]["block"], kind
        check_values(kind, values, x)
    for bits in (2, 4):
        check_values(f"kivi bits {bits}", CodedRows(Stepped(bits, values=32), 32, Basis()), x)
    check_values("fp8 scale 1", heads(32, type="fp8")[0], x)
    check_values("fp8 scale amax/448", heads(32, type="fp8", scale_k=4.37 / 448)[0], x)
    check_values("int8_per_token_head (d 32)", heads(32, type="int8_per_token_head")[1], x)
    for name, adjacent, settings in (("q4_0+rot", 0, {}), ("q4_0+rot", 64, {"layout": "hf"}),
                                     ("q4_0+norm", 64, {"rotate": "off"}), ("q4_0+rot+norm", 64, {}),
                                     ("quarot4", 64, {}), ("int4_per_token_head", 64, {}),
                                     ("turboquant_4bit_nc", 64, {})):
        for side, rows in zip("KV", heads(64, adjacent, **{"type": name.split("+")[0], **settings})):
            check_values(f"{name} {side} of x64", rows, x64)


def check_floats():
    edges = FLOATS["e5m2 edges"]
    assert bytes_of(heads(len(edges), type="fp8_e5m2")[0], [edges]) == bytes(FLOATS["e5m2 of edges"]).hex()
    assert decoded(heads(64, type="fp8_e5m2", scale_k=0.25)[0], FLOATS["x"]).tolist() == FLOATS["e5m2 values"]
    rows = heads(64, type="nvfp4", scale_v=FLOATS["nvfp4 g"])[1]
    assert bytes_of(rows, FLOATS["x"]) == "".join(FLOATS["nvfp4 bytes"])
    expected = torch.tensor(FLOATS["nvfp4 values"])
    assert torch.allclose(decoded(rows, FLOATS["x"]), expected, rtol=2e-7, atol=0)


def check_zeros_and_ties():
    zeros = [[0.0] * 32]
    for kind in TYPES:
        for rows in heads(32, type=kind):
            assert decoded(rows, zeros).tolist() == zeros, kind
    ties = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 7.5, -8] + [0.0] * 24
    assert decoded(heads(32, type="q4_0")[0], [ties])[0, :8].tolist() == [1, 2, 3, 0, -1, -2, 7, -8]
    ties[6] = 127.0
    assert decoded(heads(32, type="q8_0")[0], [ties])[0, :8].tolist() == [1, 2, 3, -1, -2, -3, 127, -8]


def check_refusals():
    for kind, word in (("q8_0", "multiple of 32"), ("quarot4", "power of two")):
        try:
            heads(48, type=kind)
        except ConfigError as error:
            assert word in str(error), error
        else:
            raise AssertionError(f"{kind} of 48 channels was not refused")


check_vectors()
check_floats()
check_zeros_and_ties()
check_refusals()
