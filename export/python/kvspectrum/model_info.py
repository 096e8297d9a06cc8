# SPDX-License-Identifier: Apache-2.0
"""The result of `kvspectrum info`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kvspectrum.results import Result, Sizes


@dataclass(frozen=True)
class Geometry:
    """`query_heads`, `kv_heads` and `head_dim`: one for all layers, or a list with one for each."""

    layers: int
    d_model: int
    query_heads: Sizes
    kv_heads: Sizes
    head_dim: Sizes  # channels
    vocabulary: int
    context: int  # tokens
    d_ff: Sizes = 0
    tied_head: bool = False
    layers_without_cache: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class CacheBytes:
    """The full cache. Dicts are by type: f32, f16, bf16."""

    reals_per_token: int
    bytes_per_token: dict[str, int]
    bytes_per_1024_tokens: dict[str, int]
    bytes_at_context_f16: int
    windowed_layers: int = 0


@dataclass(frozen=True)
class MethodRow:
    """Whether a method applies to the model, and why not."""

    method: str
    title: str
    what: str
    applies: bool
    reason: str | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class EngineRow:
    """The storage types (KIND, or KIND/KIND of keys and values) that an engine executes for the model."""

    engine: str
    version: str
    what: str
    types: list[str]
    methods: bool  # executes other methods
    reason: str | None = None  # why it does not run the model


@dataclass(frozen=True, kw_only=True)
class ModelInfo(Result):
    """A model as its files describe it: `info(model)`. No weights are read."""

    name: str
    architecture: str
    format: str  # "gguf" or "safetensors"
    parameters: int
    geometry: Geometry
    kv_cache: CacheBytes
    methods: list[MethodRow]
    engines: list[EngineRow]
    rope: list[dict[str, Any]] = field(default_factory=list)
    tokenizer: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)  # bytes that each command takes
    notes: list[str] = field(default_factory=list)
