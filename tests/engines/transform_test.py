# SPDX-License-Identifier: Apache-2.0
"""The transform coder of export/python: perplexity against eval's, any split of a text, and kvspectrum.codec, whose
streams have the codes of the cache."""

import json
import os
from unittest.mock import patch

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache

from adapters import CACHE, evaluate, scored
from exports import BINARIES, FOLDER, check, run, tiny_model

os.environ.setdefault("KVSPECTRUM_LIBRARY", str(BINARIES.parent / "export" / "codec"))
from kvspectrum import CalibratedCache  # noqa: E402
from kvspectrum.codec import Codec, CodecError, ConfigError, library_path  # noqa: E402
from kvspectrum.coder import read_coder  # noqa: E402

SETTINGS = [("layer",), ("layer", "--recent", 0), ("layer", "--recent", 4, "--sinks", 3), ("head",),
            ("head", "--recent", 0)]
torch.manual_seed(3)
source, _ = tiny_model(3)
model = AutoModelForCausalLM.from_pretrained(source)
documents = [torch.randint(3, 128, (128,)).tolist() for _ in range(6)]
tokens = documents[0][:96]


def calibrated(rows, *options):
    text, config = FOLDER / "transform.jsonl", FOLDER / f"transform-{rows}.json"
    text.write_text("".join(json.dumps(document) + "\n" for document in documents))
    run("kvcalibrate", "transform", "--model", source, "--tokens-file", text, "--window", 128, "--budget", "40%",
        "--rows", rows, "--out", config, "--force", "--quiet", *options)
    return config


def decode(cache, *pieces):
    return torch.cat([model(torch.tensor([piece]), **{CACHE: cache}).logits[0] for piece in pieces])


def check_cache(name, config):
    ours = evaluate(tokens, "--config", config, "--reference", "none", model=source)["ppl"]
    whole, parts = (CalibratedCache.from_config(config, model) for _ in range(2))
    logits = decode(whole, tokens)
    theirs = scored(logits, tokens, 0)
    check(f"transform {name}: {ours:.4f} ours, {theirs:.4f} in Transformers, relative difference",
          abs(theirs / ours - 1), 2e-3)
    check(f"transform {name}: logits of one prefill and of pieces",
          (logits - decode(parts, tokens[:33], tokens[33:34], tokens[34:70], tokens[70:])).abs().max().item(), 2e-2)
    codes = [torch.cat([layer.sequences[0].keys[0, 0] for layer in cache.layers], 1) for cache in (whole, parts)]
    other = (codes[0] != codes[1]).any(1).float().mean().item()  # states that differ by rounding have other codes
    check(f"transform {name}: share of tokens with other codes", other, 0.1)


def states(tokens, seed=0):
    """k, v [kv_head, token, head_dim]"""
    torch.manual_seed(seed)
    return torch.randn(2, tokens, 16), torch.randn(2, tokens, 16)


def check_codes(config, by_head):
    """The cache's coder and the library have the same codes of 200 tokens, up to ties and rounding."""
    k, v = states(200)
    with Codec(config) as codec:
        layout = codec.layout(1)
        stream = np.frombuffer(codec.encode(1, k, v, first_position=layout.sinks), np.uint8)
        library = stream[layout.head_bytes:layout.head_bytes + 200 * layout.token_bytes]
        if by_head:  # rows of a head next to each other
            widths = read_coder(config.with_suffix(".safetensors"), 1, True).widths
            parts = np.split(library, np.cumsum([200 * width for width in widths])[:-1])
            library = np.concatenate([part.reshape(200, -1) for part in parts], 1)
        found = read_coder(config.with_suffix(".safetensors"), 1, by_head).encode(k, v)
        other = (found.numpy() != library.reshape(200, -1)).any(1).mean()
        check(f"codec, rows by {'head' if by_head else 'layer'}: share of tokens with other codes", other, 0.02)


def check_arrays(config):
    """NumPy and torch, any strides and types, keys before and after RoPE, tokens of a stream."""
    k, v = states(40, 1)
    with Codec(config, kv_heads=[2] * 3, head_dim=[16] * 3, threads=1) as codec:
        stream = codec.encode(0, k, v)
        assert codec.inspect(stream).tokens == 40 and len(stream) > codec.layout(0).head_bytes
        assert codec.encode(0, k.numpy(), v.numpy()) == stream
        by_token = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (k, v)]
        assert codec.encode(0, *by_token) == stream
        whole = [torch.empty_like(k), torch.empty_like(v)]
        codec.decode(stream, *whole)
        part = [np.empty((2, 7, 16), np.float32) for _ in range(2)]
        codec.decode(stream, *part, first=11)
        for one, other in zip(whole, part):
            assert np.array_equal(one[:, 11:18].numpy(), other)
        half = [torch.empty(2, 40, 16, dtype=torch.bfloat16) for _ in range(2)]
        codec.decode(stream, *half)
        assert all(torch.equal(one.bfloat16(), other) for one, other in zip(whole, half))
        turned = [torch.empty_like(k), torch.empty_like(v)]
        codec.decode(stream, *turned, rotated=True)
        assert torch.equal(turned[1], whole[1]) and not torch.equal(turned[0], whole[0])
        assert codec.inspect(codec.encode(0, *turned, rotated=True)).tokens == 40
        for call, status in ((lambda: codec.decode(stream[:-1], *whole), "stream"),
                             (lambda: codec.encode(0, k.double(), v), "argument"),
                             (lambda: codec.encode(0, k[:1], v), "argument"),
                             (lambda: codec.layout(9), "argument"),
                             (lambda: Codec(config, [1] * 3, [16] * 3), "model")):
            refused(call, status)


def check_attention(config):
    """Over two streams, joined by their sums, and over a part of one: softmax over decoded rows, in double."""
    k, v = states(40, 2)
    q = torch.randn(4, 16)
    scores_of = {"": lambda x: x * 16 ** -0.5, " with a scale and a cap": lambda x: 2 * (0.7 * x / 2).tanh()}
    with Codec(config) as codec:
        streams = [codec.encode(1, k[:, first:last], v[:, first:last], first_position=first)
                   for first, last in ((0, 25), (25, 40))]
        keys, values = (torch.empty(2, 40, 16) for _ in range(2))
        for stream, (first, last) in zip(streams, ((0, 25), (25, 40))):
            codec.decode(stream, keys[:, first:last], values[:, first:last], rotated=True)
        for (name, scores), options in zip(scores_of.items(), ({}, {"scale": 0.7, "softcap": 2.0})):
            weights = scores(q.double().view(2, 2, 16) @ keys.double().mT)
            parts = []
            for stream in streams:
                out, log_sums = torch.empty(4, 16), np.empty(4, np.float32)
                codec.attend(stream, q, out, log_sums, **options)
                parts.append((out.double(), torch.from_numpy(log_sums).double()))
            shares = torch.stack([sums for _, sums in parts]).softmax(0)[..., None]
            found = sum(share * out for share, (out, _) in zip(shares, parts))
            expected = (weights.softmax(-1) @ values.double()).view(4, 16)
            check(f"codec: attention{name} over two streams", (found - expected).abs().max().item(), 1e-5)
            codec.attend(streams[0], q.half().numpy(), out, log_sums, first=7, tokens=11, **options)
            part = weights[..., 7:18].softmax(-1) @ values[:, 7:18].double()
            check(f"codec: attention{name} over some tokens, queries in f16",
                  (out.double() - part.view(4, 16)).abs().max().item(), 1e-2)
        out, log_sums = torch.empty(4, 16), torch.empty(4)
        for arguments, options in (((q[:3], out[:3], log_sums[:3]), {}), ((q[:, :8], out, log_sums), {}),
                                   ((q, out[:, :8], log_sums), {}), ((q, out.double(), log_sums), {}),
                                   ((q, out, log_sums), {"first": 25}), ((q, out, log_sums), {"tokens": 26})):
            refused(lambda: codec.attend(streams[0], *arguments, **options), "argument")
    with Codec(calibrated("layer")) as codec:
        refused(lambda: codec.attend(codec.encode(1, k, v), q, out, log_sums), "argument")


def refused(call, status):
    try:
        call()
    except CodecError as error:
        assert error.status == status and "\n" not in str(error), (status, error)
    else:
        raise AssertionError(f"{status} was not refused")


def states_of_model(count):
    """(k, v) of each layer [kv_head, token, head_dim], after RoPE; what the first layer projects [token, channel]"""
    ids = torch.tensor([tokens[:count]])
    cache = DynamicCache()
    model(ids, **{CACHE: cache})
    first = model.model.layers[0].input_layernorm(model.model.embed_tokens(ids))[0]
    return [(layer.keys[0], layer.values[0]) for layer in cache.layers], first


def check_groups(name, *options):
    """Layers that share rows: streams of all of them, whole and in pieces, from NumPy arrays and torch tensors."""
    config = calibrated("layer", "--layers-per-group", 2, "--recent", 4, *options)
    pairs, x = states_of_model(41)
    with Codec(config, threads=1) as codec:
        group, alone = codec.group(1), codec.group(2)
        assert group.layers == (0, 1) and alone.layers == (2,) and group.channels in (0, x.shape[1])
        given, x = pairs[:2], x if group.channels else None

        def encoded(first=0, last=41, layers=given):
            inputs = None if x is None else x[first:last]
            return codec.encode_group(0, [(k[:, first:last], v[:, first:last]) for k, v in layers], inputs, first, True)

        stream = encoded()
        found = [[torch.empty_like(k), torch.empty_like(v)] for k, v in given]
        codec.decode_group(stream, found, x, rotated=True)
        errors = [((one - other).square().mean() / one.square().mean()).item()
                  for pair in zip(given, found) for one, other in zip(*pair)]
        check(f"codec, {name}: relative squared error", max(errors), 0.02)
        arrays, embeddings = [[of.numpy() for of in pair] for pair in given], None if x is None else x.numpy()
        assert codec.encode_group(1, arrays, embeddings, rotated=True) == stream
        part = [[np.empty((2, 7, 16), np.float32) for _ in range(2)] for _ in range(2)]
        codec.decode_group(stream, part, None if x is None else x[11:18], 11, True)
        for whole, some in zip(found, part):
            assert all(np.array_equal(one[:, 11:18].numpy(), other) for one, other in zip(whole, some))
        cut = group.sinks + 5 * group.block_tokens
        if "storage" in options:
            assert group.form == 1 and stream[48:] == encoded(0, cut)[48:] + encoded(cut)[48:]
        refused(lambda: encoded(layers=given[:1]), "argument")
        refused(lambda: codec.encode(0, *given[0]), "argument")
        refused(lambda: codec.decode_group(stream[:-1], found, x), "stream")
        if x is not None:
            refused(lambda: codec.encode_group(0, given), "argument")
            refused(lambda: codec.encode_group(0, given, x[:, 1:]), "argument")
    try:
        CalibratedCache.from_config(config, model)
    except ConfigError as error:
        assert "/parameters/groups: found layers that share rows" in str(error), error
    else:
        raise AssertionError("a cache of layers that share rows was not refused")


def check_library():
    kept, os.environ["KVSPECTRUM_LIBRARY"] = os.environ["KVSPECTRUM_LIBRARY"], str(FOLDER / "nowhere")
    try:
        library_path()
    except OSError as error:
        assert "expected libkvspectrum_codec.so" in str(error), error
    else:
        raise AssertionError("a missing library was not refused")
    os.environ["KVSPECTRUM_LIBRARY"] = kept


for setting in SETTINGS:
    check_cache(" ".join(map(str, setting)), calibrated(*setting))
with patch("kvspectrum.cache.opened", lambda *_: None):
    for setting in SETTINGS[2:4]:
        check_cache(" ".join(map(str, setting)) + " in torch", calibrated(*setting))
for rows in ("layer", "head"):
    check_codes(calibrated(rows), rows == "head")
check_arrays(calibrated("layer"))
check_attention(calibrated("head"))
check_groups("layers that share rows")
check_groups("predicted rows", "--predict", "embedding")
check_groups("storage form", "--predict", "embedding", "--form", "storage")
check_library()
