"""What the tests of this folder share: configs, exports, and the logits of kvspectrum's own runtime."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BINARIES, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
MODEL = Path(os.environ["KVS_MODEL"])
TEXT = ROOT / "data" / "opticks_sample.txt"


def run(program, *arguments):
    subprocess.run([BINARIES / program, *map(str, arguments)], check=True)


def calibrate(model, out, *options):
    """An elitekv config with disjoint sets."""
    run("kvcalibrate", "elitekv", "--model", model, "--disjoint", "on", "--out", out, "--force", "--quiet", *options)
    return out


SMOLLM2_CONFIG = FOLDER / "smollm2.json"  # calibrate.py: r = 10 (30 of 32 frequencies), d_ckv = 192


def tiny_model(number, tied=True, vocabulary=128, **rope):
    """A random Llama in FOLDER/tiny: 3 layers, 4 query and 2 KV heads of 16 channels; 64 token ids; its config."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(number)
    source = FOLDER / "tiny"
    shutil.rmtree(source, ignore_errors=True)
    LlamaForCausalLM(LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, vocab_size=vocabulary, max_position_embeddings=256, rms_norm_eps=1e-5, initializer_range=0.2,
        tie_word_embeddings=tied, rope_parameters={"rope_theta": 10000.0, "rope_type": "default", **rope},
    )).save_pretrained(source)
    tokens = torch.randint(0, vocabulary, (64,)).tolist()
    (FOLDER / "tiny.jsonl").write_text(json.dumps(tokens) + "\n")
    return source, tokens


def tiny_config(source, *options):
    return calibrate(source, FOLDER / "tiny.json", "--tokens-file", FOLDER / "tiny.jsonl", "--window", 64, "--elite", 3,
                     "--rank", 40, "--allow-more-parameters", *options)


def export(name, config, model, out, *options):
    run("kvcalibrate", "export", "--to", name, "--config", config, "--model", model, "--out", out, "--force",
        "--quiet", *options)
    return out


def logits(model, config, tokens):
    """Ours: [tokens, vocabulary]."""
    ids, out = FOLDER / "tokens.json", FOLDER / "logits.f32"
    ids.write_text(json.dumps(tokens))
    run("print_logits", model, config, ids, out)
    return np.fromfile(out, np.float32).reshape(len(tokens), -1)


def nll(scores, tokens):
    """Negative log-likelihood of each token after the first, in double."""
    rows = scores[:-1].astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return np.log(np.exp(rows).sum(axis=1)) - rows[np.arange(len(rows)), tokens[1:]]


def check(name, found, most):
    print(f"{name}: {found:.3g}, at most {most:g}", flush=True)
    if not found <= most:
        sys.exit(f"FAILED: {name}")
