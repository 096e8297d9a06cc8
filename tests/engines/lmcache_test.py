# SPDX-License-Identifier: Apache-2.0
"""The serde of LMCache: chunks of SmolLM2 pass LMCache's storage manager and its adapter `fs`, and the model continues
from what comes back. Runs in a venv of lmcache.txt (in_venv.sh)."""

import argparse
import json
import os
import shutil
import time

import torch
from lmcache.v1.distributed.api import GroupedObjectKeys, MemoryLayoutDesc, ObjectKey, PrefetchTaskSpec
from lmcache.v1.distributed.config import add_storage_manager_args, parse_args_to_config
from lmcache.v1.distributed.storage_manager import StorageManager
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from adapters import CACHE, evaluate, load_model
from exports import BINARIES, FOLDER, MODEL, TEXT, check, run

os.environ.setdefault("KVSPECTRUM_LIBRARY", str(BINARIES.parent / "export" / "codec"))
from kvspectrum.codec import CodecError, ConfigError  # noqa: E402
from kvspectrum.lmcache import ChunkCoder, register  # noqa: E402

CHUNK, PROMPT, CONTINUATION = 256, 512, 64
STORE, CONFIG = FOLDER / "lmcache-chunks", FOLDER / "lmcache.json"


def storage_manager(config):
    """As `lmcache server --l2-adapter …` makes it."""
    adapter = {"type": "fs", "base_path": str(STORE), "serde": {"type": "kvspectrum", "config": str(config)}}
    parser = argparse.ArgumentParser()
    add_storage_manager_args(parser)
    return StorageManager(parse_args_to_config(parser.parse_args(
        ["--l1-size-gb", "0.25", "--no-l1-use-lazy", "--eviction-policy", "LRU", "--l2-adapter",
         json.dumps(adapter)])))


def store(manager, keys, chunks, layout):
    for key, at in manager.reserve_write(keys, layout).items():
        at.tensor.copy_(chunks[keys.index(key)])
    manager.finish_write(keys)
    end = time.monotonic() + 120
    while len(list(STORE.glob("*.data"))) < len(keys):
        assert time.monotonic() < end, "no files in the folder of the adapter"
        time.sleep(0.05)


def restore(manager, keys, layout):
    """@return the chunks that the adapter has, without those in LMCache's memory; [] unless it has all"""
    while manager.delete_l1_keys(keys)[1]:  # until nothing is locked
        time.sleep(0.05)
    handle = manager.submit_prefetch_task(PrefetchTaskSpec([GroupedObjectKeys(keys, 0, layout)]))
    assert manager.wait_prefetch_status(handle, 120)
    if manager.query_prefetch_status(handle).l2_hit_cells[0].popcount() < len(keys):
        return []
    with manager.read_prefetched_results(keys) as objects:
        found = [at.tensor.clone() for at in objects]
    manager.finish_read_prefetched(keys)
    return found


def chunks_of(cache):
    """[2, layer, token, kv_head · head_dim] of each chunk, in f16"""
    states = torch.stack([torch.stack([layer.keys[0], layer.values[0]]) for layer in cache.layers], 1)
    return states.transpose(2, 3).flatten(3).half().split(CHUNK, 2)


def cache_of(chunks, kv_heads):
    cache = DynamicCache()
    for layer, states in enumerate(torch.cat(chunks, 2).float().unbind(1)):
        rows = states.unflatten(-1, (kv_heads, -1)).transpose(1, 2)
        cache.update(*rows[:, None], layer)
    return cache


def divergence(reference, logits):
    """Mean KL divergence over tokens."""
    p, q = (of.double().log_softmax(-1) for of in (reference, logits))
    return (p.exp() * (p - q)).sum(-1).mean().item()


def check_model():
    model, tokenizer = load_model()
    run("kvcalibrate", "transform", "--model", MODEL, "--text", TEXT, "--window", 128, "--windows", "0:24", "--length",
        PROMPT, "--budget", "25%", "--out", CONFIG, "--force", "--quiet")
    tokens = tokenizer(TEXT.read_text()).input_ids[-PROMPT - CONTINUATION:]
    prompt, rest = torch.tensor([tokens]).split([PROMPT, CONTINUATION], 1)
    cache = DynamicCache()
    model(prompt, logits_to_keep=1, **{CACHE: cache})
    chunks, kv_heads = chunks_of(cache), model.config.num_key_value_heads
    keys = [ObjectKey(bytes([n]) * 32, "smollm2", ObjectKey.ComputeKVRank(1, 0, 1, 0)) for n in range(len(chunks))]
    layout = MemoryLayoutDesc([chunks[0].shape], [torch.float16])

    shutil.rmtree(STORE, ignore_errors=True)
    manager = storage_manager(CONFIG)
    try:
        store(manager, keys, chunks, layout)
        found = restore(manager, keys, layout)
        files = sorted(STORE.glob("*.data"), key=lambda file: file.name.split("@")[3])
        coder = ChunkCoder(str(CONFIG))
        firsts = [coder.codec.inspect(data[4:4 + int.from_bytes(data[:4], "little")]).first_position
                  for data in (file.read_bytes() for file in files)]
        assert firsts == [0, CHUNK], firsts
        size = coder.estimate_serialized_size(layout)
        assert {file.stat().st_size for file in files} == {size}
        check("lmcache: share of the bytes in f16", size / (2 * chunks[0].numel()), 0.26)
        reference = model(rest, **{CACHE: cache}).logits[0]
        coded = model(rest, **{CACHE: cache_of(found, kv_heads)}).logits[0]
        expected = evaluate(tokens, "--config", CONFIG)["kl"]
        check(f"lmcache: divergence over {CONTINUATION} tokens; {expected:.2g} over all tokens in eval",
              divergence(reference, coded), 3 * expected)
        files[0].write_bytes(files[1].read_bytes()[:4] + b"another" + files[1].read_bytes()[11:])
        assert not restore(manager, keys, layout), "a damaged file was read"
    finally:
        manager.close()
    check_positions(coder, chunks)


def check_positions(coder, chunks):
    states = torch.cat(chunks, 2)[0].unflatten(-1, (coder.kv_heads, -1)).transpose(1, 2)
    for tokens in (16, 64, CHUNK):
        firsts = range(0, PROMPT, tokens)
        assert [coder.first_position(states[:, :, first:first + tokens]) for first in firsts] == list(firsts), tokens
    refused(lambda: coder.first_position(states.flip(0)[:, :, :CHUNK]), CodecError, "chunk: found keys that agree")
    layout = MemoryLayoutDesc([torch.Size([2, 30, CHUNK, 96])], [torch.float16])
    refused(lambda: coder.estimate_serialized_size(layout), CodecError, "chunk: found [2, 30, 256, 96], expected one")


def check_configs():
    """A tiny random model with biases of keys: layers that share rows, and configs that cannot code chunks."""
    source = FOLDER / "tiny-biased"
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(
        "qwen2", hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, vocab_size=128,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.2))
    for layer in model.model.layers:
        layer.self_attn.k_proj.bias.normal_(std=3)
    model.save_pretrained(source)
    documents = [torch.randint(3, 128, (128,)).tolist() for _ in range(6)]
    text, config = FOLDER / "lmcache.jsonl", FOLDER / "lmcache-tiny.json"
    text.write_text("".join(json.dumps(document) + "\n" for document in documents))

    def calibrated(*options):
        run("kvcalibrate", "transform", "--model", source, "--tokens-file", text, "--window", 128, "--budget", "40%",
            "--out", config, "--force", "--quiet", "--layers-per-group", 2, *options)
        return str(config)

    cache = DynamicCache()
    model(torch.tensor([documents[0]]), **{CACHE: cache})
    keys = torch.stack([layer.keys[0] for layer in cache.layers])
    coder = ChunkCoder(calibrated())
    assert [coder.first_position(keys[:, :, first:first + 32]) for first in range(0, 128, 32)] == [0, 32, 64, 96]
    refused(lambda: ChunkCoder(calibrated("--form", "storage")), ConfigError, "/parameters/form: found storage")
    refused(lambda: ChunkCoder(calibrated("--predict", "embedding")), ConfigError, "/parameters/predict: found embe")


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(f"{text} was not refused")


register()
check_configs()
check_model()
