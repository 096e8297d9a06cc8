# SPDX-License-Identifier: Apache-2.0
"""Writes rope_frequencies.json: frequencies and attention factors of each RoPE type as Transformers 5 computes them.

Run with: pip install torch transformers; python make_rope_golden.py
Each case holds the members of a config.json that define RoPE, and for each document length the values that a pass of
that length uses.
"""
import json
import pathlib

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

HEAD_DIM, CONTEXT = 16, 64
LONG = [1.0 + 0.75 * c for c in range(HEAD_DIM // 2)]
SHORT = [1.0 + 0.03125 * c for c in range(HEAD_DIM // 2)]
CASES = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 32},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 48},
    "yarn_untruncated": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 48,
                         "beta_fast": 8.0, "beta_slow": 0.5, "truncate": False},
    "yarn_mscale": {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 48, "mscale": 1.0,
                    "mscale_all_dim": 0.707},
    "yarn_attention_factor": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 0.75},
    "longrope": {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG,
                 "original_max_position_embeddings": 32},
    "longrope_factor": {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "factor": 4.0,
                        "original_max_position_embeddings": 32},
}


def main():
    result = {"head_dim": HEAD_DIM, "max_position_embeddings": CONTEXT, "rope_theta": 10000.0, "cases": {}}
    for name, parameters in CASES.items():
        lengths = {}
        for tokens in (20, 64, 65, 150):
            config = LlamaConfig(hidden_size=2 * HEAD_DIM, num_attention_heads=2, max_position_embeddings=CONTEXT,
                                 rope_parameters={**parameters, "rope_theta": 10000.0})
            rotary = LlamaRotaryEmbedding(config)
            rotary(torch.zeros(1), torch.arange(tokens)[None])
            lengths[str(tokens)] = {"frequencies": rotary.inv_freq.double().tolist(),
                                    "factor": float(rotary.attention_scaling)}
        result["cases"][name] = {"rope_parameters": parameters, "lengths": lengths}
    path = pathlib.Path(__file__).with_name("rope_frequencies.json")
    path.write_text(json.dumps(result, indent=1) + "\n")


main()
