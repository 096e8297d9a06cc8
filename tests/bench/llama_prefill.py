#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompt processing of llama.cpp on the CPU: tokens per second of one prompt, logits of its last token alone.

Usage: llama_prefill.py MODEL.gguf [--tokens 8192] [--types BF16,F16,Q8_0,Q4_0] [--ubatch 512] [--repeats 1]
       [--threads N] [--flash on|off]

Weights are quantised to each type anew from MODEL.gguf, in a temporary folder, and a prompt is decoded in batches of
`ubatch` tokens as llama-bench does. Needs `pip install llama-cpp-python`, compiled for this processor
(CMAKE_ARGS=-DGGML_NATIVE=ON).
"""
import argparse
import ctypes
import os
import tempfile
import time

import llama_cpp


def quantised(model, kind, folder):
    path = os.path.join(folder, kind + ".gguf").encode()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, "LLAMA_FTYPE_MOSTLY_" + kind)
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(model.encode(), path, ctypes.byref(params)) != 0:
        raise SystemExit(f"llama_prefill.py: no weights in {kind}")
    return path


def seconds_of(path, o):
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(path, params)
    of = llama_cpp.llama_context_default_params()
    of.n_ctx, of.n_batch, of.n_ubatch = o.tokens, o.ubatch, o.ubatch
    of.n_threads = of.n_threads_batch = o.threads
    of.flash_attn_type = {"on": 1, "off": 0, "auto": -1}[o.flash]
    context = llama_cpp.llama_init_from_model(model, of)
    batch = llama_cpp.llama_batch_init(o.ubatch, 0, 1)
    best = float("inf")
    for _ in range(o.repeats + 1 if o.repeats > 0 else 1):  # the first one warms up
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        start = time.perf_counter()
        for first in range(0, o.tokens, o.ubatch):
            batch.n_tokens = min(o.ubatch, o.tokens - first)
            for n in range(batch.n_tokens):
                position = first + n
                batch.token[n], batch.pos[n] = position % 40000 + 100, position
                batch.n_seq_id[n], batch.seq_id[n][0] = 1, 0
                batch.logits[n] = position + 1 == o.tokens
            if llama_cpp.llama_decode(context, batch) != 0:
                raise SystemExit("llama_prefill.py: the prompt does not decode")
        llama_cpp.llama_synchronize(context)
        best = min(best, time.perf_counter() - start)
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return best


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model")
    a.add_argument("--tokens", type=int, default=8192)
    a.add_argument("--types", default="BF16,F16,Q8_0,Q4_0")
    a.add_argument("--ubatch", type=int, default=512)
    a.add_argument("--repeats", type=int, default=1)
    a.add_argument("--threads", type=int, default=os.cpu_count())
    a.add_argument("--flash", choices=("on", "off", "auto"), default="auto")
    o = a.parse_args()
    llama_cpp.llama_backend_init()
    quiet = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(quiet, None)
    print(llama_cpp.llama_print_system_info().decode(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for kind in o.types.split(","):
            best = seconds_of(quantised(o.model, kind, folder), o)
            print(f"llama.cpp {kind} T={o.tokens}: {best:.3f} s, {o.tokens / best:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
