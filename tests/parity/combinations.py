"""Tiny models of every architecture and RoPE type that the toolkit reads, with weights from a formula.

The same formula is written in tests/model/formula_model.h, so that golden values need no stored weights.
"""
import copy

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

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


# name: (model_type, options, architecture in GGUF or None if llama.cpp cannot express it)
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
    "gemma3_composite": ("gemma3", gemma3_composite({**GEMMA3, **gemma3_rope(LINEAR)}), None),
    "qwen3_vl_default": ("qwen3_vl", qwen3_vl({"head_dim": 16, **rope({**DEFAULT, "mrope_section": [4, 2, 2],
                                                                       "mrope_interleaved": True}, 5e6)}), None),
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

GOLDEN = {"llama": "llama_yarn", "mistral": "mistral_default", "qwen2": "qwen2_default", "qwen3": "qwen3_linear",
          "gemma2": "gemma2_default", "gemma3": "gemma3_linear", "phi3": "phi3_longrope", "olmo2": "olmo2_llama3",
          "gpt_neox": "gpt_neox_dynamic", "gemma3_composite": "gemma3_composite", "qwen3_vl": "qwen3_vl_default",
          "mixtral": "mixtral_window", "qwen2_moe": "qwen2_moe_window", "qwen3_moe": "qwen3_moe_dense"}


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
    if "norm" in name and not name.endswith("bias") and not kind.startswith("gemma"):  # Gemma adds the 1 itself
        return np.float32(1) + np.float32(0.25) * values
    return (np.float32(0.25) * values).reshape(shape)


def expert_parts(name, value, kind):
    """Yields (name in the file, part of value) of each expert for a parameter that holds all experts."""
    base, part = name.rsplit(".", 1)
    gate, up, down = ("w1", "w3", "w2") if kind == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    for expert, matrix in enumerate(value):
        parts = {down: matrix} if part == "down_proj" else dict(zip((gate, up), matrix.chunk(2)))
        for key, rows in parts.items():
            yield f"{base}.{expert}.{key}.weight", rows


def stored_tensors(model):
    """Yields (name in the file, parameter or the part of one that the file stores by that name)."""
    kind = model.config.model_type
    for name, parameter in model.named_parameters():
        if kind == "mixtral":
            name = name.replace(".mlp.", ".block_sparse_moe.")
        if ".experts." in name:
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
    model = family.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for stored_name, values in stored_tensors(model):
            values.copy_(torch.from_numpy(formula(stored_name, tuple(values.shape), kind)))
    return model


def tokens():
    return [int(t) for t in np.random.default_rng(7).integers(0, VOCABULARY, TOKENS)]


@torch.inference_mode()
def run(model, ids):
    """Returns logits [token, vocabulary], NLL, and per layer k_pre and k_post [kv_head, token, head_dim] of one
    pass."""
    module = __import__(type(model).__module__, fromlist=["apply_rotary_pos_emb"])
    plain, keys = module.apply_rotary_pos_emb, []

    def recording(q, k, *arguments, **options):
        rotated = plain(q, k, *arguments, **options)
        keys.append((k[0].clone(), rotated[1][0].clone()))
        return rotated

    module.apply_rotary_pos_emb = recording
    try:
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].float()
    finally:
        module.apply_rotary_pos_emb = plain
    assert len(keys) == model.config.get_text_config().num_hidden_layers
    nll = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    return logits, nll, keys
