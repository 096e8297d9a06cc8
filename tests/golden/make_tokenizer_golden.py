#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden ids of the tokenizer tests, by Hugging Face `tokenizers` and by llama.cpp (llama-cpp-python).

Usage: make_tokenizer_golden.py [SmolLM2-135M-Instruct.Q4_1.gguf]

Writes to its own folder
  tokenizer_torture.txt      the text
  tokenizer_small.json       a tokenizer.json of 700 tokens, trained on it; three byte tokens are taken out again
  tokenizer_small_ids.json   by pipeline: its changes to tokenizer_small.json (a JSON merge patch) or its
                             tokenizer.ggml.pre, and the ids of the text
  tokenizer_marked.json      a SentencePiece-like tokenizer.json: BPE over characters, spaces as U+2581, bytes as
                             <0x00> ... <0xFF>; and tokenizer_unigram.json, a Unigram one
  tokenizer_marked_ids.json, tokenizer_unigram_ids.json   their pipelines and ids, as above
  tokenizer_bpe.model, tokenizer_unigram.model   of SentencePiece, with a rule each that replaces text
  tokenizer_model_ids.json   by model: its ids of each line of the text, null where two segmentations are equally good;
                             the BPE model's pieces, and llama.cpp's ids for them in a GGUF file
  tokenizer_smollm2_ids.json the same for the model's own vocabulary, if its GGUF file is given
Made with tokenizers 0.23.3, llama-cpp-python 0.3.36, sentencepiece 0.2.3, gguf 0.19.0.
"""
import json
import pathlib
import re
import sys
import tempfile

import gguf
import llama_cpp
import sentencepiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"]

TORTURE = (
    "The quick brown fox can't, won't, she'll, I'd, we've, they're, it's 'TIS 'S DON'T I'M you'RE we'VE 'lL.\n"
    "long s after an apostrophe: it'\u017f, K sign '\u212a\n"
    "numbers 1 12 123 1234 12345 1234567 3.14159 1,000,000 0x1F 2^10 v1.2.3 a1b2c3 ½ ¼ ² ³ Ⅷ ⅻ ① ㊿\n"
    "Arabic-Indic ٠١٢٣٤٥٦٧٨٩ Devanagari ०१२३४५ Thai ๐๑๒๓ Bengali ১২৩ fullwidth １２３４ math 𝟘𝟙𝟚 𝟭𝟮 Han 一二三四 Roman ⅣⅤ\n"
    "Deutsch: Äpfel, Öl, Übermaß, straße, STRASSE ẞ. Français: garçon, œuvre, l'été, aujourd'hui. Español: ¿qué? ¡sí! niño\n"
    "Русский: Съешь же ещё этих мягких французских булок. Українська: їжак ґанок. Ελληνικά: Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.\n"
    "עברית: דג סקרן שט בים מאוכזב שָׁלוֹם. العربية: نص حكيم له سر قاطع مُحَمَّد. فارسی: می‌خواهم. हिन्दी: ऋषियों को सताने वाले क्षत्रिय.\n"
    "ไทย: เป็นมนุษย์สุดประเสริฐเลิศคุณค่า. 中文：我能吞下玻璃而不伤身体。日本語：いろはにほへと ちりぬるを、カタカナ ﾊﾝｶｸ。한국어: 다람쥐 헌 쳇바퀴에. "
    "Hangul jamo: \u1112\u1161\u11ab. தமிழ், తెలుగు, ಕನ್ನಡ, മലയാളം, ქართული, Հայերեն, አማርኛ, ᚠᚢᚦ, ꦗꦮ\n"
    "emoji 😀 😂😂😂 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ❤️ ☎ 1️⃣ 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 🧑🏿‍🚀 ©®™ ♔ 𓀀 𐍈 private \ue000 \U000f1234\n"
    "combining e\u0301 a\u0308 n\u0303 o\u0302\u0323 Z\u0351\u036b\u0343a\u0322\u031bl\u034dg\u0334o\u0354 A\u030a = Å = \u212b, \u1e9b\u0323, "
    "\u0958, \ufb01 ligature, ﬃ\n"
    "def f(x):\n    if x == 0:\n        return None  # four spaces\n\treturn [i**2 for i in range(10)]\n\n\n"
    "for (int i = 0; i < n; ++i) { a[i] += b->c.d(\"%s\\n\", &e); } /* ... */ // TODO!!!\r\n"
    "CRLF line\r\n\r\n  indented after CRLF\r\n\tand a tab\r\rtwo CR\n"
    "<a href=\"https://example.org/a/b?c=d&e=%20#frag\">x</a> user@example.org C:\\dir\\file.txt $x_1 += `cmd` ~/.rc\n"
    "runs:  two   three    four     five          ten                    twenty \n"
    "trailing spaces   \n   \n \n\t\t\n    leading\n"
    "white space: nbsp[\u00a0] [\u00a0\u00a0x] ogham[\u1680] en[\u2002] em[\u2003\u2003] thin[\u2009] hair[\u200a] ls[\u2028] ps[\u2029] nnbsp[\u202f] "
    "mmsp[\u205f] ideo[\u3000\u3000] nel[\u0085] vt[\u000b] ff[\u000c] not space: zwsp[\u200b] zwnj[\u200c] mvs[\u180e] mvs[\u180e\u180e ] wj[\u2060] bom[\ufeff]\n"
    "x\u00a0y x \u00a0 y \u3000z \u2003 w\u200a\u200a q\n"
    "special <|im_start|>user\nHi<|im_end|>\n<|endoftext|><|endoftext|> <|im_start|> <|im_star|> <|im_start|im_end|> x<|im_end|>y <repo_name>12 "
    "<<|im_end|>> < |im_end|>\n"
    "control [\x00] [\x00\x00] [\x01\x02\x03] [\x07\x08] [\x0e\x1b[31mred\x1b[0m] [\x7f] [\x80\x9f] end\n"
    "punctuation ... --- ___ *** === !!! ??? ;;; ((())) [[]] {{}} «quoted» “curly” ‘single’ – — … • ‰ € £ ¥ ₿ ± × ÷ ∑ ∫ √ ∞ ≠ → ⇒ ★ ※ 、。「」！\n"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa antidisestablishmentarianism AbCdEfGhIj camelCaseWords snake_case_words\n"
    "' '' ''' s't 's's 'ss '\u00e9 ' s 're're 'REre\n"
    "  the end without a newline  "
)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
WORD = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s")
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = WORD % ("", "") + r"|\p{N}" + TAIL
GPT4O = WORD % (("(?i:'s|'t|'re|'ve|'m|'ll|'d)?",) * 2) + r"|\p{N}{1,3}" + TAIL


# Patterns as in DeepSeek's tokenizer.json files.
DEEPSEEK_LETTERS = ("\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-"
    "\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b"
    "\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b"
    "\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4"
    "\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8"
    "-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+")
DEEPSEEK_PUNCTUATION = ("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+")
DEEPSEEK_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK3_CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
DEEPSEEK3 = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
             "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(prefix=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, kind="Regex", behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


DIGITS = {"type": "Digits", "individual_digits": True}
NFC = {"type": "NFC"}
FLAGS = {"<|im_end|>": ["lstrip"], "<|im_start|>": ["rstrip"], "brown": ["single_word"],
         "the": ["single_word", "lstrip", "rstrip"], "\u00c5": ["normalized"], "a\u0308": ["normalized"], "space": [],
         "spaces": [], "re": ["normalized"]}


def flagged_tokens(vocabulary):
    """Returns the tokens of FLAGS, with the id of the vocabulary or, as `tokenizers` numbers them, the next free id."""
    new = [content for content in FLAGS if content not in vocabulary]
    names = ["single_word", "lstrip", "rstrip", "normalized", "special"]
    return [{"id": vocabulary[content] if content in vocabulary else len(vocabulary) + new.index(content),
             "content": content, **{name: name in flags for name in names}} for content, flags in FLAGS.items()]


PIPELINES = {
    "gpt2": {"pre_tokenizer": byte_level()},
    "prefix_space": {"pre_tokenizer": byte_level(prefix=True)},
    "digits": {"pre_tokenizer": sequence(DIGITS, byte_level())},
    "digits_prefix_space": {"pre_tokenizer": sequence(DIGITS, byte_level(prefix=True))},
    "digit_runs": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, byte_level())},
    "llama3": {"pre_tokenizer": sequence(split(LLAMA3), byte_level(regex=False))},
    "qwen2": {"normalizer": NFC, "pre_tokenizer": sequence(split(QWEN2), byte_level(regex=False))},
    "tekken": {"pre_tokenizer": sequence(split(TEKKEN), byte_level(regex=False))},
    "gpt4o": {"pre_tokenizer": sequence(split(GPT4O), byte_level(regex=False))},
    "removed": {"pre_tokenizer": sequence(split(" ", "String", "Removed"), byte_level(regex=False))},
    "inverted": {"pre_tokenizer": sequence(split(r"\p{N}", behavior="Removed", invert=True), byte_level(regex=False))},
    "previous": {"pre_tokenizer": sequence(split(" ", "String", "MergedWithPrevious"), byte_level(regex=False))},
    "next": {"pre_tokenizer": sequence(split(" ", "String", "MergedWithNext"), byte_level(regex=False))},
    "deepseek_llm": {"pre_tokenizer": sequence(split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split(DEEPSEEK_PUNCTUATION),
                                               split(r"\s+$"), split(DEEPSEEK_CJK), DIGITS, byte_level(regex=False))},
    "deepseek_coder": {"pre_tokenizer": sequence(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"),
                                                 split(DEEPSEEK_CJK), DIGITS, byte_level(regex=False))},
    "deepseek_v3": {"pre_tokenizer": sequence(split(r"\p{N}{1,3}"), split(DEEPSEEK3_CJK), split(DEEPSEEK3),
                                              byte_level(regex=False))},
    "qwen35": {"normalizer": NFC, "pre_tokenizer": sequence(split(QWEN35), byte_level(regex=False))},
    "nfd": {"normalizer": {"type": "NFD"}},
    "nfkc": {"normalizer": {"type": "NFKC"}},
    "nfkd_lowercase": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "Lowercase"}]}},
    "strip_replace": {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Replace", "pattern": {"String": "th"}, "content": "\u00fe"}]}},
    "unknown": {"model": {"unk_token": "<repo_name>"}},
    "unknown_fused": {"model": {"unk_token": "<repo_name>", "fuse_unk": True}},
    "contiguous": {"pre_tokenizer": sequence(split(" ", "String", "Contiguous"), byte_level(regex=False))},
}
# Names of tokenizer.ggml.pre, one for each list of patterns.
GGUF_PRES = ["smollm", "gpt-2", "default", "falcon", "llama-bpe", "dbrx", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder",
             "deepseek-v3", "tekken", "gpt-4o", "seed-coder", "bailingmoe", "bloom", "viking"]

# Others, with llama.cpp's patterns: their ids are those of `tokenizers`, which equal llama.cpp's for every pattern above
# that has no case folding.
HAN = r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}"
CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
SPLIT_WORD, SPLIT_TAIL = r"[^\r\n\p{L}\p{N}]?\p{L}+", r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GGUF_SPLITS = {
    "kimi-k2": [rf"[{HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[^\P{{L}}{HAN}]+{CONTRACTIONS}?|\p{{N}}{{1,3}}" + SPLIT_TAIL],
    "minicpm5": [r"\p{N}{1,3}", CONTRACTIONS + "|" + SPLIT_WORD + r"|\p{N}+" + SPLIT_TAIL],
    "ufakzeka": [SPLIT_WORD + r"|\p{N}" + SPLIT_TAIL],
}

# --- SentencePiece-like tokenizers ---
PREPEND = {"type": "Prepend", "prepend": "\u2581"}
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
MARKED_SPECIALS = ["<unk>", "<s>", "</s>"]


def metaspace(scheme, splits):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": splits}


def special(content, id, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **flags}


MARKED_PIPELINES = {
    "llama2": {"normalizer": {"type": "Sequence", "normalizers": [PREPEND, SPACES]}},
    "mistral": {"pre_tokenizer": metaspace("first", False)},
    "gemma": {"normalizer": SPACES, "pre_tokenizer": split(" ", "String", "MergedWithPrevious")},
    "phi3": {"normalizer": {"type": "Sequence", "normalizers": [PREPEND, SPACES]},
             "added_tokens": [special("<unk>", 0), special("<s>", 1), special("</s>", 2, rstrip=True),
                              special("[red", 700, rstrip=True), special("Hi<", 701, normalized=True)]},
    "words": {"pre_tokenizer": metaspace("always", True)},
    "no_bytes": {"pre_tokenizer": metaspace("always", True), "model": {"byte_fallback": False}},
    "no_bytes_unfused": {"pre_tokenizer": metaspace("always", True), "model": {"byte_fallback": False, "fuse_unk": False}},
    "ignore_merges": {"pre_tokenizer": metaspace("always", True), "model": {"ignore_merges": True}},
}
UNIGRAM_PIPELINES = {
    "metaspace": {},
    "nfkc_lowercase": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}},
    "whole_text": {"pre_tokenizer": metaspace("first", False)},
    "bytes": {"model": {"byte_fallback": True}},
}


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIALS, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TORTURE], trainer)
    document = json.loads(tokenizer.to_str())
    merges = [m.split(" ") if isinstance(m, str) else m for m in document["model"]["merges"]]
    used = {part for merge in merges for part in merge}
    # Real vocabularies lack bytes that their corpus did not contain. Byte 0xF3 (private use planes) is in the text.
    gone = [c for c in sorted(pre_tokenizers.ByteLevel.alphabet()) if c not in used][:2] + ["ó"]
    merges = [m for m in merges if not any("ó" in part for part in m)]
    vocabulary = [t for t in document["model"]["vocab"] if t not in gone and (len(t) == 1 or "ó" not in t)]
    document["model"]["vocab"] = {token: i for i, token in enumerate(vocabulary)}
    document["model"]["merges"] = [" ".join(m) for m in merges]
    for token in document["added_tokens"]:
        token["id"] = vocabulary.index(token["content"])
    return document


def train_marked():
    """BPE as in Llama 2's tokenizer.json; one merge in three is taken out, so that ignore_merges matters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=430, min_frequency=2, limit_alphabet=120, show_progress=False)
    tokenizer.train_from_iterator(TORTURE.split("\n"), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = MARKED_SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)] + list(model["vocab"])
    merges = [m for i, m in enumerate(model["merges"]) if i < 100 or i % 3]
    return {"version": "1.0", "added_tokens": [special(token, id) for id, token in enumerate(MARKED_SPECIALS)],
            "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": {token: id for id, token in enumerate(tokens)}, "merges": merges}}


def latin():
    return "".join(c for c in TORTURE if " " <= c < "\u0100" or c == "\n")


def train_unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.normalizer = normalizers.NFKC()
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(latin().split("\n"), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocabulary = [[token, round(score, 6)] for token, score in model["vocab"]]
    vocabulary += [[f"<0x{byte:02X}>", 0.0] for byte in range(0x80, 0x100)]
    return {"version": "1.0", "added_tokens": [special("<unk>", 0)], "normalizer": None,
            "pre_tokenizer": metaspace("always", True), "post_processor": None, "decoder": None,
            "model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary, "byte_fallback": False}}


def hf_ids(document, text):
    tokenizer = Tokenizer.from_str(json.dumps(document))
    return tokenizer.encode(text, add_special_tokens=False).ids


def llama_ids(path, text):
    model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    return model.tokenize(text.encode(), add_bos=False, special=True)


def write_gguf(path, document, pre):
    writer = gguf.GGUFWriter(path, "llama")
    vocabulary = list(document["model"]["vocab"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in SPECIALS else 1 for token in vocabulary])
    writer.add_token_merges(document["model"]["merges"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


SP_TYPES = {"is_unknown": 2, "is_control": 3, "is_unused": 5, "is_byte": 6}
SP_USER_DEFINED = ["<|im_end|>", "<|endoftext|>", "\u2581\u2581"]


def train_sentencepiece(folder, kind):
    """A model with a small rule of its own: the standard rules have 200 KB."""
    (folder / "rules.tsv").write_text("66 69\t46 49\n41 41\t61 20 62\n2460\t31\n1E9B 323\t1E69\nA0\t20\n")
    (folder / "text").write_text(latin())
    options = {"bpe": dict(add_dummy_prefix=True, remove_extra_whitespaces=False, byte_fallback=True, split_digits=True),
               "unigram": dict(add_dummy_prefix=True, remove_extra_whitespaces=True, byte_fallback=False)}[kind]
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / kind), model_type=kind, vocab_size=560 if kind == "bpe" else 330,
        normalization_rule_tsv=str(folder / "rules.tsv"), user_defined_symbols=SP_USER_DEFINED, character_coverage=1.0,
        max_sentence_length=100000, hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    return (folder / f"{kind}.model").read_bytes()


def sp_ids(model, text):
    """Cuts out the control and unknown pieces; every stretch between them is tokenised separately."""
    special = {model.id_to_piece(i): i for i in range(model.get_piece_size()) if model.is_control(i) or model.is_unknown(i)}
    ids = []
    for part in re.split("(" + "|".join(map(re.escape, special)) + ")", text):
        ids += [special[part]] if part in special else model.encode(part)
    return ids


def has_tie(model, text):
    """Two best segmentations of (nearly) equal score, as '?' + '??' and '??' + '?': rounding decides."""
    scores = [sum(map(model.get_score, ids)) for ids in model.nbest_encode_as_ids(text, 2)]
    return len(scores) > 1 and abs(scores[0] - scores[1]) < 1e-4


def sp_pieces(model):
    types = []
    for i in range(model.get_piece_size()):
        user = 4 if model.id_to_piece(i) in SP_USER_DEFINED else 1
        types.append(next((t for name, t in SP_TYPES.items() if getattr(model, name)(i)), user))
    return {"tokens": [model.id_to_piece(i) for i in range(model.get_piece_size())],
            "scores": [model.get_score(i) for i in range(model.get_piece_size())], "types": types}


def write_spm_gguf(path, pieces, changes):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(changes.get("general.name", "test"))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces["tokens"])
    writer.add_token_scores(pieces["scores"])
    writer.add_token_types(pieces["types"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if "tokenizer.ggml.add_space_prefix" in changes:
        writer.add_add_space_prefix(changes["tokenizer.ggml.add_space_prefix"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


SPM_CASES = {"llama": {}, "gemma": {"tokenizer.ggml.add_space_prefix": False}, "phi3": {"general.name": "Phi-3 mini"}}


def write_sentencepiece(folder):
    cases = {}
    for kind in ["bpe", "unigram"]:
        serialized = train_sentencepiece(folder, kind)
        (HERE / f"tokenizer_{kind}.model").write_bytes(serialized)
        model = sentencepiece.SentencePieceProcessor(model_proto=serialized)
        cases[kind] = {"ids": [None if kind == "unigram" and has_tie(model, line) else sp_ids(model, line)
                               for line in TORTURE.split("\n")]}
        if kind == "bpe":
            pieces = sp_pieces(model)
            cases["pieces"] = {**pieces, "scores": [int(score) for score in pieces["scores"]]}
            for name, changes in SPM_CASES.items():
                write_spm_gguf(folder / "spm.gguf", pieces, changes)
                cases["gguf/" + name] = {"changes": changes, "ids": llama_ids(folder / "spm.gguf", TORTURE)}
    save("tokenizer_model_ids.json", cases)


def write_pipelines(name, base, pipelines):
    (HERE / f"tokenizer_{name}.json").write_text(json.dumps(base, ensure_ascii=False, separators=(",", ":")) + "\n")
    cases = {}
    for pipeline, changes in pipelines.items():
        changed = {**base, **changes, "model": {**base["model"], **changes.get("model", {})}}
        cases["hf/" + pipeline] = {"changes": changes, "ids": hf_ids(changed, TORTURE)}
    save(f"tokenizer_{name}_ids.json", cases)


def smollm2_document(path):
    reader = gguf.GGUFReader(path)
    tokens, types, merges = (reader.fields["tokenizer.ggml." + key].contents() for key in ("tokens", "token_type", "merges"))
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, (t, kind) in enumerate(zip(tokens, types)) if kind == 3]
    return {"version": "1.0", "added_tokens": added, "pre_tokenizer": sequence(DIGITS, byte_level()),
            "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}}


def save(name, cases):
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(case, separators=(',', ':'))}" for key, case in cases.items())
    (HERE / name).write_text("{\n" + lines + "\n}\n")


def main():
    (HERE / "tokenizer_torture.txt").write_bytes(TORTURE.encode())
    small = train()
    (HERE / "tokenizer_small.json").write_text(json.dumps(small, ensure_ascii=False, separators=(",", ":")) + "\n")
    pairs = [merge.split(" ") for merge in small["model"]["merges"]]
    PIPELINES["added"] = {"normalizer": NFC, "added_tokens": flagged_tokens(small["model"]["vocab"])}
    PIPELINES["merges_as_pairs"] = {"model": {"merges": pairs}}
    PIPELINES["ignore_merges"] = {"model": {"ignore_merges": True, "merges": pairs[:60]}}
    cases = {}
    for name, changes in PIPELINES.items():
        changed = {**small, **changes, "model": {**small["model"], **changes.get("model", {})}}
        cases["hf/" + name] = {"changes": changes, "ids": hf_ids(changed, TORTURE)}
    with tempfile.TemporaryDirectory() as folder:
        for pre in GGUF_PRES:
            path = pathlib.Path(folder) / (pre + ".gguf")
            write_gguf(path, small, pre)
            cases["gguf/" + pre] = {"pre": pre, "ids": llama_ids(path, TORTURE)}
        write_sentencepiece(pathlib.Path(folder))
    for pre, patterns in GGUF_SPLITS.items():
        steps = sequence(*map(split, patterns), byte_level(regex=False))
        cases["gguf/" + pre] = {"pre": pre, "ids": hf_ids({**small, "pre_tokenizer": steps}, TORTURE)}
    save("tokenizer_small_ids.json", cases)
    write_pipelines("marked", train_marked(), MARKED_PIPELINES)
    write_pipelines("unigram", train_unigram(), UNIGRAM_PIPELINES)
    if len(sys.argv) > 1:
        model = sys.argv[1]
        save("tokenizer_smollm2_ids.json", {"hf": {"ids": hf_ids(smollm2_document(model), TORTURE)},
                                            "gguf": {"ids": llama_ids(model, TORTURE)}})


if __name__ == "__main__":
    main()
