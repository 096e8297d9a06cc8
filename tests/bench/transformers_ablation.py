#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a variant of a FAEDKV in-place ablation done the plain way: one Transformers forward per (layer, chunk), with a
hook that drops one DFT chunk of K (after RoPE) and V. Times a few variants spread over the layers.

Usage: transformers_ablation.py MODEL.gguf --text FILE [--tokens 1024] [--chunks 22] [--dtype float32|bfloat16] [--variants 6]
"""
import argparse
import os
import time

import torch
import transformers.models.llama.modeling_llama as llama
from transformers import AutoModelForCausalLM, AutoTokenizer


class Dropper:
    """Drops half-spectrum chunk `chunk` of `chunks` from K and V of layer `layer`."""

    def __init__(self, model, chunks):
        self.layer = self.chunk = None
        self.chunks, self.current, self.rope = chunks, -1, llama.apply_rotary_pos_emb
        llama.apply_rotary_pos_emb = self.rotate
        for i, block in enumerate(model.model.layers):
            block.self_attn.register_forward_pre_hook(lambda m, a, kw, i=i: setattr(self, "current", i), with_kwargs=True)
            block.self_attn.v_proj.register_forward_hook(lambda m, a, out, i=i: self.drop(out, 1) if i == self.layer else out)

    def drop(self, x, axis):
        f = torch.fft.rfft(x.float(), dim=axis)
        b = f.shape[axis]
        lo, hi = self.chunk * b // self.chunks, (self.chunk + 1) * b // self.chunks
        f.narrow(axis, lo, hi - lo).zero_()
        return torch.fft.irfft(f, n=x.shape[axis], dim=axis).to(x.dtype)

    def rotate(self, q, k, cos, sin, *a, **kw):
        q, k = self.rope(q, k, cos, sin, *a, **kw)
        return q, self.drop(k, 2) if self.current == self.layer else k


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model")
    a.add_argument("--text", required=True)
    a.add_argument("--tokens", type=int, default=1024)
    a.add_argument("--chunks", type=int, default=22)
    a.add_argument("--dtype", default="float32")
    a.add_argument("--variants", type=int, default=6)
    o = a.parse_args()
    torch.set_num_threads(os.cpu_count())
    folder, name = os.path.split(os.path.abspath(o.model))
    tok = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=getattr(torch, o.dtype), attn_implementation="sdpa").eval()
    ids = tok(open(o.text, encoding="utf-8").read()[: o.tokens * 8], return_tensors="pt", add_special_tokens=False).input_ids[:, : o.tokens]
    assert ids.shape[1] == o.tokens
    dropper = Dropper(model, o.chunks)

    def variant(layer, chunk):
        dropper.layer, dropper.chunk = layer, chunk
        logits = model(ids, use_cache=False).logits[0, :-1].float()
        return torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item()

    layers = model.config.num_hidden_layers
    with torch.inference_mode():
        variant(0, 0)
        start = time.perf_counter()
        for n in range(o.variants):
            variant(n * layers // o.variants, n % o.chunks)
        per = (time.perf_counter() - start) / o.variants
    print(f"transformers hook loop {o.dtype} T={o.tokens}: {per:.3f} s per variant, {per * layers * o.chunks:.0f} s for {layers} x {o.chunks}")


if __name__ == "__main__":
    main()
