# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of exports in Transformers and the gguf package, against those of the model that was exported: ids with
and without what stands around a text, decoding with and without special tokens, BOS, chat templates."""

import json
import shutil
import sys

import torch
from gguf import GGUFReader, TokenType
from transformers import AutoModelForCausalLM, AutoTokenizer

from exports import FOLDER, ROOT, export, run, tiny_config, tiny_model

sys.path.insert(0, str(ROOT / "tests" / "parity"))
from write_gguf import write_gguf

GOLDEN = ROOT / "tests" / "golden"
TEXTS = ["", "The sun's rays, 1704", "<x>a <y> the<|im_start|>end <s>b</s> ", "two  spaces\n\tdef f(x): x**2", "the <usr> end<ctl>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
TALK = [{"role": "user", "content": "Hi"}]


def token(content, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **flags}


def begins_with(text, number):
    """Makes a post-processor that puts a token before a text."""
    special, sequence = {"SpecialToken": {"id": text, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [special, sequence], "pair": [special, sequence],
            "special_tokens": {text: {"id": text, "ids": [number], "tokens": [text]}}}


def same(name, ours, theirs, texts=TEXTS):
    """`theirs` is the source's AutoTokenizer."""
    for text in texts:
        for special in (True, False):
            ids, found = (t(text, add_special_tokens=special)["input_ids"] for t in (theirs, ours))
            assert found == ids, (name, text, special, found, ids)
            for skip in (True, False):
                expected, found = (t.decode(ids, skip_special_tokens=skip) for t in (theirs, ours))
                assert found == expected, (name, text, skip, found, expected)
    assert ours.bos_token_id == theirs.bos_token_id, (name, ours.bos_token_id, theirs.bos_token_id)
    if theirs.chat_template:
        expected, found = (t.apply_chat_template(TALK, tokenize=False) for t in (theirs, ours))
        assert found == expected, (name, found, expected)
    print(f"{name}: {len(texts)} texts equal", flush=True)


def folder_sources(source):
    """Puts one tokenizer after the other into the folder of a model."""
    small, marked = (json.loads((GOLDEN / f"tokenizer_{name}.json").read_text()) for name in ("small", "marked"))
    decoder = {"decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}}
    beside = {"added_tokens_decoder": {"693": token("<x>"), "694": token("<y>", special=False)}}
    llama3 = {**small, **decoder, "post_processor": begins_with("<|endoftext|>", 0)}
    yield "template says BOS", llama3, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|endoftext|>", **beside}
    yield "class of its own", {**small, **decoder}, {"tokenizer_class": "Qwen2Tokenizer", **beside}
    yield "add_prefix_space", {**small, **decoder}, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}
    yield "no config", {**small, **decoder}, None
    yield "LlamaTokenizer", {**marked, "post_processor": begins_with("<s>", 1)}, {"tokenizer_class": "LlamaTokenizer"}


def check_folders():
    source, _ = tiny_model(0, tied=False, vocabulary=1024)
    (source / "chat_template.jinja").write_text(TEMPLATE)
    fp8 = FOLDER / "fp8.json"
    for name, tokenizer, config in folder_sources(source):
        (source / "tokenizer.json").write_text(json.dumps(tokenizer))
        (source / "tokenizer_config.json").unlink(missing_ok=True)
        if config is not None:
            (source / "tokenizer_config.json").write_text(json.dumps(config))
        reference = AutoTokenizer.from_pretrained(source)
        elite = tiny_config(source)
        run("kvcalibrate", "eval", "--model", source, "--tokens-file", FOLDER / "tiny.jsonl", "--window", 64, "--method", "full",
            "--set", "type=fp8", "--save-config", fp8, "--force", "--quiet")
        for target in ("hf-youtu", "hf-deepseek", "elitekv", "vllm-fp8"):
            out = FOLDER / "tokenizer-export"
            shutil.rmtree(out, ignore_errors=True)
            export(target, fp8 if target == "vllm-fp8" else elite, source, out)
            same(f"{name}, {target}", AutoTokenizer.from_pretrained(out), reference)
        check_gguf(name, export("gguf-deepseek2", elite, source, FOLDER / "tokenizer.gguf"), reference)


def check_gguf(name, path, reference):
    """The keys of a GGUF file have the values of the source."""
    fields = GGUFReader(path).fields
    value = lambda key: fields["tokenizer." + key].contents() if "tokenizer." + key in fields else None
    if value("ggml.model") == "none":
        print(f"{name}: no tokenizer in the GGUF file")
        return
    tokens, types = value("ggml.tokens"), value("ggml.token_type")
    for content, number in reference.get_vocab().items():
        assert tokens[number] == content, (name, number, tokens[number], content)
    for number, added in reference.added_tokens_decoder.items():
        assert types[number] == (TokenType.CONTROL if added.special else TokenType.USER_DEFINED), (name, number, types[number])
    begins = reference("a")["input_ids"][0] == reference.bos_token_id
    assert value("ggml.add_bos_token") == begins, (name, value("ggml.add_bos_token"))
    assert reference.bos_token_id is None or value("ggml.bos_token_id") == reference.bos_token_id
    assert value("chat_template") == reference.chat_template
    print(f"{name}, gguf-deepseek2: keys equal", flush=True)


def check_gguf_sources():
    """HF folders from GGUF files whose keys leave BOS to their pre-tokenizer, with tokens that decoding shows."""
    source, _ = tiny_model(1, tied=False, vocabulary=1024)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    small = json.loads((GOLDEN / "tokenizer_small.json").read_text())
    texts = sorted(small["model"]["vocab"], key=small["model"]["vocab"].get) + ["<usr>", "<ctl>"]
    specials = {entry["content"] for entry in small["added_tokens"]}
    types = [TokenType.CONTROL if t in specials or t == "<ctl>" else TokenType.USER_DEFINED if t == "<usr>" else TokenType.NORMAL
             for t in texts]
    texts += [f"[PAD{i}]" for i in range(len(texts), 1024)]
    types += [TokenType.UNUSED] * (1024 - len(types))
    for pre, begins in (("llama-bpe", True), ("tekken", True), ("qwen2", False), ("gpt-2", False)):
        def add_tokenizer(writer):
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre(pre)
            writer.add_token_list(texts)
            writer.add_token_types(types)
            writer.add_token_merges(small["model"]["merges"])
            writer.add_bos_token_id(0)
            writer.add_chat_template([{"name": "default", "template": TEMPLATE}, {"name": "rag", "template": "{{ 1 }}"}])

        path = FOLDER / "tokenizer-source.gguf"
        write_gguf(model, "llama", str(path), add_tokenizer)
        out = FOLDER / "tokenizer-export"
        shutil.rmtree(out, ignore_errors=True)
        tokenizer = AutoTokenizer.from_pretrained(export("hf-youtu", tiny_config(path), path, out))
        assert tokenizer.bos_token_id == 0
        assert (tokenizer("the end")["input_ids"][0] == 0) == begins, pre
        usr, ctl = texts.index("<usr>"), texts.index("<ctl>")
        assert tokenizer("a<usr>b<ctl>", add_special_tokens=False)["input_ids"][1::2] == [usr, ctl]
        assert tokenizer.decode([usr, ctl], skip_special_tokens=True) == "<usr>"
        assert tokenizer.decode([usr, ctl]) == "<usr><ctl>"
        assert tokenizer.get_chat_template() == TEMPLATE and tokenizer.get_chat_template("rag") == "{{ 1 }}"
        print(f"GGUF with pre-tokenizer {pre}: BOS {'asked for' if begins else 'not asked for'}, templates, special tokens kept")


check_folders()
check_gguf_sources()
