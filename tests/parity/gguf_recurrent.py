# SPDX-License-Identifier: Apache-2.0
"""The content of a GGUF of a model with recurrent layers, in llama.cpp's keys, names and orders."""
import re

import numpy as np

# Ends of names in Transformers → names in the file; the `gguf` package knows the others.
NAMES = {"linear_attn.dt_bias": "ssm_dt.bias", "mamba.dt_bias": "ssm_dt.bias", "mixer.dt_bias": "ssm_dt.bias",
         "mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight",
         "mlp.down_proj.weight": "ffn_down.weight", "pre_ff_layernorm.weight": "ffn_norm.weight",
         "expert_bias": "exp_probs_b.bias", "e_score_correction_bias": "exp_probs_b.bias",
         "mixer.A_log": "ssm_a", "mixer.D": "ssm_d", "mixer.conv1d.weight": "ssm_conv1d.weight",
         "mixer.conv1d.bias": "ssm_conv1d.bias", "mixer.in_proj.weight": "ssm_in.weight",
         "mixer.norm.weight": "ssm_norm.weight", "mixer.out_proj.weight": "ssm_out.weight",
         "mixer.gate.weight": "ffn_gate_inp.weight", "mixer.up_proj.weight": "ffn_up.weight",
         "mixer.down_proj.weight": "ffn_down.weight", "mixer.q_proj.weight": "attn_q.weight",
         "mixer.k_proj.weight": "attn_k.weight", "mixer.v_proj.weight": "attn_v.weight",
         "mixer.o_proj.weight": "attn_output.weight", "shared_experts.up_proj.weight": "ffn_up_shexp.weight",
         "shared_experts.down_proj.weight": "ffn_down_shexp.weight", "fc1_latent_proj.weight": "ffn_latent_down.weight",
         "fc2_latent_proj.weight": "ffn_latent_up.weight", "block_sparse_moe.router.weight": "ffn_gate_inp.weight"}


def tiled(data, axis, config, channels):
    """Reorders value heads along an axis: those of one key head are next to each other in Transformers."""
    keys, heads = config.linear_num_key_heads, config.linear_num_value_heads
    parts = data.reshape(*data.shape[:axis], keys, heads // keys, channels, *data.shape[axis + 1:])
    return parts.swapaxes(axis, axis + 1).reshape(data.shape)


def delta_net_order(name, data, config):
    """Returns values of Qwen 3.5 with tiled value heads."""
    width, rows = config.linear_value_head_dim, 2 * config.linear_num_key_heads * config.linear_key_head_dim
    if "in_proj_qkv." in name or "conv1d" in name:
        return np.concatenate([data[:rows], tiled(data[rows:], 0, config, width)])
    if "in_proj_z" in name:
        return tiled(data, 0, config, width)
    if "out_proj" in name:
        return tiled(data, 1, config, width)
    return tiled(data, 0, config, 1) if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias")) else data


def split_qkvz(data, config):
    """Returns [q of all heads | k | v] and z of Qwen 3 Next's rows [key head, (q, k, v, z), channel]."""
    heads, width = config.linear_num_key_heads, config.linear_key_head_dim
    values = config.linear_num_value_heads // heads * config.linear_value_head_dim
    parts = np.split(data.reshape(heads, -1, data.shape[1]), np.cumsum([width, width, values]), axis=1)
    q, k, v, z = (part.reshape(-1, data.shape[1]) for part in parts)
    return np.concatenate([q, k, v]), z


def falcon_factor(name, data, config):
    """Returns values of Falcon-H1 with its multipliers."""
    factors = {"q_proj": config.attention_in_multiplier, "v_proj": config.attention_in_multiplier,
               "k_proj": config.attention_in_multiplier * config.key_multiplier,
               "o_proj": config.attention_out_multiplier, "mamba.out_proj": config.ssm_out_multiplier,
               "gate_proj": config.mlp_multipliers[0], "down_proj": config.mlp_multipliers[1],
               "lm_head": config.lm_head_multiplier, "embed_tokens": config.embedding_multiplier}
    for part, factor in factors.items():
        if part in name:
            return data * np.float32(factor)
    if "mamba.in_proj" not in name:
        return data
    inner, states = config.mamba_d_ssm, config.mamba_n_groups * config.mamba_d_state
    sizes = [inner, inner, states, states, config.mamba_n_heads]
    return data * np.float32(config.ssm_in_multiplier) * np.repeat(config.ssm_multipliers, sizes).astype(np.float32)[:, None]


def values_of(architecture, name, data, config):
    """Returns a tensor's values as the file holds them."""
    if architecture in ("qwen35", "qwen35moe") and "linear_attn" in name:
        data = delta_net_order(name, data, config)
    if architecture == "falcon-h1":
        data = falcon_factor(name, data, config)
    if architecture.startswith("qwen") and name.endswith("norm.weight") and "linear_attn" not in name:
        data = data + np.float32(1)
    if name.endswith("A_log"):
        data = -np.exp(data)
    if data.ndim == 3 and data.shape[1] == 1 and "conv" in name:
        return data[:, 0]
    if "qwen" in architecture or "lfm2" in architecture:
        return data
    groups = getattr(config, "mamba_n_groups", None) or getattr(config, "n_groups", 1)
    if name.endswith(("mamba.norm.weight", "mixer.norm.weight")):
        return data.reshape(groups, -1)
    return data[:, None] if name.endswith(("A_log", ".D")) else data


def tensors_of(architecture, name, data, config, joined):
    """Yields (name in the file, values) of a tensor whose name the gguf package does not know, or whose parts the file
    stores apart."""
    layer = re.search(r"layers\.(\d+)\.", name)
    block = f"blk.{layer[1]}." if layer else ""
    if name.endswith("in_proj_qkvz.weight") and not joined:
        for target, part in zip(("attn_qkv", "attn_gate"), split_qkvz(data, config)):
            yield f"{block}{target}.weight", part
        return
    if "shared_mlp" in name:
        ending = "_shexp.weight" if config.num_local_experts else ".weight"
        parts = {"gate": data[:len(data) // 2], "up": data[len(data) // 2:]} if "input" in name else {"down": data}
        for key, part in parts.items():
            yield f"{block}ffn_{key}{ending}", part
        return
    for ending, target in NAMES.items():
        if name.endswith(ending):
            yield block + target, values_of(architecture, name, data, config)
            return


def kinds_of(config):
    """Returns the kind of each layer: attention, recurrent, mlp or moe; None: attention and a recurrent block."""
    if config.model_type == "falcon_h1":
        return [None] * config.num_hidden_layers
    names = getattr(config, "layers_block_type", None) or config.layer_types
    return ["attention" if "attention" in name and name != "linear_attention" else
            name if name in ("mlp", "moe") else "recurrent" for name in names]


def add_ssm(writer, sizes):
    kernel, state, groups, heads, inner = sizes
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(groups)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_inner_size(inner)


def add_sizes(writer, architecture, config):
    """Adds the keys of the recurrent blocks, and the sizes that differ between layers."""
    kinds = kinds_of(config)
    if architecture.startswith("qwen"):
        add_ssm(writer, (config.linear_conv_kernel_dim, config.linear_key_head_dim, config.linear_num_key_heads,
                         config.linear_num_value_heads, config.linear_num_value_heads * config.linear_value_head_dim))
        if config.layer_types == ["full_attention" if (layer + 1) % 4 == 0 else "linear_attention"
                                  for layer in range(len(kinds))]:
            writer.add_full_attention_interval(4)
        else:
            writer.add_array(f"{architecture}.attention.recurrent_layers", [kind == "recurrent" for kind in kinds])
        return
    if architecture.startswith("nemotron"):
        width = config.moe_intermediate_size if architecture.endswith("moe") else config.intermediate_size
        writer.add_feed_forward_length([{"moe": width, "mlp": config.intermediate_size}.get(kind, 0) for kind in kinds])
        add_ssm(writer, (config.conv_kernel, config.ssm_state_size, config.n_groups, config.mamba_num_heads,
                         config.mamba_num_heads * config.mamba_head_dim))
    elif architecture.startswith("lfm2"):
        writer.add_shortconv_l_cache(config.conv_L_cache)
    else:
        inner = config.mamba_d_ssm if architecture == "falcon-h1" else config.mamba_expand * config.hidden_size
        add_ssm(writer, (config.mamba_d_conv, config.mamba_d_state, config.mamba_n_groups, config.mamba_n_heads, inner))
    if None not in kinds:
        writer.add_head_count_kv([config.num_key_value_heads if kind == "attention" else 0 for kind in kinds])
    if architecture == "granitehybrid":
        writer.add_rope_scaling_finetuned(config.position_embedding_type == "rope")
