#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ids of random strings, compared id for id with Hugging Face `tokenizers`, llama.cpp and SentencePiece.

Usage: tokenizers_parity.py PATH/TO/tokenize_lines [--strings 10000] [--only NAME] [--seed 0]

For each family a tokenizer is trained on the text at hand with that family's pipeline of normalizers, pre-tokenizer and
model options, as in its published files; tests/golden/make_tokenizer_golden.py holds the pipelines. Needs tokenizers,
llama-cpp-python, sentencepiece, gguf; exits with 77 (skipped) without them. Checked with tokenizers 0.23.3,
llama-cpp-python 0.3.36, sentencepiece 0.2.3.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
try:
    import llama_cpp
    import make_tokenizer_golden as golden
    import sentencepiece
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TEXTS = ["/usr/share/go-1.19/src/testdata/Isaac.Newton-Opticks.txt", "/usr/share/doc/debian-policy/policy.txt.gz",
         pathlib.Path(__file__).resolve().parent.parent.parent / "data" / "opticks_sample.txt"]
SPECIALS = golden.SPECIALS
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")


def corpus():
    texts = [golden.TORTURE] * 3
    for path in map(pathlib.Path, TEXTS):
        if path.exists():
            texts.append((gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()).decode())
    return texts


# --- random strings ---

# Scripts, symbols and emoji. Only characters that Unicode had in version 3.2 or that are listed: the programs' tables
# of newer characters differ by release.
RANGES = [(0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x250, 0x370), (0x370, 0x400), (0x400, 0x530), (0x530, 0x590),
          (0x590, 0x600), (0x600, 0x700), (0x900, 0x980), (0x980, 0xA00), (0xB80, 0xC00), (0xE00, 0xE80), (0x10A0, 0x1100),
          (0x1100, 0x1200), (0x1200, 0x1380), (0x13A0, 0x1400), (0x1680, 0x16A0), (0x1780, 0x1800), (0x1E00, 0x2000),
          (0x2000, 0x2070), (0x2070, 0x20D0), (0x2100, 0x2150), (0x2150, 0x2190), (0x2190, 0x2300), (0x2460, 0x2500),
          (0x2500, 0x2700), (0x3000, 0x3040), (0x3040, 0x3100), (0x3130, 0x3190), (0x3200, 0x3400), (0x4E00, 0x4F00),
          (0x9F00, 0x9FA6), (0xAC00, 0xAD00), (0xF900, 0xFA2E), (0xFB00, 0xFB50), (0xFF00, 0xFFEF), (0x10300, 0x10324),
          (0x1D400, 0x1D500), (0x1D7CE, 0x1D800)]
EMOJI = ["😀", "😂", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "1️⃣", "🧑🏿‍🚀", "☎", "🤷‍♀️"]
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\r", "\u00a0", "\u2003", "\u3000", "\u200b", "\u0085",
          "\u2028", "\u180e", "\ufeff"]
MARKS = [chr(c) for c in range(0x300, 0x370)] + ["\u0327", "\u0591", "\u064e", "\u093f", "\u0e31", "\u20e3", "\u3099"]
CODE = ["def f(x):\n    return x**2\n", "for (int i = 0; i < n; ++i) {\n\ta[i] += b->c;\n}", "<a href=\"/x?y=1&z=2\">", "$x_1 += `ls`;",
        "if(!p||*q){", "std::vector<int>{1,2,3}", "0x1F_u8", "https://example.org/a/b.html#frag", "user@example.org", "C:\\dir\\f.txt",
        "SELECT * FROM t WHERE a='b';", "<|im_start|", "<0x0A>", "</s", "{{ x }}", "// TODO!!!", "\\u0041"]
WORDS = ["I'm", "DON'T", "it'\u017f", "we'VE", "'tis", "THE", "CamelCaseWord", "snake_case", "straße", "ΣΑΣ", "İstanbul", "ﬁne", "ǅ",
         "\u1e9b\u0323", "e\u0301", "\u212b", "가각", "\u1112\u1161\u11ab", "½", "Ⅷ", "²", "ªº", "㍿", "ﷺ", "ss", "▁", "▁▁a", "a▁b"]


class Strings:
    def __init__(self, seed, words, specials):
        self.random, self.words, self.specials = random.Random(seed), words, specials
        self.characters = [[chr(c) for c in range(*r) if unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"] for r in RANGES]

    def chunk(self):
        r = self.random
        kind = r.randrange(14)
        if kind < 4:
            return r.choice(SPACES) + r.choice(self.words)
        if kind == 4:
            return r.choice(WORDS)
        if kind == 5:
            return r.choice(CODE)
        if kind == 6:
            return "".join(r.choice("0123456789") for _ in range(r.randrange(1, 9)))
        if kind == 7:
            return r.choice(SPACES) * r.randrange(1, 6)
        if kind == 8:
            return r.choice(EMOJI) * r.randrange(1, 3)
        if kind == 9:
            return r.choice("aeoAOn ") + "".join(r.choice(MARKS) for _ in range(r.randrange(1, 4)))
        if kind == 10:
            return "".join(chr(r.choice([0, 1, 2, 7, 8, 11, 12, 14, 27, 31, 127, 128, 159])) for _ in range(r.randrange(1, 3)))
        if kind == 11:
            return r.choice(SPACES + [""]) + r.choice(self.specials) + r.choice(SPACES + [""])
        alphabet = r.choice(self.characters)
        return "".join(r.choice(alphabet) for _ in range(r.randrange(1, 7)))

    def make(self, count):
        return ["".join(self.chunk() for _ in range(self.random.randrange(1, 12))) for _ in range(count)]


# --- tokenizers ---


def train_byte_level(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=SPECIALS, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    document = json.loads(tokenizer.to_str())
    document["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in document["model"]["merges"]]
    return document


def train_marked(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=4000, limit_alphabet=300, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = golden.MARKED_SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)] + list(model["vocab"])
    return {"version": "1.0", "added_tokens": [golden.special(t, i) for i, t in enumerate(golden.MARKED_SPECIALS)],
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": {token: i for i, token in enumerate(tokens)}, "merges": model["merges"]}}


def train_unigram(texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=4000, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    model["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    return {"version": "1.0", "added_tokens": [golden.special("<unk>", 0)],
            "pre_tokenizer": golden.metaspace("always", True), "model": model}


def changed(base, changes):
    return {**base, **changes, "model": {**base["model"], **changes.get("model", {})}}


def hf_families(texts):
    byte_level, marked, unigram = train_byte_level(texts), train_marked(texts), train_unigram(texts)
    merges = byte_level["model"]["merges"]
    fewer = {"model": {"ignore_merges": True, "merges": [m for i, m in enumerate(merges) if i < 500 or i % 3]}}
    pipelines = {**golden.PIPELINES, "added": {"normalizer": golden.NFC,
                                               "added_tokens": golden.flagged_tokens(byte_level["model"]["vocab"])}}
    pipelines["cl100k"] = {"pre_tokenizer": golden.sequence(golden.split(CL100K), golden.byte_level(regex=False))}
    for name in ["unknown", "unknown_fused"]:
        pipelines[name] = changed({"model": {}}, {"model": {**pipelines[name]["model"], "vocab": {
            t: i for t, i in byte_level["model"]["vocab"].items() if t not in ("ð", "Ł")}, "merges": [
                m for m in merges if "ð" not in m and "Ł" not in m]}})
    for name in ["llama3", "tekken"]:
        pipelines[name] = {**pipelines[name], **fewer}
    for name, changes in pipelines.items():
        yield "byte-level " + name, changed(byte_level, changes)
    vocabulary = marked["model"]["vocab"]
    for name, changes in golden.MARKED_PIPELINES.items():
        if name == "phi3":
            changes = {**changes, "added_tokens": marked["added_tokens"][:2] + [
                golden.special("</s>", 2, rstrip=True), golden.special("<|im_end|>", len(vocabulary), rstrip=True),
                golden.special("<|im_start|>", len(vocabulary) + 1, normalized=True, lstrip=True)]}
        yield "marked " + name, changed(marked, changes)
    for name, changes in golden.UNIGRAM_PIPELINES.items():
        yield "unigram " + name, changed(unigram, changes)


def compare(name, ours, theirs, strings, scores=None):
    """With `scores` (by id): a Unigram model; of two segmentations of equal score, rounding decides."""
    differences = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    total = lambda ids: sum(scores[i] for i in ids)
    ties = {i for i in differences if scores and abs(total(ours[i]) - total(theirs[i])) < 1e-4}
    wrong = [i for i in differences if i not in ties]
    note = f", {len(ties)} of equal score" if ties else ""
    print(f"{name}: {len(strings) - len(differences)} of {len(strings)} equal{note}", flush=True)
    for i in wrong[:3]:
        at = next((k for k, (a, b) in enumerate(zip(ours[i], theirs[i])) if a != b), min(len(ours[i]), len(theirs[i])))
        print(f"  {strings[i]!r}\n  from number {at}: ours {ours[i][at:at + 8]}, theirs {theirs[i][at:at + 8]}")
    return not wrong


def our_ids(program, path, strings):
    lines = "".join(json.dumps(text) + "\n" for text in strings)
    result = subprocess.run([program, str(path)], input=lines, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{path}: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def llama_ids(path, strings):
    model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    return [model.tokenize(text.encode(), add_bos=False, special=True) for text in strings]


def sentencepiece_models(folder, texts):
    (folder / "text").write_text("\n".join(texts).replace("\0", ""))
    common = dict(input=str(folder / "text"), vocab_size=4000, max_sentence_length=100000, minloglevel=2, num_threads=2,
                  character_coverage=0.999, hard_vocab_limit=False)
    llama = dict(normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, byte_fallback=True,
                 allow_whitespace_only_pieces=True)
    for name, options in {"bpe llama": dict(model_type="bpe", **llama), "bpe nmt_nfkc": dict(model_type="bpe"),
                          "unigram nmt_nfkc_cf": dict(model_type="unigram", normalization_rule_name="nmt_nfkc_cf"),
                          "unigram llama": dict(model_type="unigram", add_dummy_prefix=False, **llama)}.items():
        prefix = folder / name.replace(" ", "_")
        # In Unigram models, releases before 0.2 do not always choose user-defined pieces; "▁▁" shows this.
        user = golden.SP_USER_DEFINED if options["model_type"] == "bpe" else golden.SP_USER_DEFINED[:2]
        sentencepiece.SentencePieceTrainer.train(model_prefix=str(prefix), user_defined_symbols=user, **common, **options)
        yield name, pathlib.Path(f"{prefix}.model")


def run(options, folder):
    texts = corpus()
    words = sorted({w for text in texts for w in text.split()})
    strings = Strings(options.seed, words, SPECIALS + ["<s>", "</s>", "<unk>", "brown", "the"]).make(options.strings)
    good, wanted = True, lambda name: options.only in name
    for name, document in hf_families(texts):
        if wanted(name):
            path = folder / "tokenizer.json"
            path.write_text(json.dumps(document))
            theirs = [e.ids for e in Tokenizer.from_str(json.dumps(document)).encode_batch(strings, add_special_tokens=False)]
            scores = [s for _, s in document["model"]["vocab"]] if name.startswith("unigram") else None
            good &= compare(name, our_ids(options.program, path, strings), theirs, strings, scores)
    byte_level = train_byte_level(texts)
    for pre in golden.GGUF_PRES:
        if wanted("gguf " + pre):
            golden.write_gguf(folder / "bpe.gguf", byte_level, pre)
            ours = our_ids(options.program, folder / "bpe.gguf", strings)
            good &= compare("gguf " + pre, ours, llama_ids(folder / "bpe.gguf", strings), strings)
    for name, path in sentencepiece_models(folder, texts):
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        if wanted("sentencepiece " + name):
            scores = [model.get_score(i) for i in range(model.get_piece_size())] if "unigram" in name else None
            theirs = [golden.sp_ids(model, text) for text in strings]
            good &= compare("sentencepiece " + name, our_ids(options.program, path, strings), theirs, strings, scores)
        for case, changes in golden.SPM_CASES.items() if name == "bpe llama" else []:
            if wanted("gguf spm " + case):
                golden.write_spm_gguf(folder / "spm.gguf", golden.sp_pieces(model), changes)
                ours = our_ids(options.program, folder / "spm.gguf", strings)
                good &= compare("gguf spm " + case, ours, llama_ids(folder / "spm.gguf", strings), strings)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--strings", type=int, default=10000)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if run(options, pathlib.Path(folder)) else 1)


if __name__ == "__main__":
    main()
