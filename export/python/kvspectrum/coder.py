# SPDX-License-Identifier: Apache-2.0
"""The transform coder's rows of a layer (docs/transform.md), in f32."""

import torch
from safetensors import safe_open

from kvspectrum.codec import Codec
from kvspectrum.stores.trellis import Trellis

SLAB = 512  # tokens that are encoded at once


def read_coder(path, layer, by_head, codec=None):
    """The coder of a layer from the tensor file of a transform config.
    @param codec  the config as a kvspectrum.codec.Codec, which encodes states on the CPU; None: torch does"""
    with safe_open(path, "pt") as file:
        books = file.get_tensor("books")
        names = ("mean", "analysis", "synthesis", "bits", "weights", *(("deviations",) if by_head else ()))
        tensors = {name: file.get_tensor(f"layers.{layer}.{name}") for name in names}
    coder = HeadCoder(books, **tensors) if by_head else LayerCoder(books, **tensors)
    coder.codec, coder.layer = codec, layer
    return coder


class Coder:
    codec: Codec | None = None  # that encodes on the CPU
    layer: int
    widths: list[int]  # bytes of a token's rows

    def encode(self, k, v):
        """k (before RoPE), v [kv_head, token, head_dim]; returns codes, uint8 [token, byte]"""
        if self.codec is not None and k.device.type == "cpu":
            return self.encoded_by_codec(self.codec, k.float().contiguous(), v.float().contiguous())
        slabs = zip(k.float().split(SLAB, 1), v.float().split(SLAB, 1))
        return torch.cat([self.encode_slab(*slab) for slab in slabs])

    def encode_slab(self, k, v):
        raise NotImplementedError

    def encoded_by_codec(self, codec, k, v):
        """The codes of a stream, without its outliers; its rows are those of a head after those of another."""
        layout, tokens = codec.layout(self.layer), k.shape[1]
        stream = bytearray(codec.encode(self.layer, k, v, first_position=layout.sinks))
        codes = torch.frombuffer(stream, dtype=torch.uint8, offset=layout.head_bytes, count=tokens * layout.token_bytes)
        rows = codes.split([tokens * width for width in self.widths])
        return torch.cat([row.view(tokens, -1) for row in rows], 1)


class LayerCoder(Coder):
    """A token is one row: the coefficients of all heads' keys and values."""

    def __init__(self, books, mean, analysis, synthesis, bits, weights):
        self.mean, self.analysis, self.synthesis, self.weights = mean, analysis, synthesis, weights
        self.bias = -(analysis.double() @ mean.double()).float()
        self.trellis = Trellis(books, bits, weights)
        self.widths = [self.trellis.bytes]

    def on(self, device):
        if self.mean.device != device:
            for name in ("mean", "analysis", "synthesis", "weights", "bias"):
                setattr(self, name, getattr(self, name).to(device))

    def coefficients(self, k, v):
        self.on(k.device)
        rows = torch.cat([k, v]).float().transpose(0, 1).flatten(1)
        return rows @ self.analysis.T + self.bias

    def encode_slab(self, k, v):
        return self.trellis.encode(self.coefficients(k, v))

    def decode(self, codes, heads):
        """@return k, v [kv_head, token, head_dim]"""
        self.on(codes.device)
        rows = self.trellis.decode(codes) @ self.synthesis.T + self.mean
        k, v = rows.view(len(rows), 2, heads, -1).permute(1, 2, 0, 3)
        return k, v

    def costs(self, k, v, codes):
        """Error costs of tokens, in double."""
        errors = self.trellis.decode(codes).double() - self.coefficients(k, v).double()
        return errors.square() @ self.weights.double()


class HeadCoder(Coder):
    """A head's keys, by channel, and a head's values, in their basis, are rows: first the keys' of all heads."""

    def __init__(self, books, mean, analysis, synthesis, bits, weights, deviations):
        heads, head_dim = analysis.shape[0], analysis.shape[1]
        self.analysis, self.synthesis = analysis, synthesis
        self.mean = mean.view(2, heads, 1, head_dim)[1]
        self.bias = -(analysis.double() @ self.mean.double().mT).mT.float()
        of_heads = [tensor.view(2, heads, head_dim) for tensor in (bits, weights, mean)]
        deviations = deviations.view(heads, head_dim)
        keys, values = ([tensor[side] for tensor in of_heads] for side in (0, 1))
        self.trellises = [Trellis(books, *each) for each in zip(*keys, deviations)]
        self.trellises += [Trellis(books, *each) for each in zip(*values[:2])]
        self.widths = [trellis.bytes for trellis in self.trellises]

    def on(self, device):
        if self.mean.device != device:
            for name in ("mean", "analysis", "synthesis", "bias"):
                setattr(self, name, getattr(self, name).to(device))

    def encode_slab(self, k, v):
        self.on(k.device)
        rows = [*k, *(v @ self.analysis.mT + self.bias)]
        return torch.cat([trellis.encode(x) for trellis, x in zip(self.trellises, rows)], 1)

    def decode(self, codes, heads):
        self.on(codes.device)
        rows = torch.stack([trellis.decode(part)
                            for trellis, part in zip(self.trellises, codes.split(self.widths, 1))])
        return rows[:heads], rows[heads:] @ self.synthesis.mT + self.mean
