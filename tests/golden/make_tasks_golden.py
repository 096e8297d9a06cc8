#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden prompts of the retrieval tasks, by the programs that define them: tasks.json.

Usage: make_tasks_golden.py RULER LONGCTX_BENCH

RULER: a checkout of github.com/NVIDIA/RULER at c3f5e3b (Apache-2.0). Its generators run unchanged, with other inputs:
words are those of src/tasks/words.cpp, the essay is data/opticks_sample.txt, sentences end at a blank behind . ? or !,
a token is four bytes. LONGCTX_BENCH: one of github.com/henryzhongsc/longctx_bench at 72204d0 (MIT), whose functions put
a pass key into a text. Needs numpy.
Kept are the SHA-256, tokens and answers of each prompt.
"""
import hashlib
import json
import math
import pathlib
import random
import re
import runpy
import shutil
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SEED = 42
DEPTHS = [0, 0.25, 0.5, 1]
ESSAY = (ROOT / "data/opticks_sample.txt").read_text().strip()
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
RULER_TASKS = {
    "ruler-niah-single-1": ["niah_single_1", 1024, 4096],
    "ruler-niah-single-2": ["niah_single_2", 4096],
    "ruler-niah-single-3": ["niah_single_3", 4096],
    "ruler-niah-multikey-1": ["niah_multikey_1", 4096],
    "ruler-niah-multikey-2": ["niah_multikey_2", 1024, 4096],
    "ruler-niah-multikey-3": ["niah_multikey_3", 2048],
    "ruler-niah-multivalue": ["niah_multivalue", 4096],
    "ruler-niah-multiquery": ["niah_multiquery", 4096],
    "ruler-vt": ["vt", 2048, 4096],
    "ruler-cwe": ["cwe", 2048, 4096],
    "ruler-fwe": ["fwe", 1024, 4096],
}


def tokens(text):
    """Splits a text into pieces of four bytes."""
    data = text.encode()
    return [data[n : n + 4] for n in range(0, len(data), 4)]


def word_lists():
    source = (ROOT / "src/tasks/words.cpp").read_text()
    lists = {}
    for name in ("Adjectives", "Nouns", "Verbs"):
        strings = re.search(rf"k{name} =(.*?);", source, re.DOTALL)[1]
        lists[name] = "".join(re.findall(r'"([^"]*)"', strings)).split()
    return lists


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def install_stand_ins(captured):
    lists = word_lists()
    files = {"nounlist.txt": "Nouns", "adjectivelist.txt": "Adjectives", "verblist.txt": "Verbs"}
    random_word = module("wonderwords.random_word", _get_words_from_text_file=lambda name: lists[files[name]])
    module("wonderwords", random_word=random_word)
    module("tqdm", tqdm=lambda values: values)
    module("nltk")
    module("nltk.tokenize", sent_tokenize=lambda text: re.split(r"(?<=[.?!])\s+", text))
    module("scipy")
    module("scipy.special", zeta=lambda alpha: math.pi**2 / 6 if alpha == 2 else None)
    stand_in = types.SimpleNamespace(text_to_tokens=tokens)
    module("tokenizer", select_tokenizer=lambda kind, path: stand_in)
    module("manifest_utils", write_manifest=lambda path, lines: captured.extend(lines))
    return sorted({f"{a}-{n}" for a in lists["Adjectives"] for n in lists["Nouns"]})


def yaml_of(path):
    """The flat two-level file that RULER keeps its tasks in."""
    tasks = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            current = tasks.setdefault(line.rstrip(":"), {})
        elif ":" in line and not line.startswith("#"):
            key, _, value = line.strip().partition(": ")
            if value:
                current[key] = value
    return tasks


def ruler_samples(ruler, name, length, captured):
    captured.clear()
    arguments = yaml_of(ruler / "scripts/synthetic.yaml")[name]
    task = arguments.pop("task")
    folder = ruler / "scripts/data/synthetic"
    sys.path.insert(0, str(folder))
    definition = runpy.run_path(str(folder / "constants.py"))["TASKS"][task]
    template = definition["template"] + definition["answer_prefix"]
    with tempfile.TemporaryDirectory() as out:
        sys.argv = [task, "--save_dir", out, "--save_name", name, "--tokenizer_path", "-", "--tokenizer_type", "hf",
                    "--max_seq_length", str(length), "--tokens_to_generate", str(definition["tokens_to_generate"]),
                    "--num_samples", "2", "--random_seed", str(SEED), "--template", template]
        for key, value in arguments.items():
            sys.argv += [f"--{key}", value]
        runpy.run_path(str(folder / f"{task}.py"), run_name="__main__")
    return [(line["input"] + line["answer_prefix"], line["outputs"]) for line in captured]


def most_words(length, room, prompt):
    fitting = [words for words in range(length) if len(tokens(prompt(words))) + room <= length]
    return fitting[-1]


def passkey_samples(longctx, text, length):
    sys.path.insert(0, str(longctx))
    import eval.passkey_utils.passkey_utils as passkey
    config = json.loads(next((longctx / "config/eval_config").rglob("*_64digits.json")).read_text())["eval_params"]
    random.seed(SEED)
    with tempfile.TemporaryDirectory() as folder:
        background = pathlib.Path(folder) / "text.txt"
        background.write_text(text)
        for depth in DEPTHS:
            target, key = passkey.make_passkey_retrieval_target(
                config["retrieval_target_len"], config["retrieval_target_style"], config["retrieval_target_template"],
                config["retrieval_target_placeholder"], config["retrieval_target_wrapper"])

            def prompt(words):
                filler = passkey.make_background(str(background), words, config["background_filling_style"])
                content = passkey.make_content([depth], [target], filler)
                return config["instruction"] + content + config["retrieval_question"]

            yield prompt(most_words(length, 72, prompt)), [key]


def needle_samples(text, length, compounds):
    random.seed(SEED)
    words = text.split()
    for depth in DEPTHS:
        key = random.choice(compounds)
        value = str(random.randint(10**6, 10**7 - 1))

        def prompt(count):
            sentences = [s for s in re.split(r"(?<=[.?!])\s+", " ".join((words * 100)[:count])) if s]
            sentences.insert(int(len(sentences) * depth), f"One of the special magic numbers for {key} is: {value}.")
            asked = f"special magic number for {key} mentioned in the provided text"
            return (f"A special magic number is hidden within the following text. Make sure to memorize it. I will quiz "
                    f"you about the number afterwards.\n{' '.join(sentences)}\nWhat is the {asked}? The {asked} is")

        yield prompt(most_words(length, 32, prompt)), [value]


def record(samples):
    return [{"sha256": hashlib.sha256(prompt.encode()).hexdigest(), "tokens": len(tokens(prompt)), "answers": answers}
            for prompt, answers in samples]


def main():
    longctx = pathlib.Path(sys.argv[2]).resolve()
    captured = []
    compounds = install_stand_ins(captured)
    entries = []

    def add(task, length, samples, essay=False):
        entries.append({"task": task, "length": length, "haystack": essay, "samples": record(samples)})

    add("passkey", 1024, passkey_samples(longctx, NOISE + " ", 1024))
    add("passkey", 1024, passkey_samples(longctx, ESSAY, 1024), True)
    add("needle", 512, needle_samples(NOISE, 512, compounds))
    add("needle", 1024, needle_samples(ESSAY, 1024, compounds), True)
    with tempfile.TemporaryDirectory() as folder:
        ruler = pathlib.Path(folder) / "ruler"
        shutil.copytree(sys.argv[1], ruler)
        texts = ruler / "scripts/data/synthetic/json"
        (texts / "PaulGrahamEssays.json").write_text(json.dumps({"text": ESSAY}))
        (texts / "english_words.json").write_text(json.dumps(dict(enumerate(compounds))))
        for task, (name, *lengths) in RULER_TASKS.items():
            for length in lengths:
                add(task, length, ruler_samples(ruler, name, length, captured), True)
    golden = {"seed": SEED, "depths": DEPTHS, "tasks": entries}
    (HERE / "tasks.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
