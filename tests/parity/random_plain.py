# SPDX-License-Identifier: Apache-2.0
"""Draws over the configurations of families whose layers are all attention and a feed-forward network or experts, for
random_families.py."""
LOCAL = ["sliding_attention", "full_attention"]


def sizes(r, head_dim=True):
    heads = r.choice([1, 2, 4, 6])
    width = r.choice([8, 16, 24])
    own = head_dim and r.random() < 0.6
    config = {"vocab_size": r.choice([33, 64, 97]), "hidden_size": 16 * r.choice([1, 2, 3]) if own else heads * width,
              "intermediate_size": r.choice([8, 24, 40]), "num_hidden_layers": r.choice([2, 3, 5]),
              "num_attention_heads": heads, "max_position_embeddings": r.choice([64, 256]),
              "num_key_value_heads": r.choice([h for h in range(1, heads + 1) if heads % h == 0]),
              "tie_word_embeddings": r.random() < 0.4, "rms_norm_eps": r.choice([1e-6, 1e-5, 1e-3]),
              "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    if head_dim:
        config["head_dim"] = width
    return config


def rope(r, shares=(None,)):
    parameters = {"rope_theta": r.choice([10000.0, 500000.0, 123.0]),
                  "rope_type": r.choice(["default", "default", "linear", "dynamic", "llama3", "yarn"])}
    if parameters["rope_type"] != "default":
        parameters["factor"] = r.choice([1.5, 2.0, 4, 8.0])
    if parameters["rope_type"] == "llama3":
        parameters.update(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
    if parameters["rope_type"] == "yarn":
        parameters["original_max_position_embeddings"] = r.choice([8, 16, 64])
        for key, values in {"beta_fast": [32, 16.0], "attention_factor": [1.0, 0.7], "mscale": [1.0, 0.707],
                            "mscale_all_dim": [1.0, 0.707], "truncate": [True, False]}.items():
            if r.random() < 0.3:
                parameters[key] = r.choice(values)
    share = r.choice(shares)
    if share is not None:
        parameters["partial_rotary_factor"] = share
    return {"rope_parameters": parameters}


def experts(r, count):
    number = r.choice([2, 4, 5])
    return {count: number, "num_experts_per_tok": r.randint(1, number)}


def local_layers(r, config):
    return {"sliding_window": r.choice([1, 5, 24]),
            "layer_types": [r.choice(LOCAL) for _ in range(config["num_hidden_layers"])]}


def sparse_by_step(r):
    return {"decoder_sparse_step": r.choice([1, 1, 2]), "mlp_only_layers": r.choice([[], [0], [1, 7]]),
            "norm_topk_prob": r.random() < 0.5, "moe_intermediate_size": r.choice([8, 24])}


def glm4_moe(r):
    groups, of_group = r.choice([1, 1, 2, 3]), r.choice([2, 3])  # Transformers scores a group by its two best
    chosen = r.randint(1, groups)
    return {**sizes(r), "n_routed_experts": groups * of_group, "n_group": groups, "topk_group": chosen,
            "num_experts_per_tok": r.randint(1, chosen * of_group), "n_shared_experts": r.choice([1, 2]),
            "moe_intermediate_size": r.choice([8, 24]), "first_k_dense_replace": r.choice([0, 1, 2, 9]),
            "routed_scaling_factor": r.choice([1.0, 2.5]), "norm_topk_prob": r.random() < 0.6,
            "attention_bias": r.random() < 0.4, "use_qk_norm": r.random() < 0.6, **rope(r, (None, 0.25, 0.5, 1.0))}


def minimax_m2(r):
    config = sizes(r)
    config.update(experts(r, "num_local_experts"), **rope(r))
    if r.random() < 0.6:
        config["rotary_dim"] = r.choice([2, 4, 8])
    return config


def mixtral(r):
    return {**sizes(r), **experts(r, "num_local_experts"), "sliding_window": r.choice([None, 1, 5, 24]), **rope(r)}


def qwen2_moe(r):
    config = sizes(r, head_dim=False)
    return {**config, **experts(r, "num_experts"), **sparse_by_step(r), **rope(r), "qkv_bias": r.random() < 0.6,
            "shared_expert_intermediate_size": r.choice([8, 24]), "use_sliding_window": r.random() < 0.5,
            "sliding_window": r.choice([1, 5, 24]), "max_window_layers": r.choice([0, 1, 2, 28])}


def qwen3_moe(r):
    return {**sizes(r), **experts(r, "num_experts"), **sparse_by_step(r), **rope(r), "attention_bias": r.random() < 0.3,
            "use_sliding_window": r.random() < 0.3, "sliding_window": r.choice([1, 5, 24])}


def olmoe(r):
    return {**sizes(r, head_dim=False), **experts(r, "num_experts"), **rope(r), "norm_topk_prob": r.random() < 0.5,
            "clip_qkv": r.choice([None, 0.5, 2.0]), "attention_bias": r.random() < 0.3}


def granite(r):
    return {**sizes(r, head_dim=False), **rope(r), "embedding_multiplier": r.choice([1.0, 3.0]),
            "attention_multiplier": r.choice([0.25, 1.0]), "residual_multiplier": r.choice([1.0, 0.5]),
            "logits_scaling": r.choice([1.0, 2.0]), "attention_bias": r.random() < 0.3}


def granitemoe(r):
    return {**granite(r), **experts(r, "num_local_experts")}


def ernie4_5_moe(r):
    count = r.choice([2, 4, 5])
    return {**sizes(r, head_dim=False), **rope(r), "moe_num_experts": count, "moe_k": r.randint(1, count),
            "moe_intermediate_size": r.choice([8, 24]), "moe_num_shared_experts": r.choice([0, 1, 2]),
            "moe_layer_start_index": r.choice([0, 1, 2]), "moe_layer_end_index": r.choice([-1, 1, 9]),
            "moe_layer_interval": r.choice([1, 1, 2]), "use_bias": r.random() < 0.4}


def hunyuan_v1_moe(r):
    count = r.choice([2, 4, 5])
    return {**sizes(r), **rope(r), "num_experts": count, "moe_topk": r.randint(1, count),
            "attention_bias": r.random() < 0.3, "use_qk_norm": r.random() < 0.7}


def mistral(r):
    return {**sizes(r), **rope(r), "sliding_window": r.choice([None, 1, 5, 24])}


def ministral3(r):
    config = mistral(r)
    config["rope_parameters"]["llama_4_scaling_beta"] = r.choice([0.0, 0.1, 0.5])
    config["rope_parameters"].setdefault("original_max_position_embeddings", r.choice([8, 32]))
    return config


def smollm3(r):
    config = {**sizes(r, head_dim=False), **rope(r), "attention_bias": r.random() < 0.3, "mlp_bias": r.random() < 0.3}
    if r.random() < 0.5:
        config["no_rope_layers"] = [r.randint(0, 1) for _ in range(config["num_hidden_layers"])]
    else:
        config["no_rope_layer_interval"] = r.choice([2, 3, 4])
    return config


def olmo3(r):
    config = sizes(r, head_dim=False)
    return {**config, **rope(r), **local_layers(r, config), "attention_bias": r.random() < 0.3}


def exaone4(r):
    config = sizes(r)
    return {**config, **rope(r), **(local_layers(r, config) if r.random() < 0.7 else {"sliding_window": None})}


def cohere2(r):
    config = sizes(r)
    config["layer_norm_eps"] = config.pop("rms_norm_eps")
    return {**config, **rope(r), **local_layers(r, config), "attention_bias": r.random() < 0.3,
            "logit_scale": r.choice([0.0625, 0.5])}


def seed_oss(r):
    return {**sizes(r), **rope(r), "attention_bias": r.random() < 0.6, "attention_out_bias": r.random() < 0.4,
            "mlp_bias": r.random() < 0.3}


def glm4(r):
    return {**sizes(r), **rope(r, (None, 0.25, 0.5, 1.0)), "attention_bias": r.random() < 0.6}


def ernie4_5(r):
    return {**sizes(r), **rope(r), "use_bias": r.random() < 0.4}


def hunyuan_v1_dense(r):
    return {**sizes(r), **rope(r), "attention_bias": r.random() < 0.3, "use_qk_norm": r.random() < 0.7}


def layer_norms(r, key):
    config = sizes(r, head_dim=False)
    config[key] = config.pop("rms_norm_eps")
    return config


def phi(r):
    return {**layer_norms(r, "layer_norm_eps"), **rope(r, (0.25, 0.5, 1.0)), "qk_layernorm": r.random() < 0.4}


def starcoder2(r):
    return {**layer_norms(r, "norm_epsilon"), **rope(r), "use_bias": r.random() < 0.6,
            "sliding_window": r.choice([None, 1, 5, 24])}


def stablelm(r):
    return {**layer_norms(r, "layer_norm_eps"), **rope(r, (0.25, 0.5, 1.0)), "qk_layernorm": r.random() < 0.4,
            "use_qkv_bias": r.random() < 0.4, "use_parallel_residual": r.random() < 0.4}


FAMILIES = {function.__name__: function
            for function in (glm4_moe, minimax_m2, mixtral, qwen2_moe, qwen3_moe, olmoe, granite, granitemoe,
                             ernie4_5_moe, hunyuan_v1_moe, mistral, ministral3, smollm3, olmo3, exaone4, cohere2,
                             seed_oss, glm4, ernie4_5, hunyuan_v1_dense, phi, starcoder2, stablelm)}
