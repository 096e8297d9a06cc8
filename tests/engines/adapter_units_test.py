# SPDX-License-Identifier: Apache-2.0
"""export/python without a model: transforms, scores, choices, refusals, and cuts of every method's layer."""

import json
from types import SimpleNamespace

import torch
from safetensors.torch import save_file

from exports import FOLDER, check

from kvspectrum.attention import States
from kvspectrum.config import Config, ConfigError, Parameters
from kvspectrum.layer import CalibratedLayer, Setting, attention, attention_with_mass, best_tokens
from kvspectrum.methods import METHODS
from kvspectrum.methods.faedkv import Spectrum
from kvspectrum.methods.freqkv import dct, inverse_dct
from kvspectrum.methods.lagkv import scores_of
from kvspectrum.press import PRESSES
from kvspectrum.rotation import Rotation
from kvspectrum.stores import Stores

torch.manual_seed(0)
HEADS, KV_HEADS, HEAD_DIM, PREFIX = 4, 2, 8, 30


class Embedding:
    """Returns RoPE of HEAD_DIM − 2 channels."""

    inv_freq, attention_scaling = 10.0 ** -torch.arange(3, dtype=torch.float64), 1.5

    def __call__(self, x, positions):
        angles = positions[..., None] * self.inv_freq.repeat(2)
        return (self.attention_scaling * angles.cos()).to(x), (self.attention_scaling * angles.sin()).to(x)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def random_states(tokens):
    q, k, v = (random(1, heads, tokens, HEAD_DIM) for heads in (HEADS, KV_HEADS, KV_HEADS))
    return States(q, k, v, random(1, tokens, 5), 0.35)


def refused(call, *words):
    try:
        call()
    except ConfigError as error:
        line = str(error)
        assert "\n" not in line and all(word in line for word in words), line
    else:
        raise AssertionError(f"not refused: {words}")


def check_transforms():
    """Tests the vector of FreqKV's definition, and a matrix of cosines."""
    x = torch.arange(8.0)[:, None]
    found = 0.5 ** 0.5 * inverse_dct(dct(x)[:4])[:, 0]
    expected = torch.tensor([0.39517481, 2.57841041, 4.42158959, 6.60482519], dtype=torch.float64)
    check("freqkv: 8 tokens as 4", (found - expected).abs().max().item(), 1e-8)
    steps = torch.arange(7, dtype=torch.float64)
    matrix = (2 / 7) ** 0.5 * torch.cos(torch.pi / 7 * steps[:, None] * (steps + 0.5))
    matrix[0] /= 2 ** 0.5
    x = random(2, 7, 3)
    check("DCT-II", (dct(x) - matrix @ x).abs().max().item(), 1e-12)


def check_spectrum():
    """With all chunks kept, tokens come back, also after the grid was rebuilt; laid on the oldest token they add up."""
    x = random(1, 2, 11, 3)
    spectrum = Spectrum(x[..., :7, :], 4, [0, 1, 2, 3])
    for n in range(7, 11):
        spectrum.add(x[..., n:n + 1, :], wraps=False)
    assert spectrum.samples == 14
    check("faedkv: all chunks", (spectrum.restored() - x).abs().max().item(), 1e-12)
    laid = Spectrum(x[..., :7, :], 4, [0, 1, 2, 3])
    laid.add(x[..., 7:8, :], wraps=True)
    expected = x[..., :7, :].clone()
    expected[..., 0, :] += x[..., 7, :]
    check("faedkv: laid on the oldest", (laid.restored() - expected).abs().max().item(), 1e-12)
    part = Spectrum(x[..., :8, :], 2, [0])  # bins 0 and 1 of 5
    bins = torch.fft.rfft(x[..., :8, :], dim=-2)
    bins[..., 2:, :] = 0
    check("faedkv: one chunk", (part.restored() - torch.fft.irfft(bins, n=8, dim=-2)).abs().max().item(), 1e-12)


def check_scores():
    assert best_tokens(torch.tensor([[1.0, 3, 3, 2, 3]]), 2).tolist() == [[1, 2]]
    x = random(1, 4, 3)
    x[..., 2] = 5  # constant in the reference: contributes 0
    reference = torch.tensor([[[0.0, 1, 5], [2, 3, 5]]])
    scaled = torch.stack([x[0, :, 0] / 2, (x[0, :, 1] - 1) / 2, torch.zeros(4)], -1)
    assert torch.allclose(scores_of(x, reference)[0], scaled.std(-1).softmax(-1))
    q, k, v = random(1, HEADS, 3, HEAD_DIM), random(1, KV_HEADS, 5, HEAD_DIM), random(1, KV_HEADS, 5, HEAD_DIM)
    out, mass = attention_with_mass(q, k, v, 0.3)
    check("attention with its mass", (out - attention(q, k, v, 0.3)).abs().max().item(), 1e-12)
    check("mass of 6 queries", abs(mass.sum(-1) - 6).max().item(), 1e-12)
    alone = (q[0, :2, 0] @ k[0, 0, :3].T * 0.3).softmax(-1) @ v[0, 0, :3]
    check("the first query sees 3 of 5", (out[0, :2, 0] - alone).abs().max().item(), 1e-12)


SMALL = {
    "full": {},
    "streaming": {"sinks": 3, "cache_size": 10},
    "dropping": {"sinks": 3, "cache_size": 12, "gamma": 0.5, "rope": "pre"},
    "freqkv": {"sinks": 3, "cache_size": 12, "gamma": 0.5, "rope": "pre", "band": "low", "rescale": "on",
               "iterate": "off"},
    "lagkv": {"sinks": 2, "lag": 5, "ratio": 0.5, "variant": "lag"},
    "h2o": {"cache_size": 9, "recent": 4},
    "tova": {"cache_size": 9},
    "triattention": {"cache_size": 12, "interval": 3, "sinks": 1, "recent": 2, "horizon": 64},
    "snapkv": {"window": 6, "cache_size": 11, "kernel": 3},
    "l2norm": {"ratio": 0.5, "skip_layers": [0]},
    "gqa": {"heads": 1},
    "faedkv": {"sinks": 2, "recent": 4, "chunks": 3, "kept": [0, 2], "key_space": "k_pre", "age": "on",
               "update": "corrected", "transform": "dft", "spectrum": "half"},
    "elitekv": {"elite": [[[0, 2], [1, 2]]], "r": 2},
    "kivi": {"bits": 2, "group": 8, "residual": 16},
}
# After 64 tokens. Slots are full at 12, 17, … 62 tokens; 12 partitions of 5 after 2 sinks, the last one complete, and 2
# more.
ROWS = {"full": 64, "streaming": 9, "dropping": 7 + 2, "freqkv": 7 + 2, "lagkv": 2 + 11 * 2 + 5 + 2, "h2o": 9, "tova": 9,
        "triattention": 10, "snapkv": 11 + 34, "l2norm": 15 + 34, "gqa": 64, "faedkv": 2 + 4, "elitekv": 64,
        "kivi": 0}


STATISTICS = FOLDER / "statistics.safetensors"  # of layer 0: 3 chunks and 2 channels that never rotate
save_file({"layers.0.query_mean": random(HEADS, HEAD_DIM), "layers.0.query_magnitude": random(HEADS, 5).abs() + 4},
          STATISTICS)


def layer_of(method, **changes):
    kind = METHODS[method]
    prefix = PREFIX if kind.always_whole else 0
    module = SimpleNamespace(head_dim=HEAD_DIM, config=SimpleNamespace(num_key_value_heads=KV_HEADS))
    parameters = Parameters({**SMALL[method], **changes}, "test", 0)
    return kind(parameters, Setting(module, Rotation(Embedding()), prefix,
                                    STATISTICS if method == "triattention" else None,
                                    stores=Stores(parameters, 0) if "type" in changes else None))


def check_memory(name, layer):
    """What a cache holds keeps no larger tensor in memory."""
    for member, x in vars(layer).items():
        if isinstance(x, torch.Tensor):
            held, needed = x.untyped_storage().nbytes(), x.numel() * x.element_size()
            assert held == needed, f"{name}: {member} of {needed} bytes keeps {held}"


def check_cuts(method, **changes):
    """Feeds 64 tokens at once, in groups of 7, and one by one."""
    states, name = random_states(64), " ".join([method, *changes.values()])
    at_once = layer_of(method, **changes)
    expected = at_once.run(states)
    for size in (7, 1):
        layer = layer_of(method, **changes)
        found = torch.cat([layer.run(states.part(n, min(size, 64 - n))) for n in range(0, 64, size)], -2)
        check(f"{name}: in groups of {size}", (found - expected).abs().max().item(), 1e-10)
        assert layer.seen == 64 and torch.allclose(layer.keys, at_once.keys, atol=1e-10)
        assert torch.allclose(layer.values, at_once.values, atol=1e-10)
        check_memory(name, layer)
    check_memory(name, at_once)
    assert at_once.rows == ROWS[method], (method, at_once.rows)
    at_once.reset()
    assert at_once.rows == 0 and torch.equal(at_once.run(states), expected)


def check_chunks_of_values():
    """A config's settings of values alone; where it has none, those of keys; and settings of each layer."""
    states = random_states(PREFIX)

    def spectra(**changes):
        layer = layer_of("faedkv", **changes)
        layer.run(states)
        return layer.spectra

    for keys, values, changes in (([0, 2], [0, 2], {}), ([0, 2], [1], {"kept_v": [1]}), ([1], [1], {"kept": [[1]]}),
                                  ([0, 2], [0, 1], {"kept_v": [[1, 0]]})):
        assert [spectrum.kept for spectrum in spectra(**changes)] == [keys, values], changes
    keys, values = spectra(kept_v=[1])
    assert torch.equal(keys.sums, spectra()[0].sums) and torch.equal(values.sums, spectra(kept=[1])[1].sums)
    for chunks in ([3], "none"):
        refused(lambda: layer_of("faedkv", kept_v=chunks), "/parameters/kept_v:", "some numbers below 3")
        refused(lambda: layer_of("faedkv", kept=chunks), "/parameters/kept:", "some numbers below 3")


def check_first_tokens(method):
    """Before a method acts its cache equals the full cache; elitekv and gqa act at each token."""
    if method in ("elitekv", "gqa"):
        return
    states = random_states(6)
    check(f"{method}: first tokens", (layer_of(method).run(states) - layer_of("full").run(states)).abs().max().item(),
          1e-12)


def check_refusals():
    path = FOLDER / "refused.json"
    sha256 = "a" * 64
    rope = {"theta": 10000, "scaling": None, "pairing": "rotate-half", "rotary_dim": 4, "window": 32,
            "frequencies": [[1, 0.01]], "factors": [1], "layer_kinds": [0, 0]}
    document = {"format": "kvspectrum-config", "version": 1, "method": "dropping", "files": [], "quality": {},
                "model": {"name": "tiny", "sha256": sha256, "architecture": "llama", "layers": 2, "query_heads": 2,
                          "kv_heads": 1, "head_dim": 32, "rope": rope},
                "calibration": {"command": "kvcalibrate eval", "tool_version": "1", "text_sha256": [], "documents": 1,
                                "tokens": 32, "seed": 0},
                "parameters": {"layers": [1], "sinks": 4, "cache_size": [16], "gamma": 0.5, "rope": "pre",
                               "type": "q8_0"}}

    def config(**changes):
        path.write_text(json.dumps({**document, **changes}))
        return Config(path)

    assert config().parameters(0) is None and config().parameters(1).count("cache_size") == 16
    refused(lambda: config(version=2), "/version: found 2", str(path))
    refused(config().check_types, "/parameters/type:", "q8_0", "none")
    refused(lambda: config().parameters(1).count("lag"), "/parameters/lag:", "found null", "whole number")
    refused(lambda: config().parameters(1).word("rope", "off"), "found \"pre\"", "one of off")
    refused(lambda: Config(FOLDER / "no.json"), "no.json")
    refused(lambda: config(files=[{"path": "../f", "sha256": sha256}]), "/files")
    document.pop("model")
    refused(config, "/model: found nothing")
    path.write_text("{")
    refused(lambda: Config(path), "expected a config")
    assert all((name in PRESSES) != ("no_press" in vars(kind)) for name, kind in METHODS.items() if name != "full")


check_transforms()
check_spectrum()
check_scores()
assert {*SMALL, "transform"} == set(METHODS) and METHODS["full"] is CalibratedLayer  # transform_test.py
for each in SMALL:
    check_cuts(each)
    check_first_tokens(each)
    if METHODS[each].takes_types:
        check_cuts(each, type="fp8")
check_chunks_of_values()
check_refusals()
