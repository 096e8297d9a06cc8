# SPDX-License-Identifier: Apache-2.0
"""The storage types of docs/stores.md: how a layer holds the rows of its keys and values."""

from dataclasses import dataclass

import torch

from kvspectrum.reader import ConfigError
from kvspectrum.stores.basis import Basis
from kvspectrum.stores.floats import E4M3, E5M2, NvFp4
from kvspectrum.stores.llama_cpp import AffineBlock, ListBlock, Q8Block, SymmetricBlock
from kvspectrum.stores.rows import CodedRows, NumberRows, PlainRows
from kvspectrum.stores.steps import Stepped, TurboValue
from kvspectrum.stores.vllm import E4m3Row, Int4Row, Int8Row, TurboKey

# Families whose keys ggml stores with the channels of a RoPE chunk next to each other.
ADJACENT = ("llama", "mistral", "ministral3", "mixtral", "ernie4_5", "ernie4_5_moe", "granitemoehybrid", "internlm3",
            "llama4")


@dataclass
class Type:
    """An engine's type. `turn`: which rotation comes first: engine (llama.cpp's), head, signs or none."""

    keys: object
    values: object
    block: int = 1  # head_dim is a multiple of it
    turn: str = "none"
    turn_values: str | None = None  # None: as keys
    ggml: bool = False


def _ggml(codec):
    return Type(codec, codec, 32, "engine", ggml=True)


def _both(codec, block=1, turn="none"):
    return Type(codec, codec, block, turn)


TYPES = {
    "none": None, "f16": torch.float16, "bf16": torch.bfloat16,
    "q8_0": _ggml(Q8Block()), "q5_1": _ggml(AffineBlock(5)), "q5_0": _ggml(SymmetricBlock(5)),
    "q4_1": _ggml(AffineBlock(4)), "q4_0": _ggml(SymmetricBlock(4)), "iq4_nl": _ggml(ListBlock()),
    "fp8": _both(E4M3), "fp8_e5m2": _both(E5M2), "nvfp4": _both(NvFp4(), 16),
    "int8_per_token_head": _both(Int8Row()), "fp8_per_token_head": _both(E4m3Row()),
    "int4_per_token_head": _both(Int4Row(), 2, "signs"),
    "turboquant_k8v4": Type(E4M3, TurboValue(4), 16),
    "turboquant_4bit_nc": Type(TurboKey(4), TurboValue(4), 16, "head", "none"),
    "turboquant_k3v4_nc": Type(TurboKey(3), TurboValue(4), 16, "head", "none"),
    "turboquant_3bit_nc": Type(TurboKey(3), TurboValue(3), 16, "head", "none"),
    "quarot4": _both(Stepped(4, 1e-5), 2, "head"),
}


def _run(name, turn, head_dim, engine_turns, keys):
    """The number of values that are turned together; 0: none."""
    power = head_dim & -head_dim
    if turn == "engine":
        return (power if keys else 64) if engine_turns and head_dim % 64 == 0 else 0
    if turn == "head" and power != head_dim:
        raise ConfigError(f"{name}: found a head_dim of {head_dim}, expected a power of two")
    return {"none": 0, "head": head_dim, "signs": min(power, 256)}[turn]


def q8_or_f16(head_dim):
    """The type in which the transform coder holds waiting tokens and outliers."""
    return NumberRows(torch.float16) if head_dim % 32 else CodedRows(Q8Block(), head_dim, Basis())


class Stores:
    """The types that a layer's parameters name. There are none in configs that name none."""

    def __init__(self, parameters, layer):
        def word(name, *words):
            return parameters.word(name, *words) if name in parameters else words[0]

        both = word("type", *TYPES)
        self.names = [both if name == "type" else name
                      for name in (word(side, "type", *TYPES) for side in ("type_k", "type_v"))]
        self.turns = word("rotate", "on", "off") == "on"
        self.engine_order = word("layout", "engine", "hf") == "engine"
        self.scales = [parameters.numbers(name) if name in parameters else [1.0] for name in ("scale_k", "scale_v")]
        if "type_skip_layers" in parameters and layer in parameters.indices("type_skip_layers"):
            self.names = ["f16", "f16"]

    @property
    def plain(self):
        return self.names == ["none", "none"]

    def of_heads(self, head_dim, adjacent):
        """The rows of keys and of values of heads.
        @param adjacent  RoPE's channels where ggml stores those of a chunk next to each other, else 0
        @raises ConfigError for a head_dim that does not divide into a type's blocks"""
        return tuple(self._rows(side, head_dim, adjacent if self.engine_order else 0) for side in (0, 1))

    def _rows(self, side, head_dim, adjacent):
        name = self.names[side]
        kind = TYPES[name]
        if not isinstance(kind, Type):
            return PlainRows() if kind is None else NumberRows(kind)
        if head_dim % kind.block:
            raise ConfigError(f"{name}: found a head_dim of {head_dim}, expected a multiple of {kind.block}")
        turn = kind.turn if side == 0 or kind.turn_values is None else kind.turn_values
        basis = Basis(_run(name, turn, head_dim, self.turns, side == 0), turn == "signs",
                      adjacent if side == 0 and kind.ggml else 0)
        return self._coded(kind, side, head_dim, basis)

    def _coded(self, kind, side, values, basis, split=0):
        codec = kind.values if side else kind.keys
        scaled = codec in (E4M3, E5M2) or isinstance(codec, NvFp4)
        return CodedRows(codec, values, basis, self.scales[side] if scaled else None, split)

    def of_rows(self, split, values):
        """The rows of elitekv: `split` values of elite chunks, and the latent.
        @raises ConfigError for a type that turns whole heads, and for two types: a row is key and value at once"""
        name, other = self.names
        if name != other or self.scales[0] != self.scales[1]:
            raise ConfigError(f"type_v: found {other}, expected {name}: a row is key and value at once")
        kind = TYPES[name]
        if not isinstance(kind, Type):
            return PlainRows() if kind is None else NumberRows(kind)
        if {kind.turn, kind.turn_values} & {"head", "signs"}:
            raise ConfigError(f"type: found {name}, which rotates whole heads, expected another: rows are not heads")
        return self._coded(kind, 0, values, Basis(64 if kind.ggml and self.turns else 0), split)
