# SPDX-License-Identifier: Apache-2.0
"""KL divergence, tails and first choices of `eval` against exact ones of stored logits, in double."""

import json
import subprocess
import sys

import numpy as np
from llama_cpp import Llama

from exports import BINARIES, FOLDER, MODEL, TEXT, check, logits

WINDOW, DOCUMENTS = 1024, 4
COMMON = ("--model", MODEL, "--tokens-file", FOLDER / "documents.jsonl", "--window", WINDOW, "--quiet", "--force")


def evaluate(*options):
    """Returns the result of `kvcalibrate eval`, and the config of its cache."""
    config = FOLDER / "divergence.json"
    out = subprocess.run([BINARIES / "kvcalibrate", "eval", *map(str, COMMON + options), "--json", "--save-config",
                          str(config)], check=True, capture_output=True, text=True).stdout
    return json.loads(out), config


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def exact(reference, config, documents):
    """Returns KL, equal first choices and |Δ log p| of every scored token of all documents."""
    kls, equal, changes = [], [], []
    for number, tokens in enumerate(documents):
        theirs = logits(MODEL, config, tokens)
        for begin in range(0, WINDOW - 1, 128):
            rows = slice(begin, min(begin + 128, WINDOW - 1))
            p, q = log_softmax(reference[number][rows]), log_softmax(theirs[rows])
            kls.append((np.exp(p) * (p - q)).sum(axis=1))
            equal.append(p.argmax(axis=1) == q.argmax(axis=1))
            text = np.array(tokens)[rows.start + 1:rows.stop + 1]
            changes.append(abs(p[np.arange(len(p)), text] - q[np.arange(len(p)), text]))
    return np.concatenate(kls), np.concatenate(equal), np.concatenate(changes)


def quantile(values, share):
    """The ⌈share · n⌉-th smallest value."""
    return np.sort(values)[int(np.ceil(share * len(values))) - 1]


def main():
    ids = Llama(str(MODEL), vocab_only=True, verbose=False).tokenize(TEXT.read_bytes(), add_bos=False, special=True)
    documents = [ids[n * WINDOW:(n + 1) * WINDOW] for n in range(DOCUMENTS)]
    (FOLDER / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    _, full = evaluate("--method", "full")
    reference = [logits(MODEL, full, tokens) for tokens in documents]
    for options in (("--method", "full", "--set", "type=q8_0"), ("--method", "full", "--set", "type=q4_0"),
                    ("--method", "lagkv", "--set", "ratio=0.25")):
        name = " ".join(options[1:])
        found, config = evaluate(*options)
        kls, equal, changes = exact(reference, config, documents)
        tail, largest = found["tail"], int(kls.argmax())
        check(f"{name}: mean KL, difference in nats", abs(found["kl"] - kls.mean()), 1e-6)
        check(f"{name}: share of equal first choices, difference", abs(found["top1"] - equal.mean()), 1e-12)
        for key, share, values in (("median", .5, kls), ("p99", .99, kls), ("p999", .999, kls),
                                   ("change_p95", .95, changes)):
            check(f"{name}: {key} {tail[key]:.6g}, relative difference", abs(tail[key] / quantile(values, share) - 1),
                  tail["relative_error"] + 1e-4)
        check(f"{name}: mean |Δ log p|, difference in nats", abs(tail["change_mean"] - changes.mean()), 1e-6)
        check(f"{name}: largest KL, relative difference", abs(tail["largest"]["kl"] / kls.max() - 1), 1e-4)
        place = [tail["largest"]["document"], tail["largest"]["position"]]
        if place != [largest // (WINDOW - 1), largest % (WINDOW - 1) + 1]:
            sys.exit(f"FAILED: {name}: place of the largest divergence {place}")


main()
