#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden ids of tokenizers with files next to tokenizer.json, by AutoTokenizer of Transformers.

Usage: make_auto_tokenizer_golden.py

Writes auto_tokenizer_ids.json to its own folder. Each case has `base`, the tokenizer_BASE.json that it begins with;
`changes`, a JSON merge patch to it; `files`, the files next to it; the ids of TEXTS and the id of bos_token (null
if there is none). Made with transformers 5.24.0, tokenizers 0.23.3.
"""
import json
import os
import pathlib
import random
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
BASES = {name: json.loads((HERE / f"tokenizer_{name}.json").read_text()) for name in ("small", "marked")}
TEXTS = ["", "the <x> end", " the<x>  <y>the", "<x>the the <|im_start|> the", "a <s>b</s> c<unk>", "don't 123 \u00e9e\u0301 \u0416\U0001F600",
         "  two  spaces <y><y>x", "<z>brown<z> quick\n\n<x> \t", "<|endoftext|>it<bos>is<mask>", "the th he"]
CLASSES = ["PreTrainedTokenizerFast", "TokenizersBackend", "LlamaTokenizer", "LlamaTokenizerFast", "GPT2Tokenizer",
           "Qwen2Tokenizer", "Qwen2TokenizerFast", "GPTNeoXTokenizer", "GemmaTokenizer", "MysteryTokenizer"]
MODEL_TYPES = ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "olmo2", "gpt_neox"]


def token(content, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **flags}


def named(content, **flags):
    return {**token(content, **flags), "__type": "AddedToken"}


def case(base="small", changes=None, model_type="llama", **files):
    names = {"config": "tokenizer_config.json", "map": "special_tokens_map.json", "added": "added_tokens.json"}
    return {"base": base, "changes": changes or {},
            "files": {"config.json": {"model_type": model_type}, **{names[key]: value for key, value in files.items()}}}


def with_added(*more, base="small"):
    return {"added_tokens": BASES[base]["added_tokens"] + [{"id": i, **entry} for i, entry in more]}


def fixed_cases():
    size = len(BASES["small"]["model"]["vocab"])
    fast = {"tokenizer_class": "PreTrainedTokenizerFast"}
    decoder = lambda **tokens: {**fast, "added_tokens_decoder": {key[1:]: value for key, value in tokens.items()}}
    yield "nothing", case()
    yield "decoder", case(config=decoder(**{f"_{size}": token("<x>"), f"_{size + 1}": token("<y>", special=False)}))
    yield "decoder, order of ids", case(config=decoder(**{f"_{size + 10}": token("<x>"), f"_{size + 9}": token("<y>")}))
    yield "decoder, flags", case(config=decoder(**{"_1": token("<|im_start|>", rstrip=True, lstrip=True),
                                                    f"_{size}": token("<x>", rstrip=True, special=False, normalized=True)}))
    yield "decoder, known text", case(config=decoder(_77=token("th", single_word=True), _78=token("the", special=False)))
    yield "added_tokens.json", case(config=fast, added={"<y>": size + 1, "<x>": size, "th": 3})
    yield "additional", case(config={**fast, "additional_special_tokens": ["<x>", named("<y>", lstrip=True)]})
    yield "extra", case(config={**fast, "extra_special_tokens": ["<y>", "<x>"], "additional_special_tokens": ["<z>"]})
    yield "extra, empty", case(config={**fast, "extra_special_tokens": [], "additional_special_tokens": ["<z>"]})
    yield "extra, named", case(config={**fast, "extra_special_tokens": {"image_token": "<x>"}, "audio_token": "<y>"})
    yield "map", case(config=fast, map={"additional_special_tokens": ["<x>"], "bos_token": "<y>", "eos_token": token("<z>", rstrip=True)})
    yield "map, additional beside an empty list", case(config={**fast, "additional_special_tokens": []},
                                                        map={"additional_special_tokens": ["<x>"]})
    yield "two names of one text", case(config={**fast, "eos_token": "<x>", "image_token": named("<x>", rstrip=True)})
    yield "map, extra", case(config={**fast, "extra_special_tokens": ["<x>"]}, map={"extra_special_tokens": ["<y>"], "pad_token": "<x>"})
    yield "map beside a decoder", case(config=decoder(**{f"_{size}": token("<x>")}), map={"bos_token": "<y>"}, added={"<z>": size + 3})
    yield "map without config", case(map={"additional_special_tokens": ["<x>"], "bos_token": named("<y>", rstrip=True)})
    yield "bos unknown", case(config={**fast, "bos_token": "<x>", "add_bos_token": True})
    yield "bos known", case(config={**fast, "bos_token": named("<|im_start|>", rstrip=True), "pad_token": None})
    yield "bos of the vocabulary", case(config={**fast, "bos_token": "th"})
    yield "split_special_tokens", case(config={**decoder(**{f"_{size}": token("<x>"), f"_{size + 1}": token("<y>", special=False)}),
                                               "split_special_tokens": True})
    yield "add_prefix_space alone", case(config={**fast, "add_prefix_space": True})
    for name in ("GPT2Tokenizer", "Qwen2Tokenizer"):
        yield "add_prefix_space, " + name, case(config={"tokenizer_class": name, "add_prefix_space": True})
    yield "add_prefix_space, LlamaTokenizer", case("marked", config={"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False})
    yield "legacy", case("marked", config={"tokenizer_class": "LlamaTokenizer", "legacy": True})
    yield "LlamaTokenizer of bytes", case(config={"tokenizer_class": "LlamaTokenizer"})
    for base in BASES:
        for name in CLASSES:
            yield f"{name}, {base}", case(base, config={"tokenizer_class": name})
        for model_type in MODEL_TYPES:
            yield f"{model_type}, {base}", case(base, model_type=model_type)
            yield f"{model_type}, {base}, fast", case(base, model_type=model_type, config=fast)
    # The parts that `tokenizers` reads in a tokenizer.json.
    yield "gap", case(changes=with_added((size + 5, token("<x>"))))
    yield "twice", case(changes=with_added((size, token("<x>")), (size, token("<x>"))))
    yield "twice, other flags", case(changes=with_added((size, token("<x>")), (size, token("<x>", rstrip=True))))
    yield "two ids", case(changes=with_added((size, token("<x>")), (size + 1, token("<x>")), (size + 2, token("<y>"))))
    yield "one id", case(changes=with_added((size, token("<x>")), (size, token("<y>"))))
    yield "id of the vocabulary", case(changes=with_added((50, token("<x>")), (51, token("th"))))
    yield "order", case(changes=with_added((size + 1, token("<y>")), (size, token("<x>"))))
    yield "unknown token that is none", case(changes={"model": {"unk_token": "<nope>"}})
    yield "gap in the vocabulary", case(changes={"model": {"vocab": {"zz": size + 7}}, **with_added((size + 8, token("<x>")))})
    yield "two texts of one id", case(changes={"model": {"vocab": {"zz": 50}}})
    yield "outside the alphabet", case(changes={"model": {"vocab": {"a b": size}}})


def random_case(seed):
    """Returns files drawn at random, which need not agree."""
    r = random.Random(seed)
    base = r.choice(list(BASES))
    size = len(BASES[base]["model"]["vocab"])
    words = ["<x>", "<y>", "<z>", "th", "the", "<s>", "</s>", "<unk>", "<|im_start|>", "<bos>", "brown", "<mask>"]
    flags = lambda: {key: True for key in ("single_word", "lstrip", "rstrip", "normalized") if r.random() < 0.2} | (
        {"special": False} if r.random() < 0.3 else {})
    one = lambda: r.choice([r.choice(words), named(r.choice(words), **flags())])
    files, config = {}, {}
    if r.random() < 0.7:
        config["tokenizer_class"] = r.choice(CLASSES)
    if r.random() < 0.4:
        config["added_tokens_decoder"] = {str(r.randrange(size + 6) if r.random() < 0.3 else size + i): token(r.choice(words), **flags())
                                          for i in range(r.randrange(4))}
    for key in ("extra_special_tokens", "additional_special_tokens"):
        if r.random() < 0.3:
            config[key] = [one() for _ in range(r.randrange(3))]
    for key in ("bos_token", "eos_token", "unk_token", "pad_token", "image_token"):
        if r.random() < 0.3:
            config[key] = one() if r.random() < 0.8 else None
    for key in ("split_special_tokens", "add_prefix_space", "legacy"):
        if r.random() < 0.2:
            config[key] = r.random() < 0.6
    if r.random() < 0.8:
        files["config"] = config
    if r.random() < 0.3:
        files["map"] = {key: r.choice([r.choice(words), token(r.choice(words), **flags())]) for key in ("bos_token", "eos_token", "pad_token")
                        if r.random() < 0.5} | ({"additional_special_tokens": [r.choice(words)]} if r.random() < 0.5 else {})
    if r.random() < 0.3:
        files["added"] = {w: size + i for i, w in enumerate(r.sample(words, r.randrange(4)))}
    changes = {}
    if r.random() < 0.4:
        changes = with_added(*((size + r.randrange(5), token(r.choice(words), **flags())) for _ in range(r.randrange(4))), base=base)
    return case(base, changes, r.choice(MODEL_TYPES), **files)


def merged(target, patch):
    """Applies a merge patch (RFC 7396 without nulls)."""
    if not isinstance(patch, dict):
        return patch
    return {**target, **{key: merged(target.get(key, {}) if isinstance(target, dict) else {}, value) for key, value in patch.items()}}


def write_folder(folder, one):
    (folder / "tokenizer.json").write_text(json.dumps(merged(BASES[one["base"]], one["changes"])))
    for name, content in one["files"].items():
        (folder / name).write_text(json.dumps(content))


def reference(folder):
    """Returns the ids of TEXTS and of bos_token; @raise Exception as Transformers raises it."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return {"ids": [tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS], "bos": tokenizer.bos_token_id}


def main():
    rows = {"texts": TEXTS}
    for name, one in fixed_cases():
        with tempfile.TemporaryDirectory() as folder:
            write_folder(pathlib.Path(folder), one)
            try:
                rows[name] = one | reference(folder)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {error}")
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(row, separators=(',', ':'))}" for key, row in rows.items())
    (HERE / "auto_tokenizer_ids.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
