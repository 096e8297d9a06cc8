# SPDX-License-Identifier: Apache-2.0
"""A serde of LMCache that stores chunks of a KV cache as codes of a transform config (docs/engines.md):
register(), or `python -m kvspectrum.lmcache server …` instead of `lmcache server …`."""

import struct
from pathlib import Path
from typing import Any

import torch
from lmcache.v1.distributed.serde import AsyncSerdeProcessor, Deserializer, Serializer, register_serde_factory
from safetensors import safe_open

from kvspectrum.codec import Codec, CodecError, ConfigError

NAME = "kvspectrum"
_OPTIONS = {"config", "threads", "max_workers"}
_LENGTH = struct.Struct("<I")  # of a stream, before it
_POSITIONS = 1 << 20  # that a chunk's first token may have
_LEAST_AGREEMENT = 0.9  # with the config's keys: SmolLM2's own have 0.99, its layers in another order 0.69


def _pairs(x: torch.Tensor, count: int) -> torch.Tensor:
    """The channels (c, c + count) of a head that RoPE turns together, as complex numbers."""
    return torch.complex(x[..., :count].double(), x[..., count:2 * count].double())


class ChunkCoder(Serializer, Deserializer):
    """Codes a chunk [2, layer, token, kv_head · head_dim] with keys after RoPE. The bytes are the streams of all groups
    of layers, each after its length, and zeros up to estimate_serialized_size(): LMCache reads as many bytes as that.
    Any number of threads may use it at the same time.
    @param threads  of one call of the codec; 0: all
    @raises ConfigError for a config that cannot code chunks, CodecError, OSError without a library"""

    def __init__(self, config: str, threads: int = 0) -> None:
        self.codec = Codec(config, threads=threads)
        model = self.codec.config["model"]
        self.groups, self.layers = [], 0
        while self.layers < model["layers"]:
            group = self.codec.group(self.layers)
            self.groups.append(group)
            self.layers += group.count
        first = self.groups[0]
        for name, found, expected in (
                ("form", first.form == 1, "random access, as streams of the storage form have no size in advance"),
                ("predict", first.channels > 0, "no prediction, as LMCache gives no embeddings")):
            if found:
                value = self.codec.config["parameters"][name]
                raise ConfigError(f"{config}: /parameters/{name}: found {value}, expected {expected}")
        self.kv_heads, self.head_dim = first.kv_heads, first.head_dim
        if any((group.kv_heads, group.head_dim) != (self.kv_heads, self.head_dim) for group in self.groups):
            raise ConfigError(f"{config}: /model/kv_heads: found layers of several sizes, expected {self.kv_heads} "
                              f"heads of {self.head_dim} channels in every layer")
        rope = model["rope"]
        self.kinds = rope["layer_kinds"]
        self.frequencies = [torch.tensor(kind, dtype=torch.float64) for kind in rope["frequencies"]]
        self.means = self._read_means(Path(config).parent / self.codec.config["files"][0]["path"])

    def _read_means(self, path: Path) -> list[torch.Tensor]:
        """[layer]: the mean of keys before RoPE, as pairs [kv_head, frequency]."""
        with safe_open(path, "pt") as file:
            rows = [file.get_tensor(f"layers.{group.layers[0]}.mean") for group in self.groups]
        keys = torch.cat([row.view(-1, 2, self.kv_heads, self.head_dim)[:, 0] for row in rows])
        return [_pairs(of_layer, len(self.frequencies[kind])) for of_layer, kind in zip(keys, self.kinds)]

    def first_position(self, keys: torch.Tensor) -> int:
        """The position of a chunk's first token, a multiple of the chunk's length. LMCache does not state the position;
        its own keys are hashes. The mean of keys before RoPE is large, and the config has it. The position is the one
        at which the mean of the chunk's keys agrees best with the config's.
        @param keys  [layer, kv_head, token, head_dim] after RoPE
        @raises CodecError where no position agrees, as with keys of another model"""
        tokens, sinks = keys.shape[2], self.groups[0].sinks
        places = torch.arange(sinks, tokens, dtype=torch.float64)[:, None]
        turns = [torch.polar(torch.ones(()).double(), -places * kind) for kind in self.frequencies]
        sums = [torch.zeros(len(kind), dtype=torch.complex128) for kind in self.frequencies]
        for of_layer, mean, kind in zip(keys[:, :, sinks:], self.means, self.kinds):
            found = (_pairs(of_layer, len(sums[kind])) * turns[kind]).mean(1)
            sums[kind] += (found * mean.conj()).sum(0)
        angles = torch.arange(0, _POSITIONS, tokens).double()[:, None] * torch.cat(self.frequencies)
        waves = torch.cat(sums)
        scores = (waves.abs() * torch.cos(waves.angle() - angles)).sum(1)
        best = int(scores.argmax())
        agreement = (scores[best] / waves.abs().sum()).item()
        if not agreement >= _LEAST_AGREEMENT:
            raise CodecError(f"chunk: found keys that agree with those of the config by at most {agreement:.2f} at any "
                             f"position, expected at least {_LEAST_AGREEMENT}", "model")
        return best * tokens

    def _tokens(self, shapes: list[torch.Size]) -> int:
        width = self.kv_heads * self.head_dim
        if len(shapes) != 1 or len(shapes[0]) != 4 or (*shapes[0][:2], shapes[0][3]) != (2, self.layers, width):
            raise CodecError(f"chunk: found {' and '.join(str(list(shape)) for shape in shapes)}, expected one tensor "
                             f"[2, {self.layers}, token, {width}]", "model")
        return shapes[0][2]

    def _chunk(self, of: Any) -> torch.Tensor:
        """[2, layer, kv_head, token, head_dim], a view of the object's memory"""
        tokens = self._tokens(of.get_shapes())
        if of.tensor is None:
            raise CodecError("chunk: found no tensor, expected one in memory of the CPU", "argument")
        return of.tensor.view(2, self.layers, tokens, self.kv_heads, self.head_dim).transpose(2, 3)

    def estimate_serialized_size(self, layout_desc: Any) -> int:
        """At position 0: sinks are larger than other tokens."""
        tokens = self._tokens(layout_desc.shapes)
        return sum(_LENGTH.size + self.codec.bound(group.layers[0], tokens) for group in self.groups)

    def serialize(self, src: Any, dst: Any, key: Any) -> int:
        chunk = self._chunk(src)
        first, data = self.first_position(chunk[0]), bytearray()
        for group in self.groups:
            states = [tuple(chunk[:, layer]) for layer in group.layers]
            stream = self.codec.encode_group(group.layers[0], states, None, first, True)
            data += _LENGTH.pack(len(stream)) + stream
        out = memoryview(dst.byte_array).cast("B")
        out[:] = data.ljust(len(out), b"\0")
        return len(out)

    def deserialize(self, src: Any, dst: Any, key: Any) -> None:
        chunk, data, at = self._chunk(dst), bytes(src.byte_array), 0
        for group in self.groups:
            begin = at + _LENGTH.size
            at = begin + _LENGTH.unpack_from(data, at)[0]
            states = [tuple(chunk[:, layer]) for layer in group.layers]
            self.codec.decode_group(data[begin:at], states, None, 0, True)


def _processor(options: dict[str, Any]) -> AsyncSerdeProcessor:
    """@param options  the members of an adapter's "serde" but the type"""
    if "config" not in options or not options.keys() <= _OPTIONS:
        raise ValueError(f"serde {NAME}: found {', '.join(options) or 'nothing'}, expected config and at most "
                         f"{', '.join(sorted(_OPTIONS - {'config'}))}")
    coder = ChunkCoder(options["config"], options.get("threads", 0))
    return AsyncSerdeProcessor(coder, coder, options.get("max_workers", 1))


def register() -> None:
    """Gives LMCache the serde "kvspectrum": "serde": {"type": "kvspectrum", "config": "config.json"} of an adapter."""
    register_serde_factory(NAME, _processor)


if __name__ == "__main__":
    from lmcache.cli.main import main

    register()
    main()
