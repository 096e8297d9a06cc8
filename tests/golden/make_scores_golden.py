#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values for the comparisons of retrieval tasks' scores: scores.json.

Usage: make_scores_golden.py

From Python's own str: `lower` of every character that it changes; the characters that keep a Σ after or before them
from being final; the characters of str.isspace() and of re's \\w. All are ranges of code points; code points that this
Python's Unicode does not know are left out (`assigned` has the others). Scores: RULER's string match (`answer.lower()
in text.lower()`), and F1 as SQuAD's evaluation (Apache-2.0 and MIT), whose normalize_answer is copied.
"""
import collections
import json
import pathlib
import re
import string
import sys
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent


def ranges(holds):
    found = []
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000 or not holds(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def normalize_answer(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(answer, text):
    wanted, found = (collections.Counter(normalize_answer(one).split()) for one in (answer, text))
    common = sum((wanted & found).values())
    total = sum(wanted.values()) + sum(found.values())
    return 2 * common / total if total else 1.0


PAIRS = [("É", "é"), ("ÉCOLE", "une école."), ("İstanbul", "i̇stanbul"), ("İ", "i"), ("istanbul", "İSTANBUL"),
         ("ΟΔΥΣΣΕΥΣ", "ο οδυσσευς"), ("ΟΔΥΣΣΕΥΣ", "οδυσσευσ"), ("Σ", "ς"), ("ΑΣ", "ΑΣΑ"), ("Straße", "STRASSE"),
         ("STRAẞE", "straße"), ("e\u0301", "é"), ("é", "E\u0301"), ("Ⅷ", "ⅷ"), ("𐐀𐐁", "𐐨𐐩"), ("ДА", "да"),
         ("東京", "東京都"), ("東京", "京東"), ("Å", "å"), ("the a", "an"), ("The red cat", "a RED, cat!"),
         ("a\u2013b", "b"), ("The\u00a0cat", "cat"), ("theatre", "the atre"), ("naïve", "NAÏVE the"), ("", ""),
         ("中文 the 答案", "答案 中文"), ("x\u001cy", "y x"), ("snake_the", "snake"), ("The", "A"), ("A", "B"),
         ("ǅ", "ǆ"), ("K", "k"), ("Ω", "ω"), ("👩\u200d🔬", "👩\u200d🔬!"), ("ᏸ", "Ᏸ"), ("Ა", "ა"), ("FF", "ﬀ")]


def main():
    golden = {
        "assigned": ranges(lambda c: unicodedata.category(c) != "Cn"),
        "lower": {str(ord(c)): c.lower() for c in map(chr, range(sys.maxunicode + 1)) if c.lower() != c and c != "Σ"},
        "final_behind": ranges(lambda c: (c + "Σ").lower()[-1] == "ς"),
        "final_behind_a": ranges(lambda c: ("A" + c + "Σ").lower()[-1] == "ς"),
        "final_before": ranges(lambda c: ("AΣ" + c).lower()[1] == "ς"),
        "final_before_a": ranges(lambda c: ("AΣ" + c + "A").lower()[1] == "ς"),
        "space": ranges(str.isspace),
        "word": ranges(lambda c: re.fullmatch(r"\w", c)),
        "pairs": [{"answer": a, "text": t, "holds": a.lower() in t.lower(), "f1": f1(a, t)} for a, t in PAIRS],
    }
    (HERE / "scores.json").write_text(json.dumps(golden, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
