# SPDX-License-Identifier: Apache-2.0
"""Tiny models of every architecture and RoPE type that the toolkit reads, with weights from a formula.

The same formula is written in tests/model/formula_model.h, so that golden values need no stored weights.
"""
import copy

import numpy as np
import torch
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, DynamicCache,
                          Mistral4ForCausalLM)

TOKENS = 300  # above every window and every original context here
VOCABULARY = 131
CONTEXT = 256
WINDOW = 48

LINEAR = {"rope_type": "linear", "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
YARN_MSCALE = {**YARN, "mscale": 1.0, "mscale_all_dim": 0.707, "beta_fast": 16.0, "beta_slow": 2.0, "truncate": False}
YARN_LATENT = {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}
YARN_HALVES = {**YARN, "truncate": False}
ALPHA = {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0}
DEFAULT = {"rope_type": "default"}


def longrope(chunks, original):
    return {"rope_type": "longrope", "original_max_position_embeddings": original,
            "short_factor": [1.0 + 0.0625 * c for c in range(chunks)],
            "long_factor": [1.0 + 0.75 * c for c in range(chunks)]}


def common(**options):
    return {"vocab_size": VOCABULARY, "hidden_size": 48, "intermediate_size": 56, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
            "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None, **options}


def rope(parameters, theta=10000.0):
    return {"rope_parameters": {**copy.deepcopy(parameters), "rope_theta": theta}}


def gemma3_rope(full):
    return {"rope_parameters": {"full_attention": {**full, "rope_theta": 1000000.0},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}


GEMMA = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": WINDOW,
         "hidden_activation": "gelu_pytorch_tanh"}
GEMMA2 = {**GEMMA, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
GEMMA3 = {**GEMMA, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]}
GEMMA4 = {"head_dim": 16, "global_head_dim": 24, "sliding_window": WINDOW, "num_hidden_layers": 4,
          "hidden_activation": "gelu_pytorch_tanh", "final_logit_softcapping": 30.0, "vocab_size_per_layer_input": VOCABULARY,
          "hidden_size_per_layer_input": 0,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
          "rope_parameters": {
              "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
              "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}
GEMMA4_ONE_ROW = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
GEMMA3N = {"head_dim": 16, "sliding_window": WINDOW, "num_hidden_layers": 4, "intermediate_size": [56, 40, 56, 48],
           "hidden_activation": "gelu_pytorch_tanh", "vocab_size_per_layer_input": VOCABULARY - 30,
           "hidden_size_per_layer_input": 8, "laurel_rank": 6, "altup_num_inputs": 3, "num_kv_shared_layers": 2,
           "activation_sparsity_pattern": [0.95, 0.0, 0.5, 0.0],
           "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
           **gemma3_rope(DEFAULT)}
NEOX = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": None, "hidden_act": "gelu",
        "layer_norm_eps": 1e-5}


def neox(parameters, share=0.25, **options):
    return {**NEOX, "rope_parameters": {**parameters, "rope_theta": 10000.0, "partial_rotary_factor": share}, **options}


MIXTRAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
QWEN_MOE = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24}
QWEN2_MOE = {**QWEN_MOE, "shared_expert_intermediate_size": 40}


def phi3(parameters, share=1.0, original=CONTEXT, **options):
    return {"hidden_size": 64, "sliding_window": None, "original_max_position_embeddings": original,
            "partial_rotary_factor": share,
            "rope_parameters": {**parameters, "rope_theta": 10000.0, "partial_rotary_factor": share}, **options}


def gemma3_composite(text):
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 8, "patch_size": 4}
    return {"text_config": {**common(), "model_type": "gemma3_text", **text}, "vision_config": vision,
            "mm_tokens_per_image": 4, "tie_word_embeddings": True}


def qwen3_vl(text):
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 48,
              "patch_size": 4, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}
    return {"text_config": {**common(), "model_type": "qwen3_vl_text", **text}, "vision_config": vision,
            "tie_word_embeddings": False}


DELTA_NET = {"linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 12,
             "linear_value_head_dim": 10, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
             "head_dim": 24}
QWEN3_NEXT = {**QWEN2_MOE, **DELTA_NET}


MAMBA = {"mamba_n_heads": 6, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 12}
NEMOTRON = {"mamba_num_heads": 6, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 12, "time_step_min": 0.6,
            "head_dim": 16, "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"]}
NEMOTRON_MOE = {"n_routed_experts": 6, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
                "routed_scaling_factor": 1.5, "moe_intermediate_size": 24, "moe_shared_expert_intermediate_size": 40,
                "moe_latent_size": 20}
FALCON = {**MAMBA, "mamba_d_ssm": 96, "mamba_rms_norm": True, "attention_in_multiplier": 1.25,
          "attention_out_multiplier": 0.75, "embedding_multiplier": 2.0, "key_multiplier": 0.5,
          "lm_head_multiplier": 0.5, "mlp_multipliers": [0.75, 0.5], "ssm_in_multiplier": 1.5,
          "ssm_multipliers": [0.5, 0.75, 1.25, 1.5, 2.0], "ssm_out_multiplier": 0.25}
LFM2 = {"layer_types": ["conv", "full_attention", "conv"]}
LATENT = {"num_key_value_heads": 4, "q_lora_rank": 12, "kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8,
          "v_head_dim": 14, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 1, "n_group": 3,
          "topk_group": 2, "routed_scaling_factor": 1.5, "moe_intermediate_size": 24, "attention_bias": True}
INDEX = {"index_topk": 24, "index_n_heads": 8, "index_head_dim": 12}


def qwen3_5(text, kind="qwen3_5"):
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 48,
              "patch_size": 4, "num_position_embeddings": 16}
    return {"text_config": {**common(), "model_type": kind + "_text", **DELTA_NET, **text}, "vision_config": vision,
            "tie_word_embeddings": False}


def partial(share):
    return rope({**DEFAULT, "partial_rotary_factor": share})


GRANITE = {"embedding_multiplier": 3.0, "attention_multiplier": 0.25, "residual_multiplier": 0.5, "logits_scaling": 2.0}
GPT_OSS = {"head_dim": 16, "num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": WINDOW}
LLAMA4 = {"head_dim": 16, "num_hidden_layers": 4, "intermediate_size_mlp": 40, "num_local_experts": 5,
          "num_experts_per_tok": 2, "interleave_moe_layer_step": 2, "attention_chunk_size": WINDOW, "floor_scale": 20}
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
RECURRENT = ("linear_attention", "mamba", "conv")  # types of layers
ADJACENT = ("ernie4_5", "ernie4_5_moe", "glm4", "cohere2", "llama4_text", "deepseek_v2")  # RoPE pairs are neighbouring channels


# name: (model_type, options, architecture in GGUF or None if a file cannot express it)
COMBINATIONS = {
    "llama_default": ("llama", {"head_dim": 16, **rope(DEFAULT, 500000.0)}, "llama"),
    "llama_mqa_bias": ("llama", {"num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True,
                                 "tie_word_embeddings": True, **rope(DEFAULT)}, None),
    "llama_linear": ("llama", rope(LINEAR), "llama"),
    "llama_dynamic": ("llama", rope(DYNAMIC), None),
    "llama_llama3": ("llama", rope(LLAMA3), "llama"),
    "llama_yarn": ("llama", rope(YARN), "llama"),
    "llama_yarn_mscale": ("llama", rope(YARN_MSCALE), None),
    "llama_longrope": ("llama", rope(longrope(6, 64)), "llama"),
    "llama_head_64": ("llama", {"head_dim": 64, "num_key_value_heads": 1, **rope(LLAMA3, 500000.0)}, "llama"),
    "llama_gelu_fast": ("llama", {"hidden_act": "gelu_fast", **rope(DEFAULT)}, None),
    "mistral_eight_heads": ("mistral", {"hidden_size": 64, "num_attention_heads": 16, "num_key_value_heads": 8,
                                        "sliding_window": WINDOW, **rope(DEFAULT)}, None),
    "mistral_default": ("mistral", {"sliding_window": WINDOW, **rope(DEFAULT)}, None),
    "mistral_full": ("mistral", {"sliding_window": None, "head_dim": 20, **rope(DEFAULT, 1e6)}, "llama"),
    "mistral_linear": ("mistral", {"sliding_window": WINDOW, **rope(LINEAR)}, None),
    "mistral_yarn": ("mistral", {"sliding_window": WINDOW, **rope(YARN)}, None),
    "qwen2_default": ("qwen2", rope(DEFAULT, 1e6), "qwen2"),
    "qwen2_dynamic": ("qwen2", rope(DYNAMIC), None),
    "qwen2_yarn": ("qwen2", {"tie_word_embeddings": True, **rope(YARN, 1e6)}, "qwen2"),
    "qwen2_window": ("qwen2", {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1,
                               **rope(DEFAULT)}, None),
    "qwen3_default": ("qwen3", {"head_dim": 20, **rope(DEFAULT, 1e6)}, "qwen3"),
    "qwen3_head_128": ("qwen3", {"head_dim": 128, "num_key_value_heads": 4, **rope(DEFAULT, 1e6)}, "qwen3"),
    "qwen3_linear": ("qwen3", {"head_dim": 16, **rope(LINEAR)}, "qwen3"),
    "qwen3_yarn": ("qwen3", {"head_dim": 16, "tie_word_embeddings": True, **rope(YARN, 1e6)}, "qwen3"),
    "gemma2_default": ("gemma2", {**GEMMA2, **rope(DEFAULT)}, "gemma2"),
    "gemma2_linear": ("gemma2", {**GEMMA2, **rope(LINEAR)}, None),
    "gemma3_default": ("gemma3_text", {**GEMMA3, **gemma3_rope(DEFAULT)}, None),
    "gemma3_linear": ("gemma3_text", {**GEMMA3, "num_hidden_layers": 6,
                                      "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
                                      **gemma3_rope(LINEAR)}, "gemma3"),
    "gemma3_yarn": ("gemma3_text", {**GEMMA3, **gemma3_rope(YARN)}, None),
    "gemma3_head_256": ("gemma3_text", {**GEMMA3, "head_dim": 256, "query_pre_attn_scalar": 256, "num_key_value_heads": 1,
                                        **gemma3_rope(DEFAULT)}, None),
    "gemma4_shared": ("gemma4_text", {**GEMMA4, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 2,
                                      "use_double_wide_mlp": True}, "gemma4"),
    "gemma4_one_row": ("gemma4_text", {**GEMMA4, **GEMMA4_ONE_ROW}, "gemma4"),
    "gemma4_experts": ("gemma4_text", {**GEMMA4, **GEMMA4_ONE_ROW, "enable_moe_block": True, "num_experts": 6,
                                       "top_k_experts": 2, "moe_intermediate_size": 24}, "gemma4"),
    "gemma3_composite": ("gemma3", gemma3_composite({**GEMMA3, **gemma3_rope(LINEAR)}), None),
    "qwen3_vl_default": ("qwen3_vl", qwen3_vl({"head_dim": 16, **rope({**DEFAULT, "mrope_section": [4, 2, 2],
                                                                       "mrope_interleaved": True}, 5e6)}), "qwen3vl"),
    "phi3_default": ("phi3", phi3(DEFAULT), "phi3"),
    "phi3_partial": ("phi3", phi3(DEFAULT, 0.75), "phi3"),
    "phi3_odd": ("phi3", phi3(DEFAULT, 7 / 16), None),
    "phi3_longrope": ("phi3", phi3(longrope(8, 64), original=64), "phi3"),
    "phi3_longrope_short": ("phi3", phi3(longrope(6, 512), 0.75, 512, max_position_embeddings=1024), "phi3"),
    "phi3_window": ("phi3", phi3(DEFAULT, sliding_window=WINDOW), None),
    "olmo2_default": ("olmo2", rope(DEFAULT, 500000.0), "olmo2"),
    "olmo2_llama3": ("olmo2", rope(LLAMA3), None),
    "olmo2_yarn": ("olmo2", rope(YARN), "olmo2"),
    "gpt_neox_default": ("gpt_neox", neox(DEFAULT), "gptneox"),
    "gpt_neox_sequential": ("gpt_neox", neox(DEFAULT, 1.0, use_parallel_residual=False), "gptneox"),
    "gpt_neox_linear": ("gpt_neox", neox(LINEAR, 0.5), "gptneox"),
    "gpt_neox_odd": ("gpt_neox", neox(LINEAR, 3 / 16), None),
    "gpt_neox_dynamic": ("gpt_neox", neox(DYNAMIC, 0.5), None),
    "mixtral_default": ("mixtral", {**MIXTRAL, **rope(DEFAULT)}, "llama"),
    "mixtral_window": ("mixtral", {**MIXTRAL, "sliding_window": WINDOW, **rope(DEFAULT, 1e6)}, None),
    "qwen2_moe_default": ("qwen2_moe", {**QWEN2_MOE, **rope(DEFAULT)}, "qwen2moe"),
    "qwen2_moe_window": ("qwen2_moe", {**QWEN2_MOE, "use_sliding_window": True, "sliding_window": WINDOW,
                                       "max_window_layers": 1, "norm_topk_prob": True, **rope(DEFAULT)}, None),
    "qwen3_moe_default": ("qwen3_moe", {**QWEN_MOE, "head_dim": 16, "norm_topk_prob": True, **rope(DEFAULT)},
                          "qwen3moe"),
    "qwen3_moe_dense": ("qwen3_moe", {**QWEN_MOE, "head_dim": 20, "norm_topk_prob": True, "mlp_only_layers": [1],
                                      **rope(DEFAULT)}, None),
    "seed_oss_default": ("seed_oss", {"head_dim": 20, **rope(DEFAULT)}, "seed_oss"),
    "granite_default": ("granite", {**GRANITE, **rope(DEFAULT)}, "granite"),
    "granitemoe_default": ("granitemoe", {**GRANITE, "num_local_experts": 5, "num_experts_per_tok": 2, **rope(DEFAULT)},
                           "granitemoe"),
    "ernie4_5_bias": ("ernie4_5", {"head_dim": 20, "use_bias": True, **rope(DEFAULT, 5e5)}, "ernie4_5"),
    "ernie4_5_moe_bias": ("ernie4_5_moe", {
        "use_bias": True, "tie_word_embeddings": False, "moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 24,
        "moe_layer_start_index": 1, **rope(DEFAULT, 5e5)}, None),
    "glm4_default": ("glm4", {"head_dim": 16, **partial(0.5)}, "glm4"),
    "glm4_moe_groups": ("glm4_moe", {
        "head_dim": 16, "attention_bias": True, "use_qk_norm": True, "moe_intermediate_size": 24, "n_routed_experts": 6,
        "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "routed_scaling_factor": 1.5, **partial(0.5)}, "glm4moe"),
    "minimax_m2_default": ("minimax_m2", {"head_dim": 16, "num_local_experts": 6, "num_experts_per_tok": 2,
                                          "rotary_dim": 8, **partial(0.5)}, "minimax-m2"),
    "olmo3_window": ("olmo3", {"sliding_window": WINDOW, "layer_types": MIXED, "rope_parameters": {
        "sliding_attention": {**DEFAULT, "rope_theta": 5e5}, "full_attention": {**YARN, "rope_theta": 5e5}}}, "olmo2"),
    "phi_default": ("phi", partial(0.5), "phi2"),
    "phi_tied": ("phi", {"tie_word_embeddings": True, **partial(0.5)}, None),
    "starcoder2_window": ("starcoder2", {"sliding_window": WINDOW, **rope(DEFAULT)}, None),
    "stablelm_bias": ("stablelm", {"use_qkv_bias": True, **partial(1 / 3)}, "stablelm"),
    "smollm3_default": ("smollm3", {"no_rope_layers": [1, 0, 1], **rope(DEFAULT)}, None),
    "exaone4_window": ("exaone4", {"sliding_window": WINDOW, "layer_types": MIXED, **rope(DEFAULT)}, None),
    "cohere2_window": ("cohere2", {"sliding_window": WINDOW, "layer_types": MIXED, "logit_scale": 0.25,
                                   **rope(DEFAULT)}, None),
    "olmoe_clip": ("olmoe", {"num_experts": 6, "num_experts_per_tok": 3, "clip_qkv": 0.9, **rope(DEFAULT)}, "olmoe"),
    "phi_qk_layernorm": ("phi", {"qk_layernorm": True, **partial(0.5)}, None),
    "stablelm_parallel": ("stablelm", {"use_parallel_residual": True, "qk_layernorm": True, **partial(1 / 3)}, "stablelm"),
    "ministral3_default": ("ministral3", {"head_dim": 16, **rope({
        **YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}, 1e6)}, "mistral3"),
    "hunyuan_v1_dense_alpha": ("hunyuan_v1_dense", {"head_dim": 20, **rope(ALPHA)}, "hunyuan-dense"),
    "hunyuan_v1_moe_default": ("hunyuan_v1_moe", {"head_dim": 16, "num_experts": 6, "moe_topk": 3, **rope(DEFAULT)},
                               "hunyuan-moe"),
    "gpt_oss_default": ("gpt_oss", {**GPT_OSS, **rope(YARN_HALVES)}, "gpt-oss"),
    "gpt_oss_limit": ("gpt_oss", {**GPT_OSS, "swiglu_limit": 0.5, **rope(YARN_HALVES)}, None),
    "smollm3_every_fourth": ("smollm3", {"num_hidden_layers": 4, **rope(DEFAULT)}, "smollm3"),
    "exaone4_every_fourth": ("exaone4", {"num_hidden_layers": 4, "sliding_window": WINDOW, **rope(DEFAULT)}, "exaone4"),
    "cohere2_every_fourth": ("cohere2", {"num_hidden_layers": 4, "sliding_window": WINDOW, **rope(DEFAULT)}, "cohere2"),
    "starcoder2_full": ("starcoder2", {"sliding_window": None, **rope(DEFAULT)}, "starcoder2"),
    "ernie4_5_moe_default": ("ernie4_5_moe", {
        "moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 24, "moe_layer_start_index": 1, **rope(DEFAULT, 5e5)},
                             "ernie4_5-moe"),
    "qwen3_next_default": ("qwen3_next", {**QWEN3_NEXT, "mlp_only_layers": [1], **partial(0.25)}, "qwen3next"),
    "qwen3_5_default": ("qwen3_5", qwen3_5(partial(0.25)), "qwen35"),
    "qwen3_5_moe_default": ("qwen3_5_moe", qwen3_5({**QWEN2_MOE, **partial(0.25)}, "qwen3_5_moe"), "qwen35moe"),
    "lfm2_default": ("lfm2", {**LFM2, "block_multiple_of": 8, "block_ffn_dim_multiplier": 1.25, **rope(DEFAULT)}, "lfm2"),
    "lfm2_moe_default": ("lfm2_moe", {**LFM2, "num_dense_layers": 1, "num_experts": 6, "num_experts_per_tok": 3,
                                      "moe_intermediate_size": 24, **rope(DEFAULT)}, "lfm2moe"),
    "granitemoehybrid_default": ("granitemoehybrid", {
        **GRANITE, **MAMBA, "num_local_experts": 5, "num_experts_per_tok": 2, "shared_intermediate_size": 40,
        "layer_types": ["mamba", "attention", "mamba"], "time_step_limit": [0.0, 0.75]}, None),
    "granitemoehybrid_rope": ("granitemoehybrid", {
        **GRANITE, **MAMBA, "num_local_experts": 0, "shared_intermediate_size": 40, "position_embedding_type": "rope",
        "layer_types": ["mamba", "attention", "mamba"], **rope(DEFAULT)}, "granitehybrid"),
    "granitemoehybrid_experts": ("granitemoehybrid", {
        **GRANITE, **MAMBA, "num_local_experts": 5, "num_experts_per_tok": 2, "shared_intermediate_size": 40,
        "layer_types": ["mamba", "attention", "mamba"]}, "granitehybrid"),
    "nemotron_h_latent": ("nemotron_h", {**NEMOTRON, **NEMOTRON_MOE}, None),
    "nemotron_h_default": ("nemotron_h", {
        **NEMOTRON, "time_step_min": 0.001, "layers_block_type": ["linear_attention", "mlp", "full_attention"]}, "nemotron_h"),
    "nemotron_h_experts": ("nemotron_h", {**NEMOTRON, **NEMOTRON_MOE, "time_step_min": 0.001}, "nemotron_h_moe"),
    "falcon_h1_default": ("falcon_h1", {**FALCON, **rope(DEFAULT)}, None),
    "falcon_h1_plain": ("falcon_h1", {**FALCON, "mamba_rms_norm": False, **rope(DEFAULT)}, "falcon-h1"),
    "falcon_h1_last_norm": ("falcon_h1", {**FALCON, "mamba_norm_before_gate": False, **rope(DEFAULT)}, "falcon-h1"),
    "gemma3n_default": ("gemma3n_text", GEMMA3N, "gemma3n"),
    "llama4_default": ("llama4_text", {**LLAMA4, **rope(LLAMA3, 5e5)}, "llama4"),
    "deepseek_v2_groups": ("deepseek_v2", {**LATENT, "q_lora_rank": None, "topk_method": "group_limited_greedy",
                                           "first_k_dense_replace": 1, **rope(YARN_MSCALE)}, None),
    "deepseek_v2_yarn": ("deepseek_v2", {**LATENT, "q_lora_rank": None, "attention_bias": False, "topk_method": "greedy",
                                         "first_k_dense_replace": 1, **rope(YARN_LATENT)}, "deepseek2"),
    "deepseek_v3_default": ("deepseek_v3", {**LATENT, "first_k_dense_replace": 1, **rope(YARN_MSCALE)}, None),
    "deepseek_v3_yarn": ("deepseek_v3", {**LATENT, "attention_bias": False, "first_k_dense_replace": 1,
                                         **rope(YARN_LATENT)}, "deepseek2"),
    "deepseek_v32_index": ("deepseek_v32", {**LATENT, **INDEX, "first_k_dense_replace": 1, **rope(DEFAULT)}, None),
    "glm_moe_dsa_shared": ("glm_moe_dsa", {**LATENT, **INDEX, "first_k_dense_replace": 1, **rope(DEFAULT),
                                           "indexer_types": ["full", "shared", "full"]}, None),
    "glm_moe_dsa_index": ("glm_moe_dsa", {**LATENT, **INDEX, "attention_bias": False, "first_k_dense_replace": 1,
                                          **rope(DEFAULT)}, "glm-dsa"),
    "glm4_moe_lite_halves": ("glm4_moe_lite", {**LATENT, "rope_interleave": False,
                                               "mlp_layer_types": ["sparse", "dense", "sparse"], **rope(DEFAULT)}, None),
    "mistral4_default": ("mistral4", {**LATENT, "norm_topk_prob": False, **rope({
        **YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1})}, "mistral4"),
    "qwen3_moe_step": ("qwen3_moe", {**QWEN_MOE, "head_dim": 16, "decoder_sparse_step": 2, **rope(YARN)}, None),
}

# Configs as Transformers 4 wrote them, or without a class's defaults: name → (combination, keys to drop, keys to set).
OLD_SPELLINGS = {
    "llama_linear_old": ("llama_linear", ["rope_parameters"],
                         {"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    "mistral_eight_heads_unsaid": ("mistral_eight_heads", ["num_key_value_heads"], {}),
    "gemma3_linear_old": ("gemma3_linear", ["rope_parameters"],
                          {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
                           "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "gpt_neox_linear_old": ("gpt_neox_linear", ["rope_parameters"],
                            {"rotary_pct": 0.5, "rotary_emb_base": 10000,
                             "rope_scaling": {"type": "linear", "factor": 4.0}}),
    "phi3_longrope_old": ("phi3_longrope", ["rope_parameters"],
                          {"rope_theta": 10000.0, "rope_scaling": {
                              "type": "su", **{key: longrope(8, 64)[key] for key in ("short_factor", "long_factor")}}}),
}

GOLDEN = {"olmoe": "olmoe_clip", "phi_qk_layernorm": "phi_qk_layernorm", "stablelm_parallel": "stablelm_parallel",
          "ministral3": "ministral3_default", "hunyuan_v1_dense": "hunyuan_v1_dense_alpha",
          "hunyuan_v1_moe": "hunyuan_v1_moe_default", "gpt_oss": "gpt_oss_limit",
          "seed_oss": "seed_oss_default", "granite": "granite_default", "granitemoe": "granitemoe_default",
          "ernie4_5": "ernie4_5_bias", "glm4": "glm4_default", "glm4_moe": "glm4_moe_groups",
          "minimax_m2": "minimax_m2_default", "olmo3": "olmo3_window", "phi": "phi_default",
          "starcoder2": "starcoder2_window", "stablelm": "stablelm_bias", "smollm3": "smollm3_default",
          "exaone4": "exaone4_window", "cohere2": "cohere2_window",
          "llama": "llama_yarn", "mistral": "mistral_default", "qwen2": "qwen2_default", "qwen3": "qwen3_linear",
          "gemma2": "gemma2_default", "gemma3": "gemma3_linear", "phi3": "phi3_longrope", "olmo2": "olmo2_llama3",
          "gpt_neox": "gpt_neox_dynamic", "gemma4_shared": "gemma4_shared", "gemma4_one_row": "gemma4_one_row",
          "gemma4_experts": "gemma4_experts", "gemma3_composite": "gemma3_composite", "qwen3_vl": "qwen3_vl_default",
          "qwen3_next": "qwen3_next_default", "qwen3_5": "qwen3_5_default", "qwen3_5_moe": "qwen3_5_moe_default",
          "lfm2": "lfm2_default", "lfm2_moe": "lfm2_moe_default", "granitemoehybrid": "granitemoehybrid_default",
          "nemotron_h": "nemotron_h_latent", "falcon_h1": "falcon_h1_default",
          "mixtral": "mixtral_window", "qwen2_moe": "qwen2_moe_window", "qwen3_moe": "qwen3_moe_dense",
          "deepseek_v2": "deepseek_v2_groups", "deepseek_v3": "deepseek_v3_default",
          "deepseek_v32": "deepseek_v32_index", "glm_moe_dsa": "glm_moe_dsa_shared",
          "glm4_moe_lite": "glm4_moe_lite_halves", "mistral4": "mistral4_default",
          "phi_tied": "phi_tied", "ernie4_5_moe": "ernie4_5_moe_bias",
          "llama4": "llama4_default", "gemma3n": "gemma3n_default"}


def formula(name, shape, kind):
    """f32 values in (-1, 1): splitmix64 of FNV-1a of the tensor's name plus the index, its top 24 bits; scaled."""
    seed = 0xcbf29ce484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z = z ^ (z >> np.uint64(31))
    values = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0 ** -23) - np.float32(1)
    if len(shape) == 2:  # about unit gain: uniform values have variance 1/3
        return (values * np.float32(2.0 / np.sqrt(np.float64(shape[1])))).reshape(shape)
    unscaled = kind.startswith(("gemma3n", "gemma4"))
    less_one = kind.startswith("gemma") and not unscaled  # Gemma 2 and 3 add the 1 themselves
    if "norm" in name and not name.endswith("bias") and not less_one:
        gain = np.float32(1) + np.float32(0.25) * values
        # Gemma 3n and 4 do not scale scores: gains around 1 would make them so large that rounding decides.
        half = unscaled and name.endswith(("q_norm.weight", "k_norm.weight"))
        return np.float32(0.5) * gain if half else gain
    return (np.float32(0.25) * values).reshape(shape)


def expert_parts(name, value, kind):
    """Yields (name in the file, part of value) of each expert for a parameter that holds all experts."""
    base, part = name.rsplit(".", 1)
    gate, up, down = ("w1", "w3", "w2") if kind in ("mixtral", "minimax_m2", "lfm2_moe") else ("gate_proj", "up_proj", "down_proj")
    for expert, matrix in enumerate(value):
        whole = {"down_proj": down, "up_proj": up}.get(part)
        parts = {whole: matrix} if whole else dict(zip((gate, up), matrix.chunk(2)))
        for key, rows in parts.items():
            yield f"{base}.{expert}.{key}.weight", rows


def stored_tensors(model):
    """Yields (name in the file, parameter or the part of one that the file stores by that name)."""
    kind = model.config.model_type
    biases = [(name, buffer) for name, buffer in model.named_buffers()
              if name.endswith(("e_score_correction_bias", "expert_bias", "layer_scalar"))]
    for name, parameter in [*model.named_parameters(), *biases]:
        if kind in ("mixtral", "minimax_m2"):
            name = name.replace(".mlp.", ".block_sparse_moe.")
        if kind == "ernie4_5_moe":
            name = name.replace(".mlp.gate.moe_statics.", ".mlp.moe_statics.")
        if kind == "nemotron_h":
            name = name.replace("model.", "backbone.")
        if kind in ("granitemoe", "granitemoehybrid"):  # one tensor for all experts
            for part, stored in (("experts.gate_up_proj", "input_linear.weight"),
                                 ("experts.down_proj", "output_linear.weight"), ("router.weight", "router.layer.weight")):
                name = name.replace("block_sparse_moe." + part, "block_sparse_moe." + stored)
        if ".experts." in name and kind not in ("gpt_oss", "gemma4_text", "mistral4", "qwen3_5_moe", "llama4_text"):  # one tensor for all experts
            yield from expert_parts(name, parameter, kind)
        else:
            yield name, parameter


def make_model(name):
    kind, options, _ = COMBINATIONS[name]
    composite = "text_config" in options
    options = copy.deepcopy(options if composite else {**common(), **options})
    if not composite and options["num_key_value_heads"] is None:
        del options["num_key_value_heads"]
    if kind == "phi3":
        options["resid_pdrop"] = options["embd_pdrop"] = 0.0
    config = AutoConfig.for_model(kind, **options)
    family = AutoModelForImageTextToText if composite else AutoModelForCausalLM
    make = Mistral4ForCausalLM._from_config if kind == "mistral4" else family.from_config  # not an automatic class
    model = make(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for stored_name, values in stored_tensors(model):
            values.copy_(torch.from_numpy(formula(stored_name, tuple(values.shape), kind)))
    return model


def tokens():
    return [int(t) for t in np.random.default_rng(7).integers(0, VOCABULARY, TOKENS)]


def rotating_layers(config):
    if config.model_type in ("smollm3", "llama4_text"):
        return [layer for layer, rotates in enumerate(config.no_rope_layers) if rotates]
    if config.model_type in ("exaone4", "cohere2"):
        return [layer for layer, kind in enumerate(config.layer_types) if kind == "sliding_attention"]
    if config.model_type == "nemotron_h" or getattr(config, "position_embedding_type", "rope") != "rope":
        return []
    if recurrent_layers(config) and config.model_type != "falcon_h1":
        return [layer for layer, kind in enumerate(config.layer_types) if kind == "full_attention"]
    return list(range(config.num_hidden_layers - getattr(config, "num_kv_shared_layers", 0)))


def recurrent_layers(config):
    if config.model_type == "falcon_h1":
        return list(range(config.num_hidden_layers))
    return [layer for layer, kind in enumerate(getattr(config, "layer_types", None) or []) if kind in RECURRENT]


@torch.inference_mode()
def filled_cache(model, ids):
    cache = DynamicCache(config=model.config.get_text_config())
    model(torch.tensor([ids]), cache=cache, use_cache=True)
    return cache


def recurrent_state(model, cache, layer):
    """Returns the state of a recurrent layer: its matrices [head, key, value] or None, and its convolution's inputs
    [tap, channel]."""
    held = [getattr(cache.layers[layer], name, None) for name in ("recurrent_states", "conv_states")]
    memory, inputs = (each.get(0) if isinstance(each, dict) else each for each in held)
    if memory is not None:
        memory = memory[0] if "qwen" in model.config.model_type else memory[0].transpose(-1, -2)
    return memory, inputs[0].T


# Heads share one key that rotates.
LATENT_CLASSES = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "mistral4")


def rotation_name(config):
    """Returns the function of a class's module that rotates queries and keys."""
    if config.model_type == "deepseek_v2":
        return "apply_rotary_emb"
    adjacent = config.model_type in LATENT_CLASSES and getattr(config, "rope_interleave", True)  # given adjacent, returned as halves
    return "apply_rotary_pos_emb_interleave" if adjacent else "apply_rotary_pos_emb"


@torch.inference_mode()
def run(model, ids):
    """Returns logits [token, vocabulary], NLL, and per rotating layer k_pre and k_post [kv_head, token, head_dim] of one
    pass."""
    module = __import__(type(model).__module__, fromlist=["apply_rotary_pos_emb"])
    rotation = rotation_name(model.config)
    plain, keys = getattr(module, rotation, None), []

    def in_halves(rows, cosine, given=False):
        if model.config.model_type not in ADJACENT and not (given and rotation.endswith("interleave")):
            return rows[0].clone()
        whole = model.config.model_type in LATENT_CLASSES
        turned = rows.shape[-1] if whole else cosine.shape[-1] if model.config.model_type != "glm4" else rows.shape[-1] // 2
        return torch.cat([rows[0, ..., 0:turned:2], rows[0, ..., 1:turned:2], rows[0, ..., turned:]], -1)

    norms = [module for name, module in model.named_modules() if name.endswith(".key_layernorm")]  # after RoPE

    def recording(q, k, *arguments, **options):
        rotated = plain(q, k, *arguments, **options)
        if options.get("unsqueeze_dim") == 2:  # an index's
            return rotated
        post = norms[len(keys)](rotated[1]) if norms else rotated[1]
        keys.append((in_halves(k, arguments[0], given=True), in_halves(post, arguments[0])))
        return rotated

    def recording_one(states, *arguments, **options):
        rotated = plain(states, *arguments, **options)
        calls.append((states[0].transpose(0, 1).clone(), rotated[0].transpose(0, 1)))
        return rotated

    def recording_complex(q, k, *arguments, **options):
        rotated = complex_rope(q, k, *arguments, **options)
        post = rotated[1] / torch.sqrt(rotated[1].square().mean(-1, keepdim=True) + model.config.rms_norm_eps)
        keys.append(tuple(in_halves(each.transpose(1, 2), each) for each in (k, post)))
        return rotated

    calls, by_one = [], model.config.model_type in ("gemma3n_text", "gemma4_text")
    scout = model.config.model_type == "llama4_text"
    complex_rope = getattr(module, "apply_rotary_emb", None)  # of states [member, token, head, channel]
    if scout:
        module.apply_rotary_emb = recording_complex
    else:
        setattr(module, rotation, recording_one if by_one else recording)
    try:
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].float()
    finally:
        if scout:
            module.apply_rotary_emb = complex_rope
        else:
            setattr(module, rotation, plain)
    if by_one:  # queries, then keys, of each layer with keys; then queries of the others
        keys = calls[1:2 * len(rotating_layers(model.config)):2]
    assert len(keys) == len(rotating_layers(model.config.get_text_config()))
    nll = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    return logits, nll, keys
