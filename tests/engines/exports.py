"""What the tests of this folder share: configs, exports, and the logits of kvspectrum's own runtime."""

import json
import os
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
    """An elitekv config with disjoint sets; kept between runs under a name of its own."""
    if not out.exists():
        run("kvcalibrate", "elitekv", "--model", model, "--disjoint", "on", "--out", out, "--quiet", "--no-lock", *options)
    return out


def smollm2_config():
    """r = 10 (30 of 32 frequencies), d_ckv = 192."""
    return calibrate(MODEL, FOLDER / "smollm2.json", "--text", TEXT, "--window", 512, "--documents", 8,
                     "--elite", 10, "--rank", 192)


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
