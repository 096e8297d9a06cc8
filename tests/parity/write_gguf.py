"""Writes a GGUF of a tiny model with llama.cpp's keys, tensor names and row orders, by the gguf package, weights in
F32."""
import gguf
import numpy as np
import torch


def adjacent_pairs(weight, heads):
    """Reorders rows of each head from (half, chunk) to (chunk, half), as llama.cpp's converter stores Llama's W_q
    and W_k."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def head_by_head_to_parts(weight, heads):
    """Reorders GPT-NeoX's rows [head, (q, k, v), channel] to [q of all heads | k | v]."""
    parts = weight.reshape(heads, 3, weight.shape[0] // heads // 3, *weight.shape[1:])
    return parts.swapaxes(0, 1).reshape(weight.shape)


def value_of(architecture, name, data, config):
    if architecture == "llama":
        for key, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if key in name:
                return adjacent_pairs(data, heads)
    if architecture.startswith("gemma") and "norm" in name:
        return data + np.float32(1)
    if architecture == "gptneox" and "query_key_value" in name:
        return head_by_head_to_parts(data, config.num_attention_heads)
    return data


def add_experts(writer, config):
    writer.add_expert_count(config.num_local_experts if hasattr(config, "num_local_experts") else config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    if hasattr(config, "moe_intermediate_size"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if hasattr(config, "shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def file_tensors(model):
    """Yields (name in Transformers, values): of all experts, gate and up projections apart."""
    for name, parameter in model.named_parameters():
        data = parameter.detach().numpy()
        if name.endswith("experts.gate_up_proj"):
            for part, rows in zip(("gate_proj", "up_proj"), np.split(data, 2, axis=1)):
                yield name.replace("gate_up_proj", part + ".weight"), rows
        else:
            yield name + ".weight" if name.endswith("experts.down_proj") else name, data


def add_rope(writer, architecture, config, model, head_dim):
    rope = config.rope_parameters
    if architecture == "gemma3":
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    rotary_dim = int(head_dim * rope.get("partial_rotary_factor", 1.0))
    writer.add_rope_dimension_count(rotary_dim)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif rope["rope_type"] == "llama3":
        plain = 1.0 / (rope["rope_theta"] ** (torch.arange(0, head_dim, 2).float() / head_dim))
        writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.original_inv_freq).numpy())
    elif rope["rope_type"] == "longrope":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_attn_factors(model.model.rotary_emb.attention_scaling)
        for length in ("long", "short"):
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], dtype=np.float32))


def write_gguf(model, architecture, path, add_tokenizer=None):
    """@param add_tokenizer  called with the writer, to add keys of a tokenizer"""
    config = model.config
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny " + architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    if architecture == "gptneox":
        writer.add_layer_norm_eps(config.layer_norm_eps)
        writer.add_parallel_residual(config.use_parallel_residual)
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if architecture in ("gemma2", "gemma3"):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if hasattr(config, "num_experts_per_tok"):
        add_experts(writer, config)
    add_rope(writer, architecture, config, model, head_dim)
    if add_tokenizer:
        add_tokenizer(writer)
    kind = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[architecture]
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for name, data in file_tensors(model):
        target = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(target, np.ascontiguousarray(value_of(architecture, name, data, config)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
