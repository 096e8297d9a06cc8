# SPDX-License-Identifier: Apache-2.0
"""The content of a GGUF of Gemma 4, in llama.cpp's keys, names and orders."""
import numpy as np


def head_sizes(config):
    """Returns (head_dim, KV heads) of each layer."""
    own = {int(layer): keys for layer, keys in (config.to_dict().get("per_layer_config") or {}).items()}
    return [(own.get(layer, {}).get("head_dim", config.head_dim),
             own.get(layer, {}).get("num_key_value_heads", config.num_key_value_heads))
            for layer in range(config.num_hidden_layers)]


def add_gemma4(writer, config):
    sizes, windowed = head_sizes(config), [kind == "sliding_attention" for kind in config.layer_types]
    full, window = (next(size for size, local in zip(sizes, windowed) if local == wanted)[0] for wanted in (False, True))
    shared, layers = config.num_kv_shared_layers, config.num_hidden_layers
    writer.add_key_length(full)
    writer.add_value_length(full)
    writer.add_key_length_swa(window)
    writer.add_value_length_swa(window)
    writer.add_head_count_kv([heads for _, heads in sizes])
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern(windowed)
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input or 0)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    wide = 2 if config.use_double_wide_mlp else 1
    writer.add_feed_forward_length([config.intermediate_size * (wide if layer >= layers - shared else 1)
                                    for layer in range(layers)])
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    writer.add_rope_dimension_count(full)
    writer.add_rope_dimension_count_swa(window)
    turning = int(full * rope["full_attention"]["partial_rotary_factor"] / 2)
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * turning + [1e30] * (full // 2 - turning), dtype=np.float32))


def tensors_of(name, data):
    """Yields (name in the file, values) of tensors that the gguf package does not name whole."""
    layer = name.split(".layers.")[1].split(".")[0]
    for ending, target in {"router.scale": "ffn_gate_inp.scale", "per_expert_scale": "ffn_down_exps.scale",
                           "layer_scalar": "layer_output_scale.weight", "experts.gate_up_proj": "ffn_gate_up_exps.weight",
                           "experts.down_proj": "ffn_down_exps.weight"}.items():
        if name.endswith(ending):
            yield f"blk.{layer}.{target}", data
