# SPDX-License-Identifier: Apache-2.0
"""press_from_config in kvpress: after a prompt a press keeps the same rows as a CalibratedCache."""

import torch
from transformers import DynamicCache

from adapters import load_model, save_config
from exports import FOLDER, TEXT, check
from kvspectrum import CalibratedCache, ConfigError, press_from_config

TOKENS = 256
model, tokenizer = load_model()
tokens = tokenizer(TEXT.read_text(), add_special_tokens=False)["input_ids"][:TOKENS + 2]  # eval scores two
prompt = torch.tensor([tokens[:TOKENS]])


def in_order(keys):
    """Sorts the rows of each head: presses leave them in any order."""
    return keys.take_along_dim(keys[..., :1].argsort(-2), -2)


def check_press(method, *settings):
    config, _ = save_config(tokens, method, *settings, f"prefix={TOKENS}", "prefill=whole")
    ours, theirs = CalibratedCache.from_config(config, model), DynamicCache()
    press = press_from_config(config)
    with press(model):
        model.model(prompt, past_key_values=theirs)
    model.model(prompt, past_key_values=ours)
    kept = [layer.sequences[0] for layer in ours.layers]
    rows = [layer.rows for layer in kept]
    assert [layer.keys.shape[-2] for layer in theirs.layers] == rows
    # Layers above see states that differ by rounding, which may decide near ties.
    same = sum(torch.allclose(in_order(one.keys), in_order(other.keys), atol=1e-3)
               for one, other in zip(kept, theirs.layers))
    print(f"{method} {' '.join(settings)[:40]}: {type(press).__name__}, {min(rows)} to {max(rows)} of {TOKENS} tokens")
    check("layers that keep other tokens", len(rows) - same, 2)


check_press("snapkv", "cache_size=96", "window=32")
check_press("snapkv", "window=32", "cache_size=" + ",".join(map(str, range(60, 120, 2))))
check_press("l2norm", "ratio=0.3")
check_press("lagkv", "lag=32", "ratio=0.25")

# streaming acts while tokens come; a press leaves the same tokens at the same slots.
config, _ = save_config(tokens, "streaming", "cache_size=64")
cache = DynamicCache()
with press_from_config(config, TOKENS)(model):
    model.model(prompt, past_key_values=cache)
ours = CalibratedCache.from_config(config, model)
model.model(prompt, past_key_values=ours)
first = ours.layers[0].sequences[0]
check("streaming: keys of layer 0", (first.rotation(first.keys, 0) - cache.layers[0].keys).abs().max().item(), 1e-3)

for method, settings, word in (
        ("h2o", ["cache_size=64", "recent=32"], "recent"), ("freqkv", ["cache_size=64"], "tokens"),
        ("snapkv", ["prefix=64", "cache_size=40", "window=" + ",".join(["16", "32"] * 15)], "same")):
    try:
        press_from_config(save_config(tokens, method, *settings)[0], TOKENS)
    except ConfigError as error:
        assert word in str(error), error
        print("refused:", str(error).removeprefix(str(FOLDER)))
    else:
        raise AssertionError(f"{method} was not refused")
