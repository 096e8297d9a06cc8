#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configs as kvspectrum 0.1.2 wrote them, one of each method and storage type, and the results of `eval` with them.

Usage: make_configs_0_1.py BIN        (BIN: a folder with kvcalibrate 0.1.2; fills configs_0_1 in its own folder)

The model is tiny_llama_gqa, the documents are three texts of 70 random ids in windows of 32. nll.json holds each
config's mean NLL on them.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TEXT = ["--model", "tiny_llama_gqa", "--tokens-file", "configs_0_1/tokens.jsonl", "--window", "32", "--threads", "1", "--quiet"]
SAVED = {
    "full": "",
    "full_types": "store_k=fp8 store_v=f16 scale_k=0.5,2 rotate=off",
    "streaming": "cache_size=16 sinks=2",
    "dropping": "cache_size=16,20 sinks=2 gamma=0.5,0.25 rope=post store=bf16",
    "freqkv": "cache_size=16 sinks=2 recent=2 layers=1",
    "faedkv": "prefix=20 sinks=2 recent=3 chunks=4 kept=0-1/2 kept_v=0",
    "lagkv": "sinks=2 lag=4 ratio=0.25 variant=local value_weight=0.5",
    "h2o": "cache_size=16 recent=8 store=fp8",
    "snapkv": "prefix=20 cache_size=12 window=4 kernel=3",
    "l2norm": "prefix=20 ratio=0.25 skip_layers=0",
    "kivi": "bits=2 group=8 residual=8",
    "gqa": "heads=1,2",
}
HELD = ["--budget", "75%", "--windows", "0:1", "--held-windows", "1:2"]
CALIBRATED = {
    "faedkv_ablation": ["faedkv", "--chunks", "4", "--sinks", "2", "--recent", "3"],
    "freqkv_budget": ["freqkv", *HELD],
    "lagkv_layers": ["lagkv", *HELD, "--by-layer", "1"],
    "store_heads": ["store", "--per", "head"],
    "elitekv": ["elitekv", "--elite", "1", "--rank", "8"],
    "elitekv_sets": ["elitekv", "--elite", "1"],
    "transform": ["transform", "--budget", "60%", "--sinks", "1", "--recent", "2"],
    "transform_head": ["transform", "--budget", "90%", "--rows", "head"],
}


def run(program, *words):
    done = subprocess.run([program, *words], cwd=HERE, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def main():
    program = pathlib.Path(sys.argv[1]).resolve() / "kvcalibrate"
    os.makedirs(HERE / "configs_0_1", exist_ok=True)
    draw = random.Random(11)
    lines = ([draw.randrange(64) for _ in range(70)] for _ in range(3))
    (HERE / "configs_0_1" / "tokens.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, settings in SAVED.items():
        chosen = ["--set", *settings.split()] if settings else []
        run(program, "eval", *TEXT, "--method", name.split("_")[0], *chosen, "--save-config", f"configs_0_1/{name}.json", "--force")
    for name, (command, *options) in CALIBRATED.items():
        run(program, command, *TEXT, *options, "--out", f"configs_0_1/{name}.json", "--force")
    for ending in ("svg", "png"):
        for figure in (HERE / "configs_0_1").glob("*." + ending):
            figure.unlink()
    found = {}
    for path in sorted((HERE / "configs_0_1").glob("*.json")):
        if path.name in ("nll.json", "elitekv_sets.json"):  # sets without factors are only for export
            continue
        prefix = ["--set", "prefix=20"] if path.stem == "faedkv_ablation" else []
        result = run(program, "eval", *TEXT, "--config", f"configs_0_1/{path.name}", *prefix, "--against", "none", "--json")
        found[path.stem] = json.loads(result)["nll_mean"]
    (HERE / "configs_0_1" / "nll.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
