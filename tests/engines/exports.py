# SPDX-License-Identifier: Apache-2.0
"""Shared code of the tests of this folder: configs, exports, and the logits of kvspectrum's own runtime."""

import hashlib
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


def write_wide(path):
    """Copies MODEL into a GGUF file with all weights in f32."""
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
    from gguf.quants import dequantize

    reader = GGUFReader(MODEL)
    writer = GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in ("general.architecture", "general.file_type"):
            array = field.types[0] == GGUFValueType.ARRAY
            writer.add_key_value(field.name, field.contents(), field.types[0], field.types[-1] if array else None)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, values, raw_dtype=GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


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


def tiny_config(source, *options, elite=3, rank=40):
    return calibrate(source, FOLDER / "tiny.json", "--tokens-file", FOLDER / "tiny.jsonl", "--window", 64, "--elite",
                     elite, "--rank", rank, "--allow-more-parameters", *options)


def tiny_config_by_layer(source, *options, elite=2):
    """Layer 1 has r = `elite` and d_ckv = 24, the others r = 3 and d_ckv = 40."""
    from safetensors.torch import load_file, save_file

    def read(config):
        return json.loads(config.read_text()), load_file(config.with_suffix(".safetensors"))

    other, other_factors = read(tiny_config(source, *options, elite=elite, rank=24))
    config = tiny_config(source, *options)
    whole, factors = read(config)
    factors |= {name: tensor for name, tensor in other_factors.items() if name.startswith("layers.1.")}
    save_file(factors, config.with_suffix(".safetensors"))
    whole["files"][0]["sha256"] = hashlib.sha256(config.with_suffix(".safetensors").read_bytes()).hexdigest()
    parameters, found = whole["parameters"], whole["calibration"]
    parameters.update(r=[3, elite, 3], d_ckv=[40, 24, 40])
    for ours, theirs in ((parameters["elite"], other["parameters"]["elite"]),
                         (parameters.get("ranks", [0, 0]), other["parameters"].get("ranks", [0, 0])),
                         (found["ropelite"]["error"], other["calibration"]["ropelite"]["error"]),
                         (found["singular_values"], other["calibration"]["singular_values"])):
        ours[1] = theirs[1]
    config.write_text(json.dumps(whole))
    run("kvcalibrate", "validate", config)
    return config


def export(name, config, model, out, *options):
    run("kvcalibrate", "export", "--to", name, "--config", config, "--model", model, "--out", out, "--force",
        "--quiet", *options)
    return out


def logits(model, config, tokens):
    """Returns our logits: [tokens, vocabulary]."""
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
