# SPDX-License-Identifier: Apache-2.0
"""gguf-deepseek2 in unmodified llama.cpp: perplexity, tokenizer, generation."""

import json
import shutil

import numpy as np
from gguf import GGUFReader
from llama_cpp import Llama
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from exports import FOLDER, MODEL, SMOLLM2_CONFIG, TEXT, check, export, logits, nll, tiny_config, tiny_config_by_layer, tiny_model


def engine(path, tokens):
    return Llama(str(path), n_ctx=tokens, n_batch=tokens, n_threads=1, logits_all=True, verbose=False)


def perplexity(model, tokens):
    model.reset()
    model.eval(tokens)
    return np.exp(nll(np.array(model.scores[:len(tokens)]), tokens).mean())


config = SMOLLM2_CONFIG
text = TEXT.read_text()
file = export("gguf-deepseek2", config, MODEL, FOLDER / "smollm2.gguf")
model = engine(file, 512)
tokens = model.tokenize(text.encode(), add_bos=False, special=True)[:512]
ours = np.exp(nll(logits(MODEL, config, tokens), tokens).mean())
theirs = perplexity(model, tokens)
print(f"perplexity of 512 tokens: {ours:.4f} ours, {theirs:.4f} in llama.cpp")
check("f32: relative difference of the perplexity", abs(theirs / ours - 1), 1e-3)
print("generated:", repr(model("The sun is", max_tokens=16, temperature=0)["choices"][0]["text"]))
del model

# From a Hugging Face folder, whose tokenizer.json becomes a GGUF's: SmolLM2's tokenizer with a tiny model.
folder = export("hf-youtu", config, MODEL, FOLDER / "hf-youtu")
assert AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"][:512] == tokens
source, _ = tiny_model(0, tied=False, vocabulary=49152)
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(folder / name, source / name)
small_config = tiny_config(source)
small = engine(export("gguf-deepseek2", small_config, source, FOLDER / "tiny.gguf"), 64)
assert small.tokenize(text.encode(), add_bos=False, special=True)[:512] == tokens
del small
# A template that puts a token before a text also makes llama.cpp add it.
tokenizer = json.loads((source / "tokenizer.json").read_text())
begin = tokenizer["model"]["vocab"]["<|im_start|>"]
special, sequence = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": [special, sequence], "pair": [special, sequence],
                               "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [begin], "tokens": ["<|im_start|>"]}}}
(source / "tokenizer.json").write_text(json.dumps(tokenizer))
asked = Llama(str(export("gguf-deepseek2", tiny_config(source), source, FOLDER / "tiny.gguf")), vocab_only=True, verbose=False)
assert asked.tokenize(b"The sun", add_bos=True, special=True) == AutoTokenizer.from_pretrained(source)("The sun")["input_ids"]
assert asked.token_bos() == begin
del asked
for name, make in (("from safetensors", tiny_config), ("sizes by layer", tiny_config_by_layer)):
    small_config = make(source)
    small = engine(export("gguf-deepseek2", small_config, source, FOLDER / "tiny.gguf"), 64)
    expected = np.exp(nll(logits(source, small_config, tokens[:64]), tokens[:64]).mean())
    check(f"tiny, {name}: relative difference of the perplexity",
          abs(perplexity(small, tokens[:64]) / expected - 1), 1e-3)
    del small

# A SentencePiece-like tokenizer.json: Llama 2's steps, every way to make a token listed, in the order of scores.
pieces = ["in", "\u2581t", "he", "\u2581the", "er", "\u2581a", "on", "\u2581\u2581", "ing", "light"]
texts = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
texts += sorted({character for character in text if character not in " \n"} | {"\u2581"}) + ["li", "ght", "gh"] + pieces
vocabulary = {piece: number for number, piece in enumerate(texts)}
merges = [[piece[:cut], piece[cut:]] for piece in ["gh", "ght", "li"] + pieces for cut in range(1, len(piece))
          if piece[:cut] in vocabulary and piece[cut:] in vocabulary]
(source / "tokenizer.json").write_text(json.dumps({
    "version": "1.0", "pre_tokenizer": None, "post_processor": None, "decoder": None,
    "added_tokens": [{"id": number, "content": piece, "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False, "special": True} for number, piece in enumerate(texts[:3])],
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary,
              "merges": merges}}))
(source / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
source_config = tiny_config(source)
marked = Llama(str(export("gguf-deepseek2", source_config, source, FOLDER / "tiny.gguf")), vocab_only=True, verbose=False)
words = "the light  rays of the thing, then \u00e9 at once\n"
expected = Tokenizer.from_file(str(source / "tokenizer.json")).encode(words).ids
assert marked.tokenize(words.encode(), add_bos=False, special=True) == expected
del marked

bf16 = engine(export("gguf-deepseek2", config, MODEL, FOLDER / "smollm2.gguf", "--matrix-dtype", "bf16"), 512)
check("bf16: relative difference of the perplexity", abs(perplexity(bf16, tokens) / ours - 1), 2e-2)
del bf16

# The gguf package reads our file.
reader = GGUFReader(file)
stated = {tensor.name: tuple(int(n) for n in tensor.shape) for tensor in reader.tensors}
assert stated["blk.0.attn_k_b.weight"] == (44, 192, 9) and stated["blk.0.attn_v_b.weight"] == (192, 64, 9), stated
assert reader.fields["deepseek2.attention.kv_lora_rank"].contents() == 192
