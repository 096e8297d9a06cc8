# SPDX-License-Identifier: Apache-2.0
"""CalibratedCache in Transformers: every method's perplexity against eval's, generate(), any split of a text."""

import json

import torch

from transformers import AutoModelForCausalLM

from adapters import CACHE, evaluate, load_model, save_config, scored
from exports import FOLDER, SMOLLM2_CONFIG, TEXT, calibrate, check, logits, tiny_config, tiny_config_by_layer, tiny_model
from kvspectrum import CalibratedCache, ConfigError

WHOLE = ("prefix=256",)
SETTINGS = [
    ("full",),
    ("freqkv", "cache_size=128"),
    ("freqkv", "cache_size=128", "gamma=0.75", "rope=post", "band=high", "rescale=off", "iterate=off"),
    ("dropping", "cache_size=128", "gamma=" + ",".join(["0.25", "0.5", "0.75"] * 10)),
    ("dropping", "cache_size=128", "rope=post", "layers=0,7,29"),
    ("streaming", "cache_size=128"),
    ("lagkv", "lag=32"),
    ("lagkv", "lag=32", "variant=local", "prefill=whole", *WHOLE),
    ("lagkv", "lag=32", "variant=l2"),
    ("h2o", "cache_size=128", "recent=64"),
    ("tova", "cache_size=128"),
    ("snapkv", "cache_size=96", "window=32", *WHOLE),
    ("l2norm", *WHOLE),
    ("gqa", "heads=1", "layers=10,20"),
    ("kivi", "bits=2"),
    ("full", "type_k=q8_0", "type_v=q4_0"),
    ("streaming", "cache_size=128", "type=q8_0"),
    ("faedkv", "kept=0-10", *WHOLE),
    ("faedkv", "kept=0-10", "age=on", *WHOLE),
    ("faedkv", "kept=0-10", "kept_v=0-1,5", "age=on", *WHOLE),
    ("faedkv", "kept=0-10", "key_space=k_pre", "age=on", *WHOLE),
    ("faedkv", "kept=0-20", "age=on", "update=literal", *WHOLE),
]

model, tokenizer = load_model()
tokens = tokenizer(TEXT.read_text(), add_special_tokens=False)["input_ids"][:512]
PROMPT = torch.tensor([tokens[:128]])


def decode(ids, cache, pieces=None):
    """Feeds a text at once, or in pieces of the given numbers of tokens."""
    rows = [model(piece, **{CACHE: cache}).logits[0] for piece in torch.tensor([ids]).split(pieces or len(ids), 1)]
    return torch.cat(rows)


def check_perplexity(name, config, ours, prefix):
    theirs = scored(decode(tokens, CalibratedCache.from_config(config, model)), tokens, prefix)
    check(f"{name}: {ours:.4f} ours, {theirs:.4f} in Transformers, relative difference", abs(theirs / ours - 1), 2e-3)


def check_generation(name, config, prefix):
    """Greedy: every new token is the first choice of one pass over prompt and answer with a fresh cache."""
    fresh = [CalibratedCache.from_config(config, model, prefix) for _ in range(2)]
    out = model.generate(PROMPT, **{CACHE: fresh[0]}, max_new_tokens=12, do_sample=False)[0].tolist()
    chosen = decode(out[:-1], fresh[1]).argmax(-1)[PROMPT.shape[1] - 1:].tolist()
    assert out[PROMPT.shape[1]:] == chosen, (name, out[PROMPT.shape[1]:], chosen)
    assert fresh[0].get_seq_length() == len(out) - 1
    print(f"{name}: generated", repr(tokenizer.decode(chosen)), flush=True)


def check_splits(name, config, prefix):
    """The stored rows are equal, row by row. In double, except Llama's f32 norms: a different row would differ by
    O(1)."""
    whole, stepwise = (CalibratedCache.from_config(config, model, prefix) for _ in range(2))
    ids = tokens[:160]
    first = decode(ids, whole)
    second = torch.cat([decode(ids[:100], stepwise, 33), decode(ids[100:], stepwise, 1)])
    check(f"{name}: logits of one prefill and of pieces", (first - second).abs().max().item(), 1e-3)
    for one, other in zip(*([layer.sequences[0] for layer in cache.layers] for cache in (whole, stepwise))):
        assert one.keys.shape == other.keys.shape, (name, one.keys.shape, other.keys.shape)
        assert torch.allclose(one.keys, other.keys, atol=1e-3) and torch.allclose(one.values, other.values, atol=1e-3)


def check_tiny_elitekv():
    """Random Llamas: J-LRD with fitted parts, S-LRD, no factors, layers left alone, RoPE stretched."""
    file = FOLDER / "tiny.jsonl"
    ropes = [{}, {"rope_type": "linear", "factor": 4.0},
             {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 32},
             {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}]
    makers = {"J-LRD": tiny_config,
              "fitted queries and outputs": lambda source: tiny_config(source, "--queries", "fitted", "--outputs",
                                                                       "fitted"),
              "S-LRD": lambda source: tiny_config(source, "--factorization", "separate", "--layers", "0,2"),
              "sizes by layer": tiny_config_by_layer,
              "no factors": lambda source: calibrate(source, FOLDER / "tiny.json", "--tokens-file", file, "--window",
                                                     64, "--elite", 3)}
    for number, rope in enumerate(ropes):
        source, ids = tiny_model(number, **rope)
        tiny = AutoModelForCausalLM.from_pretrained(source)
        for name, make in makers.items():
            config = make(source)
            parameters = json.loads(config.read_text())["parameters"]
            assert ("fitted" in name) == ("outputs" in parameters) and ("fitted" not in name or "queries" in parameters)
            theirs = tiny(torch.tensor([ids]), **{CACHE: CalibratedCache.from_config(config, tiny)}).logits[0]
            check(f"elitekv, tiny, RoPE {rope.get('rope_type', 'default')}, {name}: largest difference of logits",
                  abs(theirs.numpy() - logits(source, config, ids)).max(), 5e-4)
    plain = AutoModelForCausalLM.from_pretrained(tiny_model(0)[0])
    for path in (SMOLLM2_CONFIG, config):  # of another geometry, of another RoPE
        try:
            CalibratedCache.from_config(path, plain)
        except ConfigError as error:
            assert "config for another model" in str(error), error
            print("refused:", str(error).removeprefix(str(FOLDER)))
        else:
            raise AssertionError(f"{path} was not refused")


check_tiny_elitekv()
configs = {}
for method, *settings in SETTINGS:
    name = " ".join((method, *settings))[:60]
    config, measured = save_config(tokens, method, *settings)
    prefix = json.loads(config.read_text())["parameters"]["prefix"]
    check_perplexity(name, config, measured["ppl"], prefix)
    if method not in configs:
        configs[method] = config.rename(config.with_stem(config.stem + "-kept")), 128 if prefix else None
configs["elitekv"] = SMOLLM2_CONFIG, None
check_perplexity("elitekv", SMOLLM2_CONFIG, evaluate(tokens, "--config", SMOLLM2_CONFIG)["ppl"], 0)
for method, (config, prefix) in configs.items():
    check_generation(method, config, prefix)

# A layer of an elitekv cache holds the rows of the config; without our cache the model is unchanged.
cache = CalibratedCache.from_config(SMOLLM2_CONFIG, model)
decode(tokens[:8], cache)
rows = [layer.sequences[0] for layer in cache.layers]
assert {layer.keys[0, :, 0].numel() + layer.values[0, :, 0].numel() for layer in rows} == {2 * 10 * 3 + 192}
alone = model(PROMPT).logits
model.set_attn_implementation("sdpa")
assert torch.equal(alone, model(PROMPT).logits)

model.double()
for method, (config, prefix) in configs.items():
    check_splits(method, config, prefix)

other = AutoModelForCausalLM.from_pretrained(tiny_model(0)[0])
for taker, ids, mask, word in ((model, PROMPT, torch.ones(1, 1, 128, 128, dtype=torch.bool), "not that of causal"),
                               (other, torch.zeros(1, 3, dtype=torch.int64), None, "from_config was not called with")):
    try:
        taker(ids, attention_mask=mask, **{CACHE: CalibratedCache.from_config(SMOLLM2_CONFIG, model)})
    except ValueError as error:
        assert word in str(error), error
        print("refused:", error)
    else:
        raise AssertionError("a mask or another model was not refused")
