# SPDX-License-Identifier: Apache-2.0
"""Draws over the configurations of families with experts, recurrent layers, sinks, chunks, inputs of layers and latent
attention, for random_models.py."""
import json

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Mistral4Config, Mistral4ForCausalLM

import random_plain

AutoModelForCausalLM.register(Mistral4Config, Mistral4ForCausalLM, exist_ok=True)  # missing in Transformers 5.24
LOCAL = ["sliding_attention", "full_attention"]


def sizes(r, head_dims=(8, 16, 24), layers=(2, 3, 4)):
    heads = r.choice([1, 2, 4, 6])
    return {"vocab_size": r.choice([33, 64, 97]), "hidden_size": 16 * r.choice([1, 2, 3]),
            "intermediate_size": r.choice([8, 24, 40]), "num_hidden_layers": r.choice(layers),
            "num_attention_heads": heads, "head_dim": r.choice(head_dims),
            "num_key_value_heads": r.choice([h for h in range(1, heads + 1) if heads % h == 0]),
            "max_position_embeddings": r.choice([64, 256]), "tie_word_embeddings": r.random() < 0.4,
            "rms_norm_eps": r.choice([1e-6, 1e-5, 1e-3]), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}


def rope(r, share=None, theta=None):
    parameters = {"rope_type": "default", "rope_theta": theta or r.choice([10000.0, 500000.0, 123.0])}
    if r.random() < 0.3:
        parameters.update(rope_type="linear", factor=r.choice([2.0, 8.0]))
    if share is not None:
        parameters["partial_rotary_factor"] = share
    return {"rope_parameters": parameters}


def types(r, layers, first, other):
    """Returns kinds of layers with at least one `other`, which has attention."""
    kinds = [r.choice([first, other]) for _ in range(layers)]
    kinds[r.randrange(layers)] = other
    return kinds


def experts(r, count="num_experts"):
    number = r.choice([2, 4, 5])
    return {count: number, "num_experts_per_tok": r.randint(1, number), "moe_intermediate_size": r.choice([8, 24])}


def delta_net(r, config):
    keys = r.choice([1, 2])
    return {"linear_num_key_heads": keys, "linear_num_value_heads": keys * r.choice([1, 2, 3]),
            "linear_key_head_dim": r.choice([4, 8, 12]), "linear_value_head_dim": r.choice([4, 8, 10]),
            "linear_conv_kernel_dim": r.choice([2, 4]), "attention_bias": r.random() < 0.3,
            "layer_types": types(r, config["num_hidden_layers"], "linear_attention", "full_attention"),
            **rope(r, r.choice([0.25, 0.5, 1.0]))}


def qwen3_next(r):
    config = sizes(r)
    return {**config, **experts(r), **delta_net(r, config), "shared_expert_intermediate_size": r.choice([8, 24]),
            "norm_topk_prob": r.random() < 0.6, "decoder_sparse_step": r.choice([1, 1, 2]),
            "mlp_only_layers": r.choice([[], [0], [1, 7]])}


def qwen3_5(r):
    config = sizes(r)
    return {**config, **delta_net(r, config)}


def qwen3_5_moe(r):
    config = sizes(r)
    return {**config, **experts(r), **delta_net(r, config), "shared_expert_intermediate_size": r.choice([8, 24])}


def gemma_layers(r, config):
    layers = types(r, config["num_hidden_layers"], *LOCAL)
    shared = r.choice([0, 0, 1, 2])
    if set(layers[shared:]) - set(layers[:len(layers) - shared]):
        shared = 0
    return {"layer_types": layers, "num_kv_shared_layers": shared, "sliding_window": r.choice([1, 5, 24]),
            "hidden_activation": r.choice(["gelu_pytorch_tanh", "silu"]), "tie_word_embeddings": True,
            "final_logit_softcapping": r.choice([None, 30.0, 5.0]), "vocab_size_per_layer_input": config["vocab_size"]}


def gemma4(r):
    config = sizes(r)
    full = {"rope_type": "proportional", "partial_rotary_factor": r.choice([0.25, 0.5, 1.0]), "rope_theta": 1000000.0}
    config.update(gemma_layers(r, config), global_head_dim=r.choice([8, 16, 32]),
                  hidden_size_per_layer_input=r.choice([0, 8]), use_double_wide_mlp=r.random() < 0.5,
                  rope_parameters={"full_attention": full,
                                   "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})
    config["layer_types"][-1] = "full_attention"
    if config["hidden_size_per_layer_input"] == 0:  # fails in Transformers 5.24 with shared layers
        config["num_kv_shared_layers"] = 0
    if r.random() < 0.4:
        config.update(attention_k_eq_v=True, num_kv_shared_layers=0,
                      num_global_key_value_heads=r.choice([None, config["num_key_value_heads"], 1]))
    if r.random() < 0.4:
        config.update(enable_moe_block=True, num_experts=4, top_k_experts=r.randint(1, 4), moe_intermediate_size=8)
    return config


def gemma3n(r):
    config = sizes(r)
    config["hidden_size"] = 8 * config["num_attention_heads"]
    layers = config["num_hidden_layers"]
    widths = [r.choice([8, 24]) for _ in range(layers)]
    return {**config, **gemma_layers(r, config), "intermediate_size": r.choice([16, widths]),
            "hidden_size_per_layer_input": r.choice([4, 8]), "laurel_rank": r.choice([1, 6]),
            "vocab_size_per_layer_input": config["vocab_size"] - r.choice([0, 10]),
            "final_logit_softcapping": r.choice([30.0, 5.0]),
            "altup_num_inputs": r.choice([2, 3, 4]), "altup_correct_scale": r.random() < 0.7,
            "activation_sparsity_pattern": [r.choice([0.0, 0.5, 0.95]) for _ in range(layers)],
            "rope_parameters": {of: rope(r)["rope_parameters"] for of in ("full_attention", "sliding_attention")}}


def lfm2(r):
    config = sizes(r)
    config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
    if config["hidden_size"] % (2 * config["num_attention_heads"]):
        raise ValueError("heads that do not fit")
    config.pop("head_dim")
    return {**config, "norm_eps": config.pop("rms_norm_eps"), "conv_L_cache": r.choice([2, 3, 4]),
            "conv_bias": r.random() < 0.4, "block_multiple_of": r.choice([1, 8, 256]),
            "block_ffn_dim_multiplier": r.choice([1.0, 1.25]), "block_auto_adjust_ff_dim": r.random() < 0.5,
            "layer_types": types(r, config["num_hidden_layers"], "conv", "full_attention"), **rope(r)}


def lfm2_moe(r):
    config = lfm2(r)
    return {**{key: config[key] for key in config if not key.startswith("block_")}, **experts(r),
            "num_dense_layers": r.choice([0, 1, 2]), "norm_topk_prob": r.random() < 0.5,
            "use_expert_bias": r.random() < 0.8, "routed_scaling_factor": r.choice([1.0, 2.5])}


def mamba(r, inner):
    return {"mamba_n_heads": inner // 8, "mamba_d_head": 8, "mamba_n_groups": r.choice([1, 2]),
            "mamba_d_state": r.choice([4, 8]), "mamba_d_conv": r.choice([2, 4]), "mamba_conv_bias": r.random() < 0.7}


def granitemoehybrid(r):
    config = sizes(r)
    config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
    if config["hidden_size"] % (2 * config["num_attention_heads"]):
        raise ValueError("heads that do not fit")
    config.pop("head_dim")
    few = r.choice([0, 2, 4])
    return {**config, **mamba(r, 2 * config["hidden_size"]), "num_local_experts": few,
            "num_experts_per_tok": r.randint(1, few or 1), "shared_intermediate_size": r.choice([8, 24]),
            "embedding_multiplier": r.choice([1.0, 3.0]), "attention_multiplier": r.choice([0.25, 1.0]),
            "residual_multiplier": r.choice([1.0, 0.5]), "logits_scaling": r.choice([1.0, 2.0]),
            "attention_bias": r.random() < 0.3, "position_embedding_type": r.choice(["rope", "nope"]),
            "layer_types": types(r, config["num_hidden_layers"], "mamba", "attention"), **rope(r)}


def nemotron_h(r):
    config = sizes(r)
    kinds = [r.choice(["mamba", "moe", "attention", "mlp"]) for _ in range(config["num_hidden_layers"])]
    kinds[r.randrange(len(kinds))] = "attention"
    epsilon = config.pop("rms_norm_eps")
    few = r.choice([4, 6])  # Transformers scores a group by its two best
    return {**config, "layer_norm_epsilon": epsilon, "layers_block_type": kinds, "mamba_num_heads": r.choice([2, 4]),
            "mamba_head_dim": 8, "n_groups": r.choice([1, 2]), "ssm_state_size": r.choice([4, 8]),
            "conv_kernel": r.choice([2, 4]), "use_conv_bias": r.random() < 0.7, "attention_bias": r.random() < 0.3,
            "mlp_bias": r.random() < 0.3, "n_routed_experts": few, "num_experts_per_tok": r.randint(1, few // 2),
            "n_group": 2, "topk_group": 1, "moe_intermediate_size": 8,
            "moe_shared_expert_intermediate_size": r.choice([8, 24]), "moe_latent_size": r.choice([None, 6]),
            "routed_scaling_factor": r.choice([1.0, 2.5]), "norm_topk_prob": r.random() < 0.7}


def falcon_h1(r):
    config = sizes(r)
    inner = r.choice([16, 32])
    return {**config, **mamba(r, inner), "mamba_d_ssm": inner, "mamba_rms_norm": r.random() < 0.5,
            "mamba_norm_before_gate": r.random() < 0.5, "attention_in_multiplier": r.choice([1.0, 1.25]),
            "attention_out_multiplier": r.choice([1.0, 0.75]), "embedding_multiplier": r.choice([1.0, 2.0]),
            "key_multiplier": r.choice([1.0, 0.5]), "lm_head_multiplier": r.choice([1.0, 0.5]),
            "mlp_multipliers": [r.choice([1.0, 0.75]), 0.5], "ssm_in_multiplier": r.choice([1.0, 1.5]),
            "ssm_multipliers": [0.5, 0.75, 1.25, 1.5, 2.0], "ssm_out_multiplier": r.choice([1.0, 0.25]), **rope(r)}


def gpt_oss(r):
    config = sizes(r)
    return {**config, "num_local_experts": r.choice([2, 4]), "num_experts_per_tok": r.randint(1, 2),
            "sliding_window": r.choice([1, 5, 24]), "swiglu_limit": r.choice([7.0, 0.5]),
            "attention_bias": r.random() < 0.7,
            "layer_types": [r.choice(LOCAL) for _ in range(config["num_hidden_layers"])], **rope(r)}


def llama4(r):
    config, few = sizes(r), r.choice([2, 4])
    layers = config["num_hidden_layers"]
    config.update(num_local_experts=few, num_experts_per_tok=r.randint(1, few), intermediate_size_mlp=r.choice([8, 24]),
                  attention_chunk_size=r.choice([1, 7, 24, 8192, None]), use_qk_norm=r.random() < 0.7,
                  attn_temperature_tuning=r.random() < 0.7, floor_scale=r.choice([4, 64]),
                  attn_scale=r.choice([0.1, 0.5]), attention_bias=r.random() < 0.3,
                  interleave_moe_layer_step=r.choice([1, 2]), no_rope_layer_interval=r.choice([2, 4]), **rope(r))
    if r.random() < 0.3:
        config["no_rope_layers"] = [r.randint(0, 1) for _ in range(layers)]
    if r.random() < 0.3:
        config["moe_layers"] = sorted(r.sample(range(layers), r.randint(0, layers)))
    return config


def latent_rope(r):
    """Parameters of every type whose factor of scores latent attention may also have."""
    parameters = {"rope_theta": r.choice([10000.0, 500000.0, 123.0]),
                  "rope_type": r.choice(["default", "linear", "yarn", "yarn", "yarn", "llama3"])}
    if parameters["rope_type"] != "default":
        parameters["factor"] = r.choice([1.0, 2.0, 4, 40.0])
    if parameters["rope_type"] == "llama3":
        parameters.update(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
    if parameters["rope_type"] == "yarn":
        parameters["original_max_position_embeddings"] = r.choice([8, 16, 64])
        for key, values in {"beta_fast": [32, 16.0], "beta_slow": [1, 2.0], "attention_factor": [1.0, 0.7],
                            "mscale": [1.0, 0.707, 0.0], "truncate": [True, False]}.items():
            if r.random() < 0.4:
                parameters[key] = r.choice(values)
    if r.random() < 0.6:
        parameters["mscale_all_dim"] = r.choice([1.0, 0.707, 0.0, 2])
    return {"rope_parameters": parameters}


def latent(r, query_ranks=(None, 1, 6, 12)):
    """Latent attention with dense blocks and blocks of experts in groups."""
    config = sizes(r)
    config.pop("head_dim")
    config["hidden_size"] = config["num_attention_heads"] * r.choice([4, 8, 16])
    groups, of_group = r.choice([1, 1, 2, 3]), r.choice([2, 3])  # Transformers scores a group by its two best
    chosen = r.randint(1, groups)
    return {**config, "num_key_value_heads": config["num_attention_heads"], "kv_lora_rank": r.choice([1, 5, 12, 32]),
            "q_lora_rank": r.choice(query_ranks), "qk_nope_head_dim": r.choice([1, 4, 10, 16]),
            "qk_rope_head_dim": r.choice([2, 4, 8, 10]), "v_head_dim": r.choice([1, 6, 16, 20]),
            "n_routed_experts": groups * of_group, "n_group": groups, "topk_group": chosen,
            "num_experts_per_tok": r.randint(1, chosen * of_group), "n_shared_experts": r.choice([1, 2]),
            "moe_intermediate_size": r.choice([8, 24]), "first_k_dense_replace": r.choice([0, 1, 2, 9]),
            "routed_scaling_factor": r.choice([1.0, 2.5]), "norm_topk_prob": r.random() < 0.6,
            "attention_bias": r.random() < 0.3, "hidden_act": r.choice(["silu", "silu", "gelu", "relu"]),
            **latent_rope(r)}


def blocks(r, config):
    """Kinds of feed-forward blocks as a list, in place of first_k_dense_replace."""
    if r.random() < 0.5:
        config["mlp_layer_types"] = [r.choice(["dense", "sparse"]) for _ in range(config["num_hidden_layers"])]
    return config


def deepseek_v2(r):
    config = latent(r, (None, 2, 6, 12))
    config["kv_lora_rank"] += config["kv_lora_rank"] % 2  # Transformers fails if the channels to rotate begin odd
    config["qk_nope_head_dim"] += config["qk_nope_head_dim"] % 2
    return {**config, "topk_method": r.choice(["greedy", "group_limited_greedy"]), "mlp_bias": r.random() < 0.3}


def deepseek_v3(r):
    return {**latent(r), "rope_interleave": r.random() < 0.6}


def mistral4(r):
    config = deepseek_v3(r)
    if config["rope_parameters"]["rope_type"] == "default":  # fails in Transformers 5.24
        config["rope_parameters"].update(rope_type="linear", factor=1.0)
    config["rope_parameters"]["llama_4_scaling_beta"] = r.choice([0.0, 0.1, 0.5])
    config["rope_parameters"].setdefault("original_max_position_embeddings", r.choice([8, 32]))
    return config


def glm4_moe_lite(r):
    config = deepseek_v3(r)
    config.pop("first_k_dense_replace")
    return blocks(r, config)


def indexed(r):
    """Latent attention with an index. It has many heads: tokens whose scores are all cut to 0 would be equal."""
    config = blocks(r, latent(r, (6, 12)))
    return {**config, "index_topk": r.choice([1, 7, 24, 2048]), "index_n_heads": 16,
            "index_head_dim": config["qk_rope_head_dim"] + r.choice([0, 2, 8]), "mlp_bias": r.random() < 0.3}


def glm_moe_dsa(r):
    config = indexed(r)
    layers = config["num_hidden_layers"]
    if r.random() < 0.5:
        config["indexer_types"] = ["full"] + [r.choice(["full", "shared"]) for _ in range(layers - 1)]
    elif r.random() < 0.5:
        config.update(index_topk_freq=r.choice([1, 2, 4]), index_skip_topk_offset=r.choice([1, 2, 3]))
    return config


FAMILIES = {"qwen3_next": qwen3_next, "qwen3_5_text": qwen3_5, "qwen3_5_moe_text": qwen3_5_moe, "gemma4_text": gemma4,
            "gemma3n_text": gemma3n, "lfm2": lfm2, "lfm2_moe": lfm2_moe, "granitemoehybrid": granitemoehybrid,
            "nemotron_h": nemotron_h, "falcon_h1": falcon_h1, "gpt_oss": gpt_oss, "llama4_text": llama4,
            "deepseek_v2": deepseek_v2, "deepseek_v3": deepseek_v3, "deepseek_v32": indexed, "mistral4": mistral4,
            "glm4_moe_lite": glm4_moe_lite, "glm_moe_dsa": glm_moe_dsa, **random_plain.FAMILIES}
# Two names of one key in the class's attribute_map.
OTHER_NAMES = {"glm4_moe": ("n_routed_experts", "num_local_experts"), "qwen3_moe": ("num_experts", "num_local_experts"),
               "ernie4_5_moe": ("moe_num_experts", "num_experts"),
               "hunyuan_v1_moe": ("num_experts", "num_local_experts")}
KEPT = ("vocab_size", "hidden_size", "num_hidden_layers", "model_type", "num_attention_heads", "dtype")


def draw(r, kind):
    """Returns a draw that Transformers can build."""
    while True:
        try:
            config = FAMILIES[kind](r)
            return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **json.loads(json.dumps(config))),
                                                    attn_implementation="eager").float().eval()
        except (ValueError, RuntimeError, TypeError, ZeroDivisionError):
            continue


def fill(model, r):
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    less_one = model.config.model_type.startswith("qwen")  # gains are 1 + w
    unscaled = model.config.model_type.startswith("gemma")  # scores: gains around 0.5 keep them small
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() >= 2:
                parameter.copy_(values * (1.2 / parameter.shape[-1] ** 0.5))
            elif "norm" in name and less_one and ".linear_attn." not in name:
                parameter.copy_(0.2 * values)
            elif "norm" in name and not name.endswith("bias"):
                parameter.copy_((0.5 if unscaled and ("q_norm" in name or "k_norm" in name) else 1) * (1 + 0.2 * values))
            else:
                parameter.copy_(0.25 * values)
        for name, buffer in model.named_buffers():
            if name.endswith(("e_score_correction_bias", "expert_bias")):
                buffer.copy_(0.25 * torch.randn(buffer.shape, generator=generator))


def misspell(r, kind, config):
    """Writes some keys as Transformers 4 did, or by their other name."""
    rope_of = config.get("rope_parameters") or {}
    of_types = any(isinstance(value, dict) for value in rope_of.values())
    if kind in random_plain.FAMILIES and "rope_theta" in rope_of and not of_types and r.random() < 0.3:
        scaling = config.pop("rope_parameters")
        config["rope_theta"] = scaling.pop("rope_theta")
        if "partial_rotary_factor" in scaling:
            config["partial_rotary_factor"] = scaling.pop("partial_rotary_factor")
        if scaling["rope_type"] != "default" or len(scaling) > 1:
            config["rope_scaling"] = scaling
    own, other = OTHER_NAMES.get(kind, ("", ""))
    if own in config and r.random() < 0.3:
        config[other] = config.pop(own)


def write(r, kind, folder):
    """Writes a model as Transformers does, with some keys of its config left out. @return token ids"""
    model = draw(r, kind)
    fill(model, r)
    folder.mkdir(parents=True)
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    for key in sorted(config):
        needed = key in KEPT or key == "num_key_value_heads" and "kv_lora_rank" in config  # no heads that share keys
        if not needed and r.random() < 0.02:
            del config[key]
    misspell(r, kind, config)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return [r.randrange(model.config.vocab_size) for _ in range(r.choice([30, 90]))]
