#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random tiny Llama models and their logits as Transformers computes them (tests/model).

Usage: make_tiny_llama.py            (needs torch, transformers, safetensors, gguf; writes to its own folder)

  tiny_llama_gqa/      bf16 safetensors in one file, grouped queries, tied head, no RoPE scaling
  tiny_llama_mha/      f32 safetensors in two shards, own head, llama3 RoPE scaling, attention biases
  tiny_llama.gguf      Q8_0 (norms F32), grouped queries, own head, llama3 RoPE scaling as rope_freqs.weight
  tiny_llama.json      token ids, and for each model logits of some positions, NLL and RoPE frequencies
"""
import json
import os

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = [0, 7, 23]
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


def make(seed, **options):
    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
                         head_dim=8, max_position_embeddings=128, rms_norm_eps=1e-5, initializer_range=0.3, **options)
    model = LlamaForCausalLM(config).eval()
    for name, value in model.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(value, 0.5, 1.5)
        elif "bias" in name:
            torch.nn.init.normal_(value, std=0.3)
    return model


@torch.inference_mode()
def golden(model, ids):
    model = model.float()
    logits = model(torch.tensor([ids])).logits[0]
    nll = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    as_list = lambda x: [float(np.float32(v)) for v in x.flatten()]
    return {"logits": as_list(logits[ROWS]), "nll": as_list(nll),
            "rope_frequencies": as_list(model.model.rotary_emb.inv_freq)}


def permute(weight, heads):
    """Reorders rows of a head from (half, chunk) to (chunk, half), as llama.cpp's converter stores W_q and W_k."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(model, path):
    """Writes Q8_0 weights and puts the rounded values back into the model."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    plain = 1.0 / (config.rope_parameters["rope_theta"] ** (torch.arange(0, config.head_dim, 2).float() / config.head_dim))
    writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq).numpy().astype(np.float32))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, value in model.named_parameters():
        data = value.detach().numpy()
        target = names.get_name(name, try_suffixes=(".weight",))
        if data.ndim == 1:
            writer.add_tensor(target, data)
            continue
        blocks = gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0)
        value.data = torch.from_numpy(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0))
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        for key, count in heads.items():
            if key in name:
                blocks = np.ascontiguousarray(permute(blocks, count))
        writer.add_tensor(target, blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    ids = [int(x) for x in np.random.default_rng(0).integers(0, 64, 24)]
    gqa = make(1, num_key_value_heads=2, tie_word_embeddings=True).bfloat16()
    gqa.save_pretrained(os.path.join(HERE, "tiny_llama_gqa"))
    mha = make(2, num_key_value_heads=4, tie_word_embeddings=False, attention_bias=True,
               rope_parameters={**LLAMA3, "rope_theta": 500000.0})
    mha.save_pretrained(os.path.join(HERE, "tiny_llama_mha"), max_shard_size="40KB")
    quantised = make(3, num_key_value_heads=2, tie_word_embeddings=False,
                     rope_parameters={**LLAMA3, "rope_theta": 10000.0})
    write_gguf(quantised, os.path.join(HERE, "tiny_llama.gguf"))
    # .bfloat16() above also rounded RoPE's frequencies; a model that is read back in f32 has the exact ones.
    gqa = LlamaForCausalLM.from_pretrained(os.path.join(HERE, "tiny_llama_gqa"), dtype=torch.float32).eval()
    models = {"tiny_llama_gqa": gqa, "tiny_llama_mha": mha, "tiny_llama.gguf": quantised}
    with open(os.path.join(HERE, "tiny_llama.json"), "w") as out:
        json.dump({"tokens": ids, "rows": ROWS, **{name: golden(model, ids) for name, model in models.items()}}, out)
        out.write("\n")
    for name in ("tiny_llama_gqa", "tiny_llama_mha"):
        os.remove(os.path.join(HERE, name, "generation_config.json"))


if __name__ == "__main__":
    main()
