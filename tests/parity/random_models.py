#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random tiny models of every architecture: our NLL per token in f32 compared with Transformers in f64 and f32.

Usage: random_models.py PATH/TO/model_nll [--models 120] [--seed 0] [--recent] [--only TYPE ...] [--keep FOLDER]
       [--verbose]

A model is a draw over its class's configuration space (geometry, heads, RoPE, windows, biases, activation, epsilons,
caps), written in the forms of published checkpoints: config.json as Transformers 5 or 4 wrote it, with keys that are
missing, null or at odds with each other; weights in f32, f16 or bf16, whole or sharded, with or without a base class's
prefix, tied, untied, or tied with another head stored. The expected values are those of Transformers for that folder.
Exits with 1 if a token's NLL is off by more than 1e-4 (and by more than 5 times the error of Transformers' own f32), or
if one program accepts a folder that the other refuses, except as listed in REFUSED. Needs torch, transformers and
safetensors, else 77 (skipped).
"""
import argparse
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import random_families

CLASSES = ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "olmo2", "gpt_neox"]
KV_DEFAULTS = {"mistral": 8, "qwen2": 32, "qwen3": 32, "gemma2": 4, "gemma3_text": 4}
ACTIVATIONS = ["silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python", "gelu_accurate",
               "gelu_python_tanh", "quick_gelu", "relu"]
# Models that are refused here although Transformers runs them: (words of the error, reason).
REFUSED = [("channels rotated, expected 1 or more", "nothing turns"),
           ("an odd number", "scaling that depends on how many channels turn"),
           ("expected the first to divide the second", "heads of keys that serve no whole number of value heads"),
           ("/mlp_bias: found true, which", "the key is of no effect in classes with an index of tokens"),
           ("passes over", "what Transformers reads and does not heed: docs/models.md")]


def draw_rope(r, kind, channels, context, share):
    """One kind of layer's parameters in Transformers 5's form."""
    theta = r.choice([10000.0, 10000.0, 500000.0, 1e6, 25.0, 12345.678])
    types = ["default", "linear", "dynamic", "llama3", "yarn", "longrope"]
    if kind == "phi3":
        types = ["default", "longrope"]
    if channels < 4:
        types.remove("dynamic") if "dynamic" in types else None
    rope = {"rope_type": r.choice(types), "rope_theta": theta}
    original = r.choice([16, 40, 64, context])
    if rope["rope_type"] in ("linear", "dynamic"):
        rope["factor"] = r.choice([2.0, 4, 1.5, 8.0])
        if r.random() < 0.2:
            rope["max_position_embeddings"] = 32  # of no effect
    if rope["rope_type"] == "llama3":
        rope.update(factor=r.choice([8.0, 32, 4.0]), low_freq_factor=r.choice([1.0, 1, 2.0]),
                    high_freq_factor=r.choice([4.0, 4, 8.0]), original_max_position_embeddings=original)
    if rope["rope_type"] == "yarn":
        rope.update(factor=r.choice([4.0, 2, 16.0]), original_max_position_embeddings=original)
        for key, values in {"beta_fast": [32, 16.0, 32.0], "beta_slow": [1, 2.0], "attention_factor": [1.0, 0.7, 1.25],
                            "mscale": [1.0, 0.707], "mscale_all_dim": [0.707, 1.0, 0.0],
                            "truncate": [True, False]}.items():
            if r.random() < 0.3:
                rope[key] = r.choice(values)
    if rope["rope_type"] == "longrope":
        rope.update(original_max_position_embeddings=original,
                    short_factor=[1.0 + r.random() for _ in range(channels // 2)],
                    long_factor=[1.0 + 8 * r.random() for _ in range(channels // 2)])
        for key, values in {"factor": [4.0, 2, 1.0], "attention_factor": [1.0, 1.19]}.items():
            if r.random() < 0.3:
                rope[key] = r.choice(values)
    if share is not None:
        rope["partial_rotary_factor"] = share
    return rope


def draw_types(r, layers):
    return [r.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]


def draw_config(r, kind):
    heads = r.choice([1, 2, 3, 4, 6, 8, 16])
    kv_heads = r.choice([h for h in range(1, heads + 1) if heads % h == 0])
    if kind in KV_DEFAULTS and r.random() < 0.3:
        kv_heads = KV_DEFAULTS[kind]
        heads = kv_heads * r.choice([1, 2])
    head_dim = r.choice([2, 4, 6, 8, 10, 16, 20, 32])
    own_head = kind in ("llama", "mistral", "qwen3", "gemma2", "gemma3_text")
    if kind == "qwen3" and r.random() < 0.2:
        head_dim = 128
    if kind.startswith("gemma") and r.random() < 0.2:
        head_dim = 256
    free = own_head and r.random() < 0.6 or head_dim > 64
    d_model = heads * (r.choice([3, 4, 5, 8, 12]) if free else head_dim)
    layers, context = r.choice([1, 2, 3, 4, 7]), r.choice([64, 100, 256])
    config = {"vocab_size": r.choice([33, 64, 97, 130]), "hidden_size": d_model,
              "intermediate_size": r.choice([8, 24, 40, 72]),
              "num_hidden_layers": layers, "num_attention_heads": heads, "max_position_embeddings": context,
              "hidden_act": r.choice(ACTIVATIONS) if r.random() < 0.6 else "silu",
              "tie_word_embeddings": r.random() < 0.5,
              "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    if kind != "gpt_neox":
        config["num_key_value_heads"] = kv_heads
        config["rms_norm_eps"] = r.choice([1e-6, 1e-5, 1e-3])
    if own_head:
        config["head_dim"] = head_dim
    share, window = None, r.choice([None, 1, 5, 24, 64])
    if kind in ("llama", "olmo2", "qwen3", "gemma2", "gemma3_text", "gpt_neox"):
        config["attention_bias"] = r.random() < 0.4
    if kind == "llama":
        config["mlp_bias"] = r.random() < 0.4
    if kind in ("mistral", "phi3"):
        config["sliding_window"] = window
    if kind in ("qwen2", "qwen3"):
        config.update(use_sliding_window=r.random() < 0.6, sliding_window=window or 24,
                      max_window_layers=r.choice([0, 1, 2, 28]))
        if r.random() < 0.4:
            used = config["use_sliding_window"]
            config["layer_types"] = draw_types(r, layers) if used else ["full_attention"] * layers
    if kind.startswith("gemma"):
        config["hidden_activation"] = config.pop("hidden_act") if r.random() < 0.4 else "gelu_pytorch_tanh"
        config.pop("hidden_act", None)
        config.update(sliding_window=window or 24, query_pre_attn_scalar=r.choice([16, 24, 256, head_dim]))
        if r.random() < 0.4:
            config["layer_types"] = draw_types(r, layers)
        config["final_logit_softcapping"] = r.choice([None, 30.0, 5.0])
        if kind == "gemma2":
            config["attn_logit_softcapping"] = r.choice([None, 50.0, 2.0])
        elif "layer_types" not in config:
            config["sliding_window_pattern"] = r.choice([6, 2, 3, 1])
    if kind == "gpt_neox":
        config.update(layer_norm_eps=r.choice([1e-5, 1e-3]), use_parallel_residual=r.random() < 0.5)
        share = r.choice([0.25, 0.5, 0.75, 1.0, 0.4, None])
    if kind == "phi3":
        share = r.choice([None, 0.5, 0.75, 1.0, 0.4])
    turned = int(head_dim * (share if share is not None else 0.25 if kind == "gpt_neox" else 1.0))
    if turned < 1:
        share, turned = 1.0, head_dim
    if kind == "gemma3_text":
        config["rope_parameters"] = {of: draw_rope(r, kind, turned, context, None)
                                     for of in ("full_attention", "sliding_attention")}
    else:
        config["rope_parameters"] = draw_rope(r, kind, turned, context, share)
    if kind == "phi3":
        original = "original_max_position_embeddings"
        config[original] = config["rope_parameters"].get(original, 64)
    return config


def fill(model, r):
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() == 2:
                parameter.copy_(values * (1.3 / math.sqrt(parameter.shape[1])))
            elif "norm" in name and not name.endswith("bias") and not model.config.model_type.startswith("gemma"):
                parameter.copy_(1 + 0.25 * values)
            else:
                parameter.copy_(0.25 * values)


# --- spelling of the config ---


def old_rope(r, kind, config):
    """Transformers 4's spelling of rope_parameters, in place."""
    rope = config.pop("rope_parameters")
    if kind == "gemma3_text":
        config["rope_theta"] = rope["full_attention"].pop("rope_theta")
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    elif kind == "gpt_neox":
        config["rotary_emb_base"] = rope.pop("rope_theta")
        config["rotary_pct"] = rope.pop("partial_rotary_factor", 0.25)
    else:
        config["rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:
            config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if rope["rope_type"] == "default":
        if r.random() < 0.7:
            config["rope_scaling"] = None
        return
    if r.random() < 0.5:
        rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = rope


def misspell(r, kind, config):
    if r.random() < 0.4:
        old_rope(r, kind, config)
    elif r.random() < 0.2 and kind != "gemma3_text" and kind != "gpt_neox":
        config["rope_theta"] = config["rope_parameters"].pop("rope_theta")  # half of each
    if r.random() < 0.04:  # from another class's configs
        config["rope_theta" if kind == "gpt_neox" else "rotary_emb_base"] = r.choice([10000, 500000.0])
    if r.random() < 0.04:
        config["partial_rotary_factor" if kind == "gpt_neox" else "rotary_pct"] = r.choice([0.25, 0.5, 1.0])
    droppable = ["num_key_value_heads", "head_dim", "tie_word_embeddings", "rms_norm_eps", "layer_norm_eps",
                 "hidden_act", "hidden_activation", "sliding_window", "layer_types", "attention_bias", "mlp_bias",
                 "use_sliding_window", "max_window_layers", "max_position_embeddings", "query_pre_attn_scalar",
                 "final_logit_softcapping",
                 "attn_logit_softcapping", "use_parallel_residual", "rope_parameters", "rope_theta", "rotary_pct",
                 "rotary_emb_base", "rope_local_base_freq", "architectures", "original_max_position_embeddings",
                 "partial_rotary_factor"]
    for key in droppable:
        if key in config and r.random() < 0.1:
            del config[key]
    numbers = ("num_key_value_heads", "head_dim", "sliding_window")
    for key in [*numbers[:2], "rope_scaling", "layer_types", "sliding_window", "final_logit_softcapping"]:
        # Null means the same as a missing key; some classes of Transformers want a number.
        if key in config and r.random() < 0.03 and not (
                key in numbers and kind not in ("llama", "phi3", "olmo2")):
            config[key] = None


def misplace(r, model, tensors):
    """Names and heads as published models have them."""
    config, out = model.config, "lm_head.weight"
    base = model.base_model_prefix + "."
    embedding = next(n for n in tensors if "embed" in n)
    kind = r.random()
    if config.tie_word_embeddings:
        tensors.pop(out, None)
        if kind < 0.25:
            tensors[out] = torch.randn(tensors[embedding].shape) / math.sqrt(config.hidden_size)
        elif kind < 0.35:
            tensors[out] = tensors[embedding].clone()
        elif kind < 0.45:
            tensors[out] = tensors.pop(embedding)
    elif kind < 0.08:
        tensors.pop(out)
    if config.model_type == "gpt_neox" and out in tensors and r.random() < 0.6:
        tensors["embed_out.weight"] = tensors.pop(out)
    kind = r.random()
    if kind < 0.2:
        return {n.removeprefix(base): t for n, t in tensors.items()}
    if kind < 0.24:
        return {r.choice(["language_model.", "transformer."]) + n: t for n, t in tensors.items()}
    if kind < 0.27:
        return {n.replace(base, "transformer."): t for n, t in tensors.items()}
    if kind < 0.29:
        return {"model." + n: t for n, t in tensors.items()}
    return tensors


def save(r, tensors, folder):
    if r.random() < 0.7:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    parts, names = r.choice([2, 3]), sorted(tensors)
    weight_map = {}
    for part in range(parts):
        file = f"model-{part + 1:05}-of-{parts:05}.safetensors"
        chosen = names[part::parts]
        if chosen:
            save_file({n: tensors[n] for n in chosen}, folder / file, metadata={"format": "pt"})
        weight_map.update({n: file for n in chosen})
    index = {"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def draw_model(r, kind):
    """Returns a draw that Transformers can build."""
    while True:
        config = draw_config(r, kind)
        try:
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **json.loads(json.dumps(config))),
                                                     attn_implementation="eager")
            return config, model.float().eval()
        except (ValueError, RuntimeError):
            continue


def write(r, kind, folder):
    config, model = draw_model(r, kind)
    fill(model, r)
    torch.manual_seed(r.randrange(1 << 30))
    dtype = r.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
    tensors = misplace(r, model, {n: t.detach().clone() for n, t in model.state_dict().items()})
    folder.mkdir(parents=True)
    save(r, {n: t.to(dtype).contiguous() for n, t in tensors.items()}, folder)
    written = {"architectures": [type(model).__name__], "model_type": kind, "torch_dtype": str(dtype)[6:], **config}
    if r.random() < 0.1:
        written["architectures"] = [type(model.base_model).__name__]
    misspell(r, kind, written)
    (folder / "config.json").write_text(json.dumps(written, indent=1))
    return [r.randrange(config["vocab_size"]) for _ in range(r.choice([30, 90, 150]))]


# --- results of Transformers ---


@torch.inference_mode()
def nll_of(model, tokens):
    logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
    return torch.nn.functional.cross_entropy(logits[:-1].double(), torch.tensor(tokens[1:]), reduction="none")


def expected(folder, tokens):
    """Returns (f64, f32) NLL, or the reason why there are none."""
    try:
        model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                           experts_implementation="eager",
                                                           output_loading_info=True)
        missing = {n for n in info["missing_keys"] if not n.endswith("inv_freq")}
        if missing or info["mismatched_keys"]:
            return None, f"missing {sorted(missing)[:3]} mismatched {list(info['mismatched_keys'])[:2]}"
        single = nll_of(model.eval(), tokens)
        return (nll_of(model.double(), tokens), single), ""
    except Exception as error:  # whatever it is, the folder does not run
        return None, f"{type(error).__name__}: {error}".replace("\n", " ")[:200]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recent", action="store_true", help="the families of random_families.py")
    parser.add_argument("--only", nargs="+", default=[], metavar="TYPE", help="these model types alone")
    parser.add_argument("--keep", help="folder for the models")
    parser.add_argument("--verbose", action="store_true", help="show what both refuse, too")
    options = parser.parse_args()
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    ours = subprocess.Popen([options.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    counts, worst, good = {}, 0.0, True
    for number in range(options.models):
        r = random.Random(f"{options.seed}/{number}")
        kinds = options.only or (list(random_families.FAMILIES) if options.recent else CLASSES)
        kind, target = kinds[number % len(kinds)], folder / f"{number:04}"
        tokens = (random_families.write if options.recent else write)(r, kind, target)
        theirs, reason = expected(target, tokens)
        ours.stdin.write(json.dumps({"model": str(target), "tokens": tokens}) + "\n")
        ours.stdin.flush()
        result = json.loads(ours.stdout.readline())
        taken = "nll" in result
        verdict = "equal" if taken and theirs else "refused by both" if not taken and not theirs else \
            "taken here alone" if taken else "refused here alone"
        note = ""
        if verdict == "equal":
            off = (torch.tensor(result["nll"], dtype=torch.float64) - theirs[0]).abs().max().item()
            own = (theirs[1] - theirs[0]).abs().max().item()
            worst = max(worst, off)
            if not off <= max(1e-4, 5 * own):
                verdict = "different"
                note = f"off by {off:.2g}, Transformers' f32 by {own:.2g}; notes {result['notes']}"
        else:
            note = f"ours: {result.get('error', 'runs')} | theirs: {reason or 'runs'}"
            if verdict == "refused here alone" and any(words in result["error"] for words, _ in REFUSED):
                verdict = "refused here alone, as documented"
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict in ("different", "taken here alone", "refused here alone"):
            good = False
        if verdict != "equal" and (verdict != "refused by both" or options.verbose):
            print(f"{number:04} {kind}: {verdict}: {re.sub(re.escape(str(target)), '.', note)}", flush=True)
        if not options.keep:
            shutil.rmtree(target)
    print(f"{options.models} models: {counts}; largest difference of equal ones {worst:.2g}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
