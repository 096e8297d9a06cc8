#!/usr/bin/env python3
"""Golden ids of the tokenizer tests, by Hugging Face `tokenizers` and by llama.cpp (llama-cpp-python).

Usage: make_tokenizer_golden.py [SmolLM2-135M-Instruct.Q4_1.gguf]

Writes beside itself
  tokenizer_torture.txt      the text
  tokenizer_small.json       a tokenizer.json of 700 tokens, trained on it; three byte tokens are taken out again
  tokenizer_small_ids.json   by pipeline: its changes to tokenizer_small.json (a JSON merge patch) or its
                             tokenizer.ggml.pre, and the ids of the text
  tokenizer_smollm2_ids.json the same for the model's own vocabulary, if its GGUF file is given
Made with tokenizers 0.23.3, llama-cpp-python 0.3.36, gguf.
"""
import json
import pathlib
import sys
import tempfile

import gguf
import llama_cpp
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

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
    """Those of FLAGS, with the id of the vocabulary or, as `tokenizers` numbers them, the next free one."""
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
    "contiguous": {"pre_tokenizer": sequence(split(" ", "String", "Contiguous"), byte_level(regex=False))},
}
# Names of tokenizer.ggml.pre, one for each list of patterns.
GGUF_PRES = ["smollm", "gpt-2", "default", "falcon", "llama-bpe", "dbrx", "qwen2"]


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIALS, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TORTURE], trainer)
    document = json.loads(tokenizer.to_str())
    merges = [m.split(" ") if isinstance(m, str) else m for m in document["model"]["merges"]]
    used = {part for merge in merges for part in merge}
    # Real vocabularies lack bytes that their corpus did not have. Byte 0xF3 (private use planes) is in the text.
    gone = [c for c in sorted(pre_tokenizers.ByteLevel.alphabet()) if c not in used][:2] + ["ó"]
    merges = [m for m in merges if not any("ó" in part for part in m)]
    vocabulary = [t for t in document["model"]["vocab"] if t not in gone and (len(t) == 1 or "ó" not in t)]
    document["model"]["vocab"] = {token: i for i, token in enumerate(vocabulary)}
    document["model"]["merges"] = [" ".join(m) for m in merges]
    for token in document["added_tokens"]:
        token["id"] = vocabulary.index(token["content"])
    return document


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
    save("tokenizer_small_ids.json", cases)
    if len(sys.argv) > 1:
        model = sys.argv[1]
        save("tokenizer_smollm2_ids.json", {"hf": {"ids": hf_ids(smollm2_document(model), TORTURE)},
                                            "gguf": {"ids": llama_ids(model, TORTURE)}})


if __name__ == "__main__":
    main()
