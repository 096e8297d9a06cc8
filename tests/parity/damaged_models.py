#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged tiny models: each is refused with one line and a status, or runs with right numbers.

Usage: damaged_models.py PATH/TO/model_nll MODELS [--damages 100] [--seed 0] [--only NAME ...] [--transformers] [--verbose]
(MODELS/NAME/hf and MODELS/NAME/model.gguf, as make_models.py writes them; --damages of each)

A damage changes one thing: a value, type, length or name in config.json, a shape, type, name or value of a tensor, a key
or a tensor of the GGUF. The program runs in 2 GiB of address space, a model in 20 s of the processor. Exits with 1 after any of
* a death, no answer in time, a status other than 3, 4 and 5, an error of several lines, with control characters, of more
  than 1,000 bytes, or, unless NaN or infinity met in a pass, without the file's name;
* a damaged tensor with which a model runs and has another NLL than without;
* with --transformers: a damaged config.json with which a folder runs and has another NLL than without, unless Transformers
  has the same for that folder (1e-4, and 5 times the error of its f32).
A changed key of a GGUF may change the NLL; --verbose lists these keys, and all refusals. Exits with 77 without models.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile

import gguf_files
from gguf_files import ARRAY, BOOL, F32, I32, STRING, U32, U64

MEMORY, SECONDS, LONGEST = 2 << 30, 20, 1000
NUMBERS = [0, -1, 1, 2, 3, 7, 255, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 64, 0.5, -0.0, 1e-300, 1e308, math.nan, math.inf, -math.inf]
OTHERS = [None, True, False, "", "x", "\x1b[31m\nred", "é" * 400, [], {}, [[]], [1, 2], {"a": 1}, ["full_attention"]]
WORDS = ["full_attention", "sliding_attention", "linear_attention", "conv", "mamba", "attention", "moe", "default", "yarn", "linear",
         "longrope", "llama3", "dynamic", "silu", "gelu", "relu2"]
ADDED = ["expert_count", "expert_used_count", "attention.sliding_window", "attention.key_length", "attention.value_length",
         "rope.dimension_count", "nextn_predict_layers", "leading_dense_block_count", "expert_group_count", "expert_group_used_count",
         "attention.head_count_kv", "expert_gating_func", "attention.kv_lora_rank", "ssm.conv_kernel", "ssm.state_size",
         "ssm.group_count", "shortconv.l_cache", "attention.shared_kv_layers", "interleave_moe_layer_step", "full_attention_interval",
         "rope.scaling.original_context_length", "expert_shared_count", "expert_shared_feed_forward_length", "attention.indexer.top_k",
         "altup.num_inputs", "embedding_length_per_layer_input", "moe_latent_size", "attention.chunk_size", "attention.scale",
         "logit_scale", "no_rope_interval", "rope.local.freq_base"]
TYPES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1, "F8_E4M3": 1}
GGML_I8, GGML_I32, GGML_I64, GGML_F32 = 24, 26, 27, 0
# Words of Transformers' refusals of folders that run here with other numbers, and the reason.
TAKEN = [("expected float, got int", "a whole number is one"), ("expected bool, got int", "0 and 1 are switches")]
# Beginnings of damages of tensors that change the NLL, and the reason.
OTHER_NUMBERS = [(r"tensor output\.weight", "a GGUF without a head has a tied one"),
                 (r"tensor \S*layer_scalar", "ones in Transformers"),
                 (r"tensor \S*layer_output_scale\S*", "not required in llama.cpp")]


def is_optional(words):
    """@return whether the references, too, run without the tensor of a damage"""
    return any(re.match(tensor + r": (missing|with another name)", words) for tensor, _ in OTHER_NUMBERS)


class Program:
    """model_nll in little address space, started again after a death."""

    def __init__(self, path):
        self.path, self.process = path, None

    def ask(self, model, tokens):
        """@return its answer, or a text about its end"""
        if self.process is None:
            self.process = subprocess.Popen(
                [self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        self.process.stdin.write((json.dumps({"model": str(model), "tokens": tokens}) + "\n").encode())
        self.process.stdin.flush()
        limit = self.seconds() + SECONDS
        while not (ready := select.select([self.process.stdout], [], [], 1)[0]) and self.seconds() < limit:
            pass
        line = self.process.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        if not ready:
            self.process.kill()
        status = self.process.wait()
        self.process = None
        return f"ended with {status}" if ready else f"no answer in {SECONDS} s of the processor"

    def seconds(self):
        """@return the processor's time of the program"""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- damages: each returns words about itself ---


def places(value, path=()):
    """Yields the path of each value in a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def other_value(r, value):
    if isinstance(value, bool):
        return r.choice([not value, int(value), str(value).lower(), None, 2, 0.0])
    if isinstance(value, (int, float)) and r.random() < 0.8:
        return r.choice([*NUMBERS, value + 1, value - 1, value * 2, value / 2, -value, str(value), [value], float(value)])
    if isinstance(value, str) and r.random() < 0.6:
        return r.choice([*WORDS, value.upper(), value + " ", value * 100])
    if isinstance(value, list) and value and r.random() < 0.8:
        return r.choice([value[:-1], value + value[-1:], value[::-1], value[0], value * 50, r.sample(value, len(value)),
                         [None] * len(value)])
    return r.choice(OTHERS + NUMBERS)


def damage_config(r, folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    place = r.choice(list(places(config)))
    holder = config
    for key in place[:-1]:
        holder = holder[key]
    key, name = place[-1], "/".join(str(part) for part in place)
    if isinstance(holder, dict) and r.random() < 0.15:
        del holder[key]
        words = "missing"
    elif isinstance(holder, dict) and r.random() < 0.05:
        holder[str(key) + "_"] = holder.pop(key)
        words = "with another name"
    else:
        holder[key] = other_value(r, holder[key])
        words = json.dumps(holder[key])[:60]
    path.unlink()
    path.write_text(json.dumps(config))
    return f"config.json {name}: {words}"


def with_shape(data, shape, size):
    """@return the shape, and as many of `data`, or more, as it has"""
    length = math.prod(shape) * size
    return shape, (data * (length // max(1, len(data)) + 1))[:length] if data else bytes(length)


def other_shape(r, shape, data, size):
    """@return words, shape, data of `size` bytes a value"""
    shape, count = list(shape), math.prod(shape)
    shapes = {"flat": [count], "in a list": [1, *shape], "a column": [count, 1], "reversed": shape[::-1], "empty": [0], "a number": [],
              "with an axis of 0": [*shape[:-1], 0], "twice as long": [*shape[:-1], 2 * (shape or [1])[-1]],
              "of twice the rows": [2 * (shape or [1])[0], *shape[1:]], "of five axes": [1, 1, 1, *shape[-1:], count // (shape or [1])[-1]]}
    for axis, length in enumerate(shape):
        shapes[f"one less on axis {axis}"] = [*shape[:axis], max(1, length - 1), *shape[axis + 1:]]
        shapes[f"half of axis {axis}"] = [*shape[:axis], max(1, length // 2), *shape[axis + 1:]]
    words = r.choice(sorted(shapes))
    return words, *with_shape(data, shapes[words], size)


def read_safetensors(path):
    """@return name → (type, shape, bytes), in the file's order"""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: (of["dtype"], of["shape"], data[start + of["data_offsets"][0]:start + of["data_offsets"][1]])
            for name, of in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"])}


def write_safetensors(tensors, path):
    header, offset = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    path.unlink()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data for _, _, data in tensors.values()))


def damage_tensors(r, folder):
    path = r.choice(sorted(folder.glob("*.safetensors")))
    tensors = read_safetensors(path)
    name = r.choice(sorted(tensors))
    kind, shape, data = tensors[name]
    change = r.randrange(8)
    if change < 4:
        words, shape, data = other_shape(r, shape, data, TYPES[kind])
        tensors[name] = kind, shape, data
    elif change == 4:
        words = r.choice(["I64", "I32", "U8", "BOOL", "F8_E4M3"])
        tensors[name] = words, *with_shape(data, shape, TYPES[words])
    elif change == 5:
        words = "missing"
        del tensors[name]
    elif change == 6:
        words = "with another name"
        tensors[r.choice([name.upper(), "x." + name, name + "x", "é" * 100])] = tensors.pop(name)
    else:
        words = "NaN"
        tensors[name] = kind, shape, b"\xff" * len(data)
    write_safetensors(tensors, path)
    return f"tensor {name}: {words}"


def damage_folder(r, folder):
    return damage_config(r, folder) if r.random() < 0.65 else damage_tensors(r, folder)


def other_number(r, kind, value):
    """@return (GGUF type, value)"""
    if r.random() < 0.35:
        return r.choice([(STRING, str(value)), (BOOL, bool(value)), (F32, float(value)), (I32, -1), (U64, 1 << 40), (ARRAY, (U32, [int(value)] * 2)),
                         (ARRAY, (U32, [])), (ARRAY, (BOOL, [True])), (F32, math.nan), (F32, math.inf)])
    if kind == F32:
        return kind, r.choice([0.0, -1.0, 1.0, value * 2, 1e-30, 3e38, math.nan, -math.inf])
    return kind, r.choice([0, 1, 2, value + 1, max(0, value - 1), value * 2, 255, (1 << 31) - 1])


def damage_key(r, file):
    if r.random() < 0.2:
        key = f"{file.keys['general.architecture'][1]}.{r.choice(ADDED)}"
        file.keys[key] = r.choice([(U32, r.choice([0, 1, 2, 3, 8, 1 << 31])), (F32, 0.5), (STRING, "x")])
        return f"key {key}: {file.keys[key][1]}"
    key = r.choice(sorted(file.keys))
    kind, value = file.keys[key]
    if r.random() < 0.15:
        del file.keys[key]
        return f"key {key}: missing"
    if kind == ARRAY:
        of, values = value
        file.keys[key] = r.choice([(kind, (of, values[:-1])), (kind, (of, values + values[-1:])), (kind, (of, [])), (kind, (of, values[::-1])),
                                   (U32, 1), (kind, (STRING, ["x"] * len(values))), (kind, (of, values * 1000))])
    elif kind == STRING:
        file.keys[key] = kind, r.choice(["", "llama", "\x1b[31m\n", "x" * 500, "yarn", "linear", value + "x"])
    elif kind == BOOL:
        file.keys[key] = r.choice([(kind, not value), (U32, int(value)), (STRING, "true")])
    else:
        file.keys[key] = other_number(r, kind, value)
    return f"key {key}: {str(file.keys[key])[:60]}"


def damage_gguf_tensor(r, file):
    name = r.choice(sorted(file.tensors))
    shape, kind, data = file.tensors[name]
    change = r.randrange(8)
    if change < 4:
        words, shape, data = other_shape(r, shape, data, 4)
        file.tensors[name] = shape, kind, data
    elif change == 4:
        words = "missing"
        del file.tensors[name]
    elif change == 5:
        words = "with another name"
        file.tensors[r.choice(["x" * 60, name + "x", name.replace("blk.0.", "blk.9."), name.upper()])] = file.tensors.pop(name)
    elif change == 6:
        other = r.choice([GGML_I32, GGML_I8, GGML_I64, 99, 5])
        words = f"of type {other}"
        size = {GGML_I8: 1, GGML_I64: 8}.get(other, 4)
        file.tensors[name] = shape, other, with_shape(data, shape, size)[1]
    else:
        words = "NaN"
        file.tensors[name] = shape, kind, b"\xff" * len(data)
    return f"tensor {name}: {words}"


def damage_gguf(r, path):
    file = gguf_files.read(path)
    words = damage_key(r, file) if r.random() < 0.6 else damage_gguf_tensor(r, file)
    path.unlink()
    path.write_bytes(file.bytes())
    return words


# --- judgements: each returns what is wrong, or nothing ---


def problem_of_error(answer, name):
    text = answer["error"]
    if answer["status"] not in (3, 4, 5):
        return f"status {answer['status']}: {text}"
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        return f"control characters: {text!r}"
    if len(text.encode()) > LONGEST:
        return f"{len(text.encode())} bytes: {text}"
    return "" if name in text or answer["status"] == 5 else f"no file is named: {text}"


def difference(found, expected):
    """@return the largest difference; infinite if a number is not"""
    if len(found) != len(expected) or not all(isinstance(value, float) and math.isfinite(value) for value in found):
        return math.inf
    return max(abs(a - b) for a, b in zip(found, expected))


def problem_with_transformers(nll, folder, tokens):
    import random_models
    theirs, reason = random_models.expected(folder, tokens)
    if theirs is None:
        return "" if any(words in reason for words, _ in TAKEN) else f"other numbers; Transformers: {reason}"
    own = (theirs[1] - theirs[0]).abs().max().item()
    off = difference(nll, theirs[0].tolist())
    return "" if off <= max(1e-4, 5 * own) else f"off by {off:.2g} from Transformers, whose f32 by {own:.2g}"


class Run:
    def __init__(self, options):
        self.options, self.program = options, Program(options.program)
        self.counts, self.failures = collections.Counter(), 0

    def problem(self, answer, words, target, sound, tokens):
        if isinstance(answer, str):
            self.counts["died"] += 1
            return answer
        if "error" in answer:
            self.counts["refused"] += 1
            if self.options.verbose:
                print(f"  {words}: {answer['error']}")
            return problem_of_error(answer, str(target))
        if difference(answer["nll"], sound) <= 1e-5:
            self.counts["equal"] += 1
            return ""
        self.counts["other"] += 1
        if words.startswith("tensor "):
            return "" if is_optional(words) else "runs with other numbers"
        if words.startswith("config.json ") and self.options.transformers:
            return problem_with_transformers(answer["nll"], target, tokens)
        if self.options.verbose:
            print(f"  {words}: other numbers")
        return ""

    def damage(self, name, base, target, damaging, tokens):
        """@return number of failures"""
        answer = self.program.ask(base, tokens)
        if "nll" not in answer:
            print(f"{base}: does not run: {answer}")
            self.failures += 1
            return
        for number in range(self.options.damages):
            r = random.Random(f"{self.options.seed}/{name}{target.suffix}/{number}")
            if base.is_dir():
                shutil.copytree(base, target)
            else:
                shutil.copyfile(base, target)
            words = damaging(r, target)
            problem = self.problem(self.program.ask(target, tokens), words, target, answer["nll"], tokens)
            if problem:
                self.failures += 1
                print(f"{name}{target.suffix} {number}: {words}: {problem}", flush=True)
            if base.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink()


def tokens_of(folder):
    config = json.loads((folder / "config.json").read_text())
    vocabulary = config.get("text_config", config)["vocab_size"]
    return [(7 * n + n * n + 3) % vocabulary for n in range(20)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="?", default=os.environ.get("KVS_PARITY_DIR", ""))
    parser.add_argument("--damages", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--transformers", action="store_true", help="compare folders that run with other numbers")
    parser.add_argument("--verbose", action="store_true", help="show refusals, and keys that change the NLL")
    options = parser.parse_args()
    names = options.only or sorted(path.parent.parent.name for path in pathlib.Path(options.models or "/none").glob("*/hf/config.json"))
    if not names:
        print("skipped: no models; scripts/parity.sh makes them")
        return 77
    run = Run(options)
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            models, target = pathlib.Path(options.models) / name, pathlib.Path(scratch) / name
            tokens = tokens_of(models / "hf")
            run.damage(name, models / "hf", target, damage_folder, tokens)
            if (models / "model.gguf").exists():
                run.damage(name, models / "model.gguf", target.with_suffix(".gguf"), damage_gguf, tokens)
    print(f"{len(names)} models: {dict(run.counts)}; {run.failures} findings")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
