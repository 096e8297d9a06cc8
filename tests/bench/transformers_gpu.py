#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Transformers side of scripts/gpu-test.sh: the bf16 product's peak and copy bandwidth in PyTorch, prefill with sdpa
attention, and a FAEDKV ablation done by hooks, on one GPU. One line of JSON each; times are medians after a warm-up.

Prefill gives the logits of all tokens, no cache and no loss; kvspectrum's also gives the loss. The ablation runs a few of the
layers' chunks, spread over the layers, and scales: each variant costs the loop one whole forward pass, whatever its layer.

With --profile, instead of all this: the time of each operation of the layers in a prefill.

Usage: transformers_gpu.py FOLDER [--tokens 4096] [--dtype bfloat16] [--device cuda] [--ablation-tokens 1024] [--variants 8] [--profile]
"""
import argparse
import json
import os
import statistics
import time

import torch
from transformers import AutoModelForCausalLM

from transformers_ablation import Dropper
from transformers_profile import LayerTimes

CHUNKS = 22


def median_seconds(device, repeats, work):
    times = []
    for _ in range(repeats + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])  # the first one warms up


def ceilings(device, dtype):
    size = 8192 if device == "cuda" else 512
    x, w = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
    y = torch.empty_like(x)
    seconds = median_seconds(device, 5, lambda: [torch.mm(x, w, out=y) for _ in range(8)]) / 8
    source = torch.randn(size * size * (8 if device == "cuda" else 1), device=device)  # GPU: 2 GB, far above its caches
    target = torch.empty_like(source)
    copied = median_seconds(device, 5, lambda: [target.copy_(source) for _ in range(8)]) / 8
    return {"gemm_tflops": 2 * size**3 / seconds / 1e12, "torch_copy_gb_per_second": 2 * source.nbytes / copied / 1e9}


def ids_of(count, vocabulary, device):  # as gpu_speed
    return ((torch.arange(count, dtype=torch.int64) * 7919 + 13) % vocabulary)[None].to(device)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--tokens", type=int, default=4096)
    a.add_argument("--dtype", default="bfloat16")
    a.add_argument("--device", default="cuda")
    a.add_argument("--ablation-tokens", type=int, default=1024)
    a.add_argument("--variants", type=int, default=8)
    a.add_argument("--profile", action="store_true")
    o = a.parse_args()
    dtype, name = getattr(torch, o.dtype), os.path.basename(os.path.normpath(o.folder))

    def report(section, **values):
        print(json.dumps({"section": section, "model": name, "device": o.device, "dtype": o.dtype, **values}), flush=True)

    if not o.profile:
        report("torch_ceilings", **ceilings(o.device, dtype))
    model = AutoModelForCausalLM.from_pretrained(o.folder, dtype=dtype, attn_implementation="sdpa").to(o.device).eval()
    with torch.inference_mode():
        ids = ids_of(o.tokens, model.config.vocab_size, o.device)
        if o.profile:
            operations = LayerTimes(model, o.device).medians(7, lambda: model(ids, use_cache=False).logits)
            report("torch_profile", tokens=o.tokens, layers=model.config.num_hidden_layers, operations=operations)
            return
        seconds = median_seconds(o.device, 5, lambda: model(ids, use_cache=False).logits)
        logits = model(ids, use_cache=False).logits[0, :-1].float()
        nll = torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item()
        del logits
        report("torch_prefill", tokens=o.tokens, seconds=seconds, tokens_per_second=o.tokens / seconds, nll_mean=nll)
        if model.config.model_type != "llama":
            return
        ids = ids[:, : o.ablation_tokens]
        dropper, layers = Dropper(model, CHUNKS), model.config.num_hidden_layers

        def variants():
            for n in range(o.variants):  # spread over the layers; each is a whole forward pass
                dropper.layer, dropper.chunk = (2 * n + 1) * layers // (2 * o.variants), n % CHUNKS
                out = model(ids, use_cache=False).logits[0, :-1].float()
                torch.nn.functional.cross_entropy(out, ids[0, 1:]).item()

        seconds = median_seconds(o.device, 3, variants) / o.variants
        report("torch_ablation", variants=o.variants, tokens=ids.shape[1], seconds_per_variant=seconds, seconds_scaled_to_all=seconds * layers * CHUNKS)


if __name__ == "__main__":
    main()
