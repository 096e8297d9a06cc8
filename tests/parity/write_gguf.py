#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF of a tiny model with llama.cpp's keys, tensor names and row orders, by the gguf package, weights in
F32.

Usage: write_gguf.py [--joined] [--each] FOLDER OUT.gguf   (FOLDER: config.json and safetensors, as Transformers reads
them)
--joined: Qwen 3 Next's projections in one tensor, as older converters wrote them
--each: a tensor for each expert, as converters before April 2024 wrote Mixtral
"""
import math
import sys

import gguf
import numpy as np
import torch

import gguf_gemma3n
import gguf_gemma4
import gguf_recurrent

# model_type in config.json → general.architecture
ARCHITECTURES = {
    "cohere2": "cohere2", "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2", "glm4_moe_lite": "deepseek2",
    "glm_moe_dsa": "glm-dsa", "mistral4": "mistral4", "ernie4_5": "ernie4_5", "ernie4_5_moe": "ernie4_5-moe", "exaone4": "exaone4",
    "falcon_h1": "falcon-h1", "gemma2": "gemma2", "gemma3_text": "gemma3", "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4", "glm4": "glm4", "glm4_moe": "glm4moe", "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss", "granite": "granite", "granitemoe": "granitemoe", "hunyuan_v1_dense": "hunyuan-dense",
    "hunyuan_v1_moe": "hunyuan-moe", "internlm3": "llama", "llama": "llama", "llama4_text": "llama4", "minimax_m2": "minimax-m2",
    "ministral3": "mistral3", "mistral": "llama", "mixtral": "llama", "olmo2": "olmo2", "olmo3": "olmo2",
    "olmoe": "olmoe", "phi": "phi2", "phi3": "phi3", "qwen2": "qwen2", "qwen2_moe": "qwen2moe", "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe", "qwen3_vl_text": "qwen3vl", "qwen3_vl_moe_text": "qwen3vlmoe", "seed_oss": "seed_oss",
    "smollm3": "smollm3", "stablelm": "stablelm", "starcoder2": "starcoder2", "granitemoehybrid": "granitehybrid",
    "lfm2": "lfm2", "lfm2_moe": "lfm2moe", "nemotron_h": "nemotron_h_moe", "qwen3_next": "qwen3next",
    "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe"}
RECURRENT = ("falcon-h1", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe", "qwen3next", "qwen35",
             "qwen35moe")
# RoPE pairs are neighbouring rows in the file, halves of a head in Transformers.
LATENT = {"deepseek2", "glm-dsa", "mistral4"}
SOFTMAX = {"deepseek_v2", "mistral4"}  # experts' scores
ADJACENT_IN_FILE = {"llama", "mistral3", "smollm3", "granite", "granitemoe", "granitehybrid"}
OTHER_PARTS = ("visual.", "vision_tower.", "vision_model.", "multi_modal_projector.", "audio_tower.", "embed_vision.",
               "embed_audio.")
TRANSPOSED = ("gpt_oss", "llama4_text")  # tensors of all experts


def adjacent_pairs(weight, heads):
    """Reorders rows of each head from (half, chunk) to (chunk, half), as llama.cpp's converter stores Llama's W_q
    and W_k."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def head_by_head_to_parts(weight, heads):
    """Reorders GPT-NeoX's rows [head, (q, k, v), channel] to [q of all heads | k | v]."""
    parts = weight.reshape(heads, 3, weight.shape[0] // heads // 3, *weight.shape[1:])
    return parts.swapaxes(0, 1).reshape(weight.shape)


def value_of(architecture, name, data, config):
    if architecture in ADJACENT_IN_FILE:
        for key, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if key in name:
                return adjacent_pairs(data, heads)
    if architecture in RECURRENT:
        return gguf_recurrent.values_of(architecture, name, data, config)
    if architecture in ("gemma2", "gemma3") and "norm" in name:
        return data + np.float32(1)
    if architecture == "gptneox" and "query_key_value" in name:
        return head_by_head_to_parts(data, config.num_attention_heads)
    return data


def first_of(config, *names):
    """Returns the first attribute that the config has with another value than None."""
    return next((value for value in (getattr(config, name, None) for name in names) if value is not None), None)


def add_latent(writer, config, joined):
    """@param joined  True: the keys of files of before the absorbed form"""
    head, value = config.qk_nope_head_dim + config.qk_rope_head_dim, config.v_head_dim
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank:
        writer.add_q_lora_rank(config.q_lora_rank)
    if joined:
        writer.add_key_length(head)
        writer.add_value_length(value)
    else:
        writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
        writer.add_value_length(config.kv_lora_rank)
        writer.add_key_length_mla(head)
        writer.add_value_length_mla(value)
    if getattr(config, "index_topk", None):
        writer.add_indexer_head_count(config.index_n_heads)
        writer.add_indexer_key_length(config.index_head_dim)
        writer.add_indexer_top_k(config.index_topk)
    if not getattr(config, "rope_interleave", True):
        raise ValueError("found RoPE pairs in halves, which the converter does not write")


def heads_of_latent(name, data, config):
    """Yields (name in the file, values [head, row, column]) of W_k, transposed, and W_v."""
    layer = name.split(".layers.")[1].split(".")[0]
    heads = data.reshape(config.num_attention_heads, -1, config.kv_lora_rank)
    yield f"blk.{layer}.attn_k_b.weight", heads[:, :config.qk_nope_head_dim].swapaxes(1, 2)
    yield f"blk.{layer}.attn_v_b.weight", heads[:, config.qk_nope_head_dim:]


def add_experts(writer, architecture, config):
    width = first_of(config, "moe_intermediate_size") or config.intermediate_size
    writer.add_expert_count(first_of(config, "n_routed_experts", "moe_num_experts", "num_local_experts", "num_experts"))
    writer.add_expert_used_count(first_of(config, "moe_k", "moe_topk", "top_k_experts", "num_experts_per_tok"))
    writer.add_expert_feed_forward_length(width)
    shared = first_of(config, "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                      "shared_intermediate_size")
    count = first_of(config, "n_shared_experts", "moe_num_shared_experts")
    if architecture == "hunyuan-moe":
        shared = config.intermediate_size
    if count:
        writer.add_expert_shared_count(count)
        shared = shared or count * width
    if shared:
        writer.add_expert_shared_feed_forward_length(shared)
    latent = architecture in LATENT
    if architecture in ("glm4moe", "minimax-m2", "lfm2moe") or (latent and config.model_type not in SOFTMAX):
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if latent and config.model_type in SOFTMAX:
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
    if architecture in ("glm4moe", "lfm2moe") or latent:
        kinds = getattr(config, "mlp_layer_types", None) or []
        writer.add_leading_dense_block_count(
            kinds.index("sparse") if kinds else first_of(config, "first_k_dense_replace", "num_dense_layers"))
    if getattr(config, "moe_latent_size", None):
        writer.add_moe_latent_size(config.moe_latent_size)
    if architecture in ("glm4moe", "nemotron_h_moe") or latent:
        writer.add_expert_weights_norm(config.norm_topk_prob and config.model_type != "deepseek_v2")
        writer.add_expert_weights_scale(config.routed_scaling_factor)
    if architecture in ("glm4moe", "nemotron_h_moe") or (latent and config.n_group and getattr(config, "topk_method", "") != "greedy"):
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)
    if architecture == "ernie4_5-moe":
        writer.add_leading_dense_block_count(config.moe_layer_start_index)
        writer.add_interleave_moe_layer_step(config.moe_layer_interval)
    if architecture == "llama4":
        writer.add_interleave_moe_layer_step(config.interleave_moe_layer_step)


def expert_tensors(name, data, config):
    """Yields (name in the file, values [expert, output, input] or biases [expert, output]) of a tensor of all experts."""
    layer = name.split(".layers.")[1].split(".")[0]
    part, bias = name.rsplit(".", 1)[1], name.endswith("_bias")
    ending = "bias" if bias else "weight"
    if config.model_type in TRANSPOSED and not bias:
        data = data.swapaxes(1, 2)
    if part.startswith(("down_proj", "up_proj")):
        yield f"blk.{layer}.ffn_{part.split('_')[0]}_exps.{ending}", data
        return
    halves = (data[:, ::2], data[:, 1::2]) if config.model_type == "gpt_oss" else np.split(data, 2, axis=1)
    for key, rows in zip(("gate", "up"), halves):
        yield f"blk.{layer}.ffn_{key}_exps.{ending}", rows


def special_tensors(architecture, name, data, config, joined):
    """Yields (name in the file, values) of a tensor that this architecture holds in another way than most."""
    if architecture == "gemma3n":
        yield from gguf_gemma3n.tensors_of(name, data, config)
    elif architecture == "gemma4" and ".layers." in name:
        yield from gguf_gemma4.tensors_of(name, data)
    elif architecture in RECURRENT and ".experts." not in name:
        yield from gguf_recurrent.tensors_of(architecture, name, data, config, joined)


def file_tensors(model, architecture, config, names, joined):
    """Yields (name in Transformers, name in the file, values)."""
    correction = [(name, value) for name, value in model.named_buffers()
                  if name.endswith(("e_score_correction_bias", "expert_bias", "layer_scalar"))]
    of_heads = {}
    for name, parameter in [*model.named_parameters(), *correction]:
        data, name = parameter.detach().numpy(), name.replace("language_model.", "")
        layer = name.split(".layers.")[1].split(".")[0] if ".layers." in name else ""
        if any(part in name for part in OTHER_PARTS) or (architecture == "gemma3n" and gguf_gemma3n.is_stacked(name)):
            continue
        special = list(special_tensors(architecture, name, data, config, joined))
        if special:
            for target, values in special:
                yield None, target, values
        elif ".experts." in name:
            for target, values in expert_tensors(name, data, config):
                yield name, target, values
        elif "kv_b_proj" in name and not joined:
            for target, values in heads_of_latent(name, data, config):
                yield name, target, values
        elif "e_score_correction_bias" in name:
            yield name, f"blk.{layer}.exp_probs_b.bias", data.flatten()
        elif name.endswith(".sinks"):
            yield name, f"blk.{layer}.attn_sinks.weight", data
        elif "block_sparse_moe.router" in name:
            yield name, f"blk.{layer}.ffn_gate_inp.weight", data
        elif ".norms." in name:  # StableLM: a gain for each head
            of_heads.setdefault(f"blk.{layer}.attn_{'q' if 'q_layernorm' in name else 'k'}_norm.weight", []).append(data)
        else:
            yield name, names.get_name(name, try_suffixes=(".weight", ".bias")), data
    for target, gains in of_heads.items():
        yield target, target, np.stack(gains)
    if architecture == "gemma3n":
        for target, values in gguf_gemma3n.stacked_tensors(model):
            yield None, target, values


def add_rope(writer, architecture, config, model, head_dim):
    rope = getattr(config, "rope_parameters", None)
    if architecture == "gemma4" or not rope:  # gguf_gemma4.add_gemma4; Nemotron-H
        return
    if architecture in ("gemma3", "gemma3n"):
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    rope = rope.get("full_attention", rope)
    kind, theta = rope["rope_type"], rope["rope_theta"]
    if rope.get("alpha") and kind == "dynamic":  # Hunyuan
        kind, theta = "default", theta * rope["alpha"] ** (head_dim / (head_dim - 2))
    writer.add_rope_freq_base(theta)
    writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if rope.get("attention_factor"):  # a factor of YaRN's own
            writer.add_rope_scaling_attn_factors(rope["attention_factor"] / (0.1 * math.log(rope["factor"]) + 1))
        for name, add in (("beta_fast", writer.add_rope_scaling_yarn_beta_fast),
                          ("beta_slow", writer.add_rope_scaling_yarn_beta_slow)):
            if rope.get(name):
                add(rope[name])
    elif kind == "llama3":
        plain = 1.0 / (theta ** (torch.arange(0, head_dim, 2).float() / head_dim))
        turning = next(module for name, module in model.named_modules()
                       if name.endswith("rotary_emb") and not any(part in name for part in OTHER_PARTS))
        writer.add_tensor("rope_freqs.weight", (plain / turning.inv_freq).numpy())
    elif kind == "longrope":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_attn_factors(model.model.rotary_emb.attention_scaling)
        for length in ("long", "short"):
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], dtype=np.float32))
    elif kind != "default":
        raise ValueError(f"found RoPE {kind}, which a GGUF cannot express")
    if architecture in LATENT and kind == "yarn" and rope.get("mscale_all_dim"):
        writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
    if architecture == "mistral4":
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if architecture == "mistral3" and "llama_4_scaling_beta" in rope:
        writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])


def add_chunks(writer, config):
    """Adds what llama.cpp has constants for, in the keys of Ollama's converter and reader."""
    if config.attn_scale != 0.1 or config.no_rope_layers != [int((layer + 1) % 4 != 0)
                                                             for layer in range(config.num_hidden_layers)]:
        raise ValueError("found layers or temperatures that a GGUF of llama4 does not state")
    writer.add_uint32("llama4.attention.chunk_size", config.attention_chunk_size)
    writer.add_uint32("llama4.attention.floor_scale", config.floor_scale)
    writer.add_bool("llama4.attention.temperature_tuning", bool(config.attn_temperature_tuning))
    writer.add_bool("llama4.use_qk_norm", config.use_qk_norm)


def add_attention(writer, architecture, config):
    windowed = "sliding_attention" in (getattr(config, "layer_types", None) or [])
    if architecture in ("gemma2", "gemma3", "cohere2", "exaone4", "gpt-oss", "olmo2") and windowed:
        writer.add_sliding_window(config.sliding_window)
    elif getattr(config, "sliding_window", None) and config.model_type in ("starcoder2", "mistral", "ministral3"):
        raise ValueError(f"found a window, which a GGUF of {architecture} does not state")
    if architecture in ("gemma3", "olmo2") and windowed:
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if architecture == "olmoe" and config.clip_qkv:
        writer.add_clamp_kqv(config.clip_qkv)
    if architecture in ("gptneox", "stablelm"):
        writer.add_parallel_residual(config.use_parallel_residual)
    if architecture in ("granite", "granitemoe", "granitehybrid"):
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if architecture == "cohere2":
        writer.add_logit_scale(config.logit_scale)
    if architecture == "llama4":
        add_chunks(writer, config)


def add_layer_sizes(writer, architecture, config):
    """Adds the sizes of layers that are not alike, or of all."""
    if architecture == "gemma4":
        return gguf_gemma4.add_gemma4(writer, config)
    if architecture == "gemma3n":
        gguf_gemma3n.add_gemma3n(writer, config)
    if architecture in RECURRENT:
        gguf_recurrent.add_sizes(writer, architecture, config)
    if architecture != "gptneox":
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)


def feed_forward_width(model, config):
    """Returns the width of the dense blocks, as the tensors have it."""
    for name, parameter in model.named_parameters():
        if name.endswith(("feed_forward.w1.weight", "shared_mlp.input_linear.weight")):
            return parameter.shape[0] // (2 if "shared" in name else 1)
    return first_of(config, "intermediate_size_mlp", "intermediate_size")


def one_by_one(target, values):
    """Yields (name in the file, values) of each expert."""
    for expert, part in enumerate(values):
        yield target.replace("_exps.", f".{expert}."), part


def write_gguf(model, architecture, path, add_tokenizer=None, joined=False, each=False):
    """@param add_tokenizer  called with the writer, to add keys of a tokenizer
    @param joined  projections in one tensor, as in older files of Qwen 3 Next and DeepSeek V2
    @param each  a tensor for each expert"""
    config = model.config.get_text_config()
    joined = joined or config.model_type == "deepseek_v2"
    if architecture == "gemma4":
        config.allow_global_per_layer_attribute_access = True
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny " + architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    if getattr(config, "intermediate_size", None):
        writer.add_feed_forward_length(feed_forward_width(model, config))
    writer.add_head_count(config.num_attention_heads)
    kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    writer.add_head_count_kv(1 if architecture in LATENT and not joined else kv_heads)
    writer.add_vocab_size(config.vocab_size)
    if architecture in RECURRENT or hasattr(config, "rms_norm_eps"):
        writer.add_layer_norm_rms_eps(first_of(config, "rms_norm_eps", "norm_eps", "layer_norm_epsilon"))
    else:
        writer.add_layer_norm_eps(first_of(config, "layer_norm_eps", "norm_epsilon"))
    if architecture in LATENT:
        add_latent(writer, config, joined)
    else:
        add_layer_sizes(writer, architecture, config)
    add_attention(writer, architecture, config)
    has_experts = first_of(config, "n_routed_experts", "moe_num_experts", "num_local_experts", "num_experts")
    if has_experts and architecture != "nemotron_h":
        add_experts(writer, architecture, config)
    add_rope(writer, architecture, config, model, head_dim)
    if add_tokenizer:
        add_tokenizer(writer)
    kind = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[architecture]
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for name, target, data in file_tensors(model, architecture, config, names, joined):
        if target is None:
            raise ValueError(f"found {name}, which has no name in a GGUF of {architecture}")
        values = data if name is None else value_of(architecture, name, data, config)
        for whole, part in one_by_one(target, values) if each and "_exps." in target else [(target, values)]:
            writer.add_tensor(whole, np.ascontiguousarray(part, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, Mistral4ForCausalLM
    joined, each = ("--" + word in sys.argv for word in ("joined", "each"))
    folder, path = sys.argv[1 + joined + each:]
    config = AutoConfig.from_pretrained(folder)
    family = AutoModelForImageTextToText if hasattr(config, "text_config") else AutoModelForCausalLM
    if config.model_type == "mistral4":  # not an automatic class
        family = Mistral4ForCausalLM
    model = family.from_pretrained(folder, dtype=torch.float32)
    write_gguf(model, ARCHITECTURES[config.get_text_config().model_type], path, joined=joined, each=each)


if __name__ == "__main__":
    main()
