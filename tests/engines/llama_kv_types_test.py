# SPDX-License-Identifier: Apache-2.0
"""Quantised caches: rows against the golden rows, and KL divergence against unmodified llama.cpp and llama-perplexity.

Both programs compare with their own unquantised cache, on the same tokens of the same GGUF file. Its weights are in
f32: llama.cpp quantises the activations of products with Q4_1 weights to 8 bits, and its own logits then differ by a KL
divergence of 0.004 between two exact ways to compute attention.

The rows have the same bits, but the mean KL of a text does not agree closely. llama.cpp's CPU attention quantises each
query to 8 bits where keys are quantised. This changes the next layers' states a little, and so some of their codes: the
two programs make other errors of the same size (docs/engines.md). The tests therefore compare means by the standard
error of their difference.
"""

import ctypes
import json
import os
import re
import subprocess
import sys

import numpy as np
from llama_cpp import GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, Llama

from exports import BINARIES, FOLDER, MODEL, ROOT, TEXT, check, logits, write_wide

TOKENS = 2048
TYPES = {"q8_0": GGML_TYPE_Q8_0, "q5_1": GGML_TYPE_Q5_1, "q4_0": GGML_TYPE_Q4_0}
PAIRS = (("q8_0", "q4_0"), ("q5_1", "q4_0"), ("q4_0", "q4_0"))
CHUNKS = 5  # of llama-perplexity: as many as TEXT has
BIAS = 0.03  # allowed relative difference of two mean KLs
ERRORS = 3  # allowed standard errors of the difference of two means, if they are more
WIDE = FOLDER / "f32.gguf"
LLAMA = FOLDER / "llama.cpp" / "build" / "bin"
PERPLEXITY = LLAMA / "llama-perplexity"


def check_rows():
    """ggml's blocks and decoded values of the golden rows, which the unit tests compare with ours."""
    ggml = ctypes.CDLL(str(LLAMA / "libggml-base.so"))
    golden = json.loads((ROOT / "tests" / "golden" / "cache_rows.json").read_text())
    x = np.array(golden["x"], np.float32)

    def call(function, source, target):
        getattr(ggml, function)(*(ctypes.c_void_p(array.ctypes.data) for array in (source, target)),
                                ctypes.c_int64(x.size))
        return target

    for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"):
        block = bytes.fromhex(golden[name]["block"])
        found = call(f"quantize_row_{name}_ref", x, np.zeros(len(block), np.uint8))
        check(f"{name}: bytes that differ from ggml's", int((found != np.frombuffer(block, np.uint8)).sum()), 0)
        values = call(f"dequantize_row_{name}", found, np.zeros_like(x))
        check(f"{name}: decoded values", np.abs(values - golden[name]["values"]).max(), 1e-6)


def evaluate(pair, file, *options):
    """Returns the result of `eval` on the documents of `file`, and the config of its cache."""
    config = FOLDER / "judged.json"
    out = subprocess.run([BINARIES / "kvcalibrate", "eval", "--model", WIDE, "--tokens-file", file, "--window",
                          str(TOKENS), "--method", "full", "--set", f"type_k={pair[0]}", f"type_v={pair[1]}",
                          "rotate=on", "--quiet", "--json", "--force", "--save-config", config, *options], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out), config


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def scores(tokens, **types):
    """Returns llama.cpp's logits: [tokens, vocabulary]."""
    model = Llama(str(WIDE), n_ctx=TOKENS, n_batch=TOKENS, logits_all=True, flash_attn=True, verbose=False, **types)
    model.eval(tokens)
    return np.array(model.scores[:len(tokens)])


def effects(reference, found, tokens):
    """Returns what a cache changes at each token but the last: [KL divergence in nats, equal first choice, Δ NLL]."""
    rows = []
    for begin in range(0, len(tokens) - 1, 128):
        of = slice(begin, min(begin + 128, len(tokens) - 1))
        p, q = log_softmax(reference[of]), log_softmax(found[of])
        text = np.arange(len(p)), np.array(tokens[of.start + 1:of.stop + 1])
        rows.append([(np.exp(p) * (p - q)).sum(axis=1), p.argmax(axis=1) == q.argmax(axis=1), p[text] - q[text]])
    return np.concatenate(rows, axis=1)


def check_mean(name, ours, theirs, error, least):
    """@param error  standard error of the difference of the means; `least` is allowed even if it is smaller"""
    print(f"{name}: {ours:.6f} ours, {theirs:.6f} in llama.cpp")
    check(f"{name}, difference (standard error {error:.6f})", abs(ours - theirs), max(least, ERRORS * error))


def judge_by_logits(tokens):
    file = FOLDER / "judged.jsonl"
    file.write_text(json.dumps(tokens) + "\n")
    reference = scores(tokens)
    full = logits(WIDE, evaluate(("none", "none"), file)[1], tokens)
    for pair in PAIRS:
        name = "/".join(pair)
        measured, config = evaluate(pair, file)
        ours = effects(full, logits(WIDE, config, tokens), tokens)
        theirs = effects(reference, scores(tokens, type_k=TYPES[pair[0]], type_v=TYPES[pair[1]]), tokens)
        check(f"{name}: mean KL of eval, relative difference", abs(measured["kl"] / ours[0].mean() - 1), 0.01)
        print(f"{name}: correlation of the KL of tokens {np.corrcoef(ours[0], theirs[0])[0, 1]:.3f}, medians "
              f"{np.median(ours[0]):.6f} ours, {np.median(theirs[0]):.6f} in llama.cpp")
        for what, a, b, least in zip(("mean KL", "equal first choices", "mean ΔNLL"), ours, theirs,
                                     (BIAS * theirs[0].mean(), 0.01, 0.01)):
            check_mean(f"{name}: {what}", a.mean(), b.mean(), (a - b).std(ddof=1) / np.sqrt(len(a)), least)


def perplexity(*options):
    """Runs llama-perplexity, which scores the second half of its context. Returns what it prints."""
    done = subprocess.run([PERPLEXITY, "-m", WIDE, "-c", str(TOKENS), "-b", str(TOKENS), "--chunks", str(CHUNKS), "-fa",
                           "on", "--kl-divergence-base", FOLDER / "base.kld", *options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: llama-perplexity: {done.stderr[-2000:]}")
    return done.stdout + done.stderr


def judge_by_perplexity(tokens):
    """llama-perplexity states the standard error of its own mean, which the difference's hardly exceeds."""
    file, half = FOLDER / "judged.jsonl", TOKENS // 2 - 1
    file.write_text("".join(json.dumps(tokens[n * TOKENS:(n + 1) * TOKENS]) + "\n" for n in range(CHUNKS)))
    (FOLDER / "judged.txt").write_bytes(TEXT.read_bytes())
    perplexity("-f", FOLDER / "judged.txt")
    for pair in PAIRS:
        printed = perplexity("--kl-divergence", "-ctk", pair[0], "-ctv", pair[1])
        mean, error = map(float, re.search(r"Mean\s+KLD:\s+([0-9.]+) ±\s+([0-9.]+)", printed).groups())
        found, _ = evaluate(pair, file, "--stride", str(half))
        check_mean(f"{'/'.join(pair)}, {CHUNKS} texts by llama-perplexity: mean KL", found["kl"], mean, error,
                   BIAS * mean)


def main():
    check_rows()
    vocabulary = Llama(str(MODEL), vocab_only=True, verbose=False)
    tokens = vocabulary.tokenize(TEXT.read_bytes(), add_bos=False, special=True)
    write_wide(WIDE)
    judge_by_logits(tokens[:TOKENS])
    if os.access(PERPLEXITY, os.X_OK):
        judge_by_perplexity(tokens)
    else:
        print("llama-perplexity is not built")


main()
