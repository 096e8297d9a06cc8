#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks Markdown: relative links and their anchors resolve, named files exist, lines are at most 120 columns wide
(except tables and code). `docs.py --wrap FILE...` rewraps wider paragraphs."""
import pathlib
import re
import sys
import textwrap

from markdown import ROOT, Page, complaint, pages, tracked

WIDTH = 120
FOLDERS = "src|tests|scripts|docs|cmake|data|figures|export|calibrate|analyzers|.ci"
PATH = re.compile(rf"(?<![\w/.$-])(?:{FOLDERS})/[\w./*-]*[\w/*](?:#[\w-]+)?")
SOURCE = re.compile(r"(?<![\w/.*-])[\w-]+\.(?:cpp|cu|cuh|h|py|sh|cmake|md)\b")
LINK = re.compile(r"!?\[[^]]*\]\(\s*([^()\s]+)[^()]*\)")


def missing_anchor(file, anchor):
    return anchor and file.suffix == ".md" and anchor not in Page(file).anchors()


def check_links(page):
    prose = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), page.prose())
    for match in LINK.finditer(prose):
        line = prose.count("\n", 0, match.start()) + 1
        name, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", name):
            continue
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.is_relative_to(ROOT) or not target.exists():
            yield complaint(page, line, f"link to {match[1]}: no such file")
        elif missing_anchor(target, anchor):
            yield complaint(page, line, f"link to {match[1]}: no such heading")


def check_named_files(page, basenames):
    """Checks paths from the root and source files by name. METHOD is a placeholder and is not checked."""
    for number, line in enumerate(page.lines, 1):
        line = LINK.sub("", line)
        for match in PATH.finditer(line):
            name, _, anchor = match[0].partition("#")
            if "METHOD" in name:
                continue
            if not any(ROOT.glob(name.rstrip("/"))):
                yield complaint(page, number, f"{name}: no such file")
            elif missing_anchor(ROOT / name, anchor):
                yield complaint(page, number, f"{match[0]}: no such heading")
        for match in SOURCE.finditer(PATH.sub("", line).replace("llama.cpp", "")):
            if match[0] not in basenames:
                yield complaint(page, number, f"{match[0]}: no such file")


def is_wide(page, index):
    line = page.lines[index]
    return len(line) > WIDTH and not page.is_code[index] and not line.startswith("|")


def check_width(page):
    for index, line in enumerate(page.lines):
        if is_wide(page, index):
            yield complaint(page, index + 1, f"{len(line)} columns wide, expected at most {WIDTH}")


def wrapped(lines):
    """Wraps a paragraph or list item. Does not break inside inline code or before text that would begin a list."""
    indent = re.match(r"\s*(?:[*-] |\d+\. )?", lines[0])[0]
    text = " ".join([lines[0][len(indent) :], *(line.strip() for line in lines[1:])])
    text = re.sub(r"`[^`]*`| (?=(?:[-+*#]|\d+\.) )", lambda keep: keep[0].replace(" ", "\0"), text)
    wrapper = textwrap.TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
    wrapper.initial_indent, wrapper.subsequent_indent = indent, " " * len(indent)
    return [line.replace("\0", " ") for line in wrapper.wrap(text)]


def wrap(path):
    page = Page(path)
    out, index = [], 0
    ends = re.compile(r"\s*$|\s*[*-] |\s*\d+\. |#|\|")
    while index < len(page.lines):
        end = index + 1
        if not page.is_code[index] and not re.match(r"\s*$|#|\|", page.lines[index]):
            while end < len(page.lines) and not page.is_code[end] and not ends.match(page.lines[end]):
                end += 1
        lines = page.lines[index:end]
        out += wrapped(lines) if any(is_wide(page, n) for n in range(index, end)) else lines
        index = end
    path.write_text("\n".join(out), encoding="utf-8")


def main():
    if sys.argv[1:2] == ["--wrap"]:
        for name in sys.argv[2:]:
            wrap(pathlib.Path(name))
        return 0
    basenames = {path.name for path in tracked()}
    found = []
    for page in pages():
        found += [*check_links(page), *check_named_files(page, basenames), *check_width(page)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
