#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one round of RoPElite's search done the plain way in PyTorch f32: for every layer, query head and candidate
chunk, the T x T score difference to the fully rotated scores, after one eager forward pass. A search of r elite chunks takes
r such rounds; the public code runs them at 2,048 tokens, one forward pass a round.

Usage: torch_ropelite.py MODEL.gguf --text FILE [--tokens 2048] [--layers 2]
Times some layers and scales to all of them.
"""
import argparse
import os
import time

import torch
import transformers.models.llama.modeling_llama as llama
from transformers import AutoModelForCausalLM, AutoTokenizer


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model")
    a.add_argument("--text", required=True)
    a.add_argument("--tokens", type=int, default=2048)
    a.add_argument("--layers", type=int, default=2)
    o = a.parse_args()
    torch.set_num_threads(os.cpu_count())
    folder, name = os.path.split(os.path.abspath(o.model))
    tok = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager").eval()
    ids = tok(open(o.text, encoding="utf-8").read()[: o.tokens * 8], return_tensors="pt", add_special_tokens=False).input_ids[:, : o.tokens]
    seen, rope = [], llama.apply_rotary_pos_emb

    def keep(q, k, cos, sin, *args, **kw):
        seen.append((q[0], k[0], cos[0], sin[0]))
        return rope(q, k, cos, sin, *args, **kw)

    llama.apply_rotary_pos_emb = keep
    with torch.inference_mode():
        start = time.perf_counter()
        model(ids, use_cache=False)
        forward = time.perf_counter() - start
        start = time.perf_counter()
        for q, k, cos, sin in seen[: o.layers]:
            heads, _, dim = q.shape
            group, half = heads // k.shape[0], dim // 2
            rotated_q, rotated_k = (x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin for x in (q, k))
            for h in range(heads):
                target = rotated_q[h] @ rotated_k[h // group].T
                for c in range(half):
                    # rotate chunk c (and the chunks picked before), leave the rest: one whole score matrix per
                    # candidate
                    mixed_q, mixed_k = q[h].clone(), k[h // group].clone()
                    for channel in (c, c + half):
                        mixed_q[:, channel] = rotated_q[h, :, channel]
                        mixed_k[:, channel] = rotated_k[h // group, :, channel]
                    (mixed_q @ mixed_k.T - target).tril_().abs_().sum()
        took = time.perf_counter() - start
    total = forward + took / o.layers * model.config.num_hidden_layers
    print(f"torch RoPElite f32 T={o.tokens}: {total:.1f} s per round over all layers and heads, {16 * total:.0f} s for r = 16")


if __name__ == "__main__":
    main()
