#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of one forward pass in PyTorch + Transformers (sdpa), with the head, on the CPU.

Usage: transformers_prefill.py MODEL.gguf [--tokens 2048] [--dtype float32|bfloat16] [--repeats 3] [--threads N] [--last]

--last: logits of the last token alone. --repeats 0: one pass, without a warm-up.
"""
import argparse
import os
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model")
    a.add_argument("--tokens", type=int, default=2048)
    a.add_argument("--dtype", default="float32")
    a.add_argument("--repeats", type=int, default=3)
    a.add_argument("--threads", type=int, default=os.cpu_count())
    a.add_argument("--last", action="store_true")
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    folder, name = os.path.split(os.path.abspath(o.model))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=getattr(torch, o.dtype), attn_implementation="sdpa").eval()
    ids = torch.arange(o.tokens)[None] % 40000 + 100
    best = float("inf")
    with torch.inference_mode():
        for _ in range(o.repeats + 1):  # the first one of several warms up
            start = time.perf_counter()
            logits = model(ids, use_cache=False, logits_to_keep=1 if o.last else 0).logits
            best = min(best, time.perf_counter() - start)
    assert torch.isfinite(logits).all()
    print(f"transformers {o.dtype} T={o.tokens}: {best:.3f} s, {o.tokens / best:.0f} tokens/s")


if __name__ == "__main__":
    main()
