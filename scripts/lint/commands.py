#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every command line in Markdown and in the programs' own examples parses.

Runs kvspectrum and kvcalibrate with the given arguments and --help, which checks options and the form of their values
before it prints. Scripts, presets, build targets and test labels named by other commands must exist.

Usage: commands.py FOLDER_OF_THE_PROGRAMS [PAGE...]   with pages: checks only these pages, and no examples
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

from markdown import ROOT, Page, complaint, pages, tracked

PROGRAMS = ("kvspectrum", "kvcalibrate")
PYTHONS = ("python", "python3")


def simple_commands(line, variables):
    """Splits a line into simple commands (lists of words). $NAME becomes its last assigned value, else "x"."""
    def value(match):
        return variables.get(match[1] or match[2], "x")

    line = re.sub(r"\$(?:(\w+)|\{(\w+)\})", value, line.replace("…", "x"))
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    command = []
    for word in [*lexer, ";"]:
        if set(word) <= set("();<>|&"):
            if command:
                yield command
            command = []
            continue
        assignment = re.match(r"(\w+)=(.*)", word, re.DOTALL)
        if assignment and not command:
            variables[assignment[1]] = assignment[2]
        elif command or word not in ("do", "then", "if", "!", "time"):
            command.append(word)


class Tree:
    """The targets, presets, labels and files of the tree that a command may name."""

    def __init__(self):
        cmake = "\n".join(path.read_text() for path in tracked("*CMakeLists.txt", "*.cmake"))
        self.cmake_words = set(re.findall(r"[\w-]+", re.sub("#.*", "", cmake)))
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        self.presets = {
            program: {preset["name"] for preset in presets[f"{kind}Presets"]}
            for program, kind in (("cmake", "configure"), ("ctest", "test"))
        }
        self.files = {path.name for path in tracked("scripts/*", "tests/*", "src/*")}

    def is_target(self, name):
        """Finds `name` in a CMakeLists.txt or by its rules: one program per test folder, benchmark and fuzz target."""
        folder = re.fullmatch(r"kvs_(\w+)_test", name)
        has_folder = folder and (ROOT / "tests" / folder[1]).is_dir()
        sources = {f"{name}.cpp", f"{name.removeprefix('kvs_')}.cpp"}
        return name in self.cmake_words or bool(sources & self.files) or has_folder

    def faults(self, words):
        for option, value in zip(words, words[1:]):
            if option == "--preset" and value not in self.presets.get(words[0], (value,)):
                yield f"no preset {value}"
            if option == "--target" and not self.is_target(value):
                yield f"no target {value}"
            if option == "-L" and words[0] == "ctest" and value not in self.cmake_words:
                yield f"no label {value}"
        for word in words[:2] if words[0] in PYTHONS else words[:1]:
            name = pathlib.PurePath(word).name
            if re.fullmatch(r"[\w-]+\.(sh|py)", name) and name not in self.files:
                yield f"no script {name}"
            if (re.search(r"build/\w+/bin/", word) or re.fullmatch(r"\w+_bench", word)) and not self.is_target(name):
                yield f"no program {name}"


def dry_run(programs, words):
    """Runs `words` with --help added. Returns the error message, or an empty string."""
    command = [programs / words[0], *words[1:], "--help"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return tried.stderr.strip() if tried.returncode else ""


def faults_of(words, tree, programs):
    while words and words[0] in ("/usr/bin/time", "-v", "env"):
        words = words[1:]
    if not words:
        return []
    name = pathlib.PurePath(words[0]).name
    if name in PROGRAMS:
        fault = dry_run(programs, [name, *words[1:]])
        return [f"{' '.join(words)}: {fault}"] if fault else []
    return [f"{' '.join(words)}: {fault}" for fault in tree.faults(words)]


def check_pages(checked, tree, programs, options):
    for page in checked:
        variables = {}
        for piece in page.code():
            for words in simple_commands(piece.text, variables):
                yield from (complaint(page, piece.line, fault) for fault in faults_of(words, tree, programs))
        for piece in page.inline_code():
            option = re.match(r"--[a-z][\w-]*", piece.text)
            if option and option[0] not in options:
                yield complaint(page, piece.line, f"{option[0]}: no command has this option")
            if not re.match(r"[\w./$=-]+( |$)", piece.text):
                continue
            try:
                for words in simple_commands(piece.text, {}):
                    yield from (complaint(page, piece.line, fault) for fault in faults_of(words, tree, programs))
            except ValueError:  # no closing quotation mark: not a command
                continue


def check_examples(programs, helps):
    for command, text in helps.items():
        for example in text.partition("Examples:\n")[2].strip().split("\n"):
            words = shlex.split(example)
            if words[: len(command)] != list(command):
                yield f"{' '.join(command)} --help: the example is of another command: {example.strip()}"
            elif fault := dry_run(programs, words):
                yield f"{' '.join(command)} --help: {fault}"


def help_texts(programs):
    """Returns {(program, command): text of its `--help all`}."""
    def show(program, *words):
        command = [programs / program, *words, "--help", "all"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    texts = {}
    for program in PROGRAMS:
        for command in re.findall(r"^  (\w+) ", show(program), re.MULTILINE):
            texts[program, command] = show(program, command)
    return texts


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    helps = help_texts(programs)
    scripts = [path.read_text(errors="replace") for path in tracked("scripts/*", "tests/bench/*.py", "tests/parity/*.py")]
    options = set(re.findall(r"--[a-z][\w-]*", "\n".join([*helps.values(), *scripts])))
    named = [Page(ROOT / name) for name in sys.argv[2:]]
    found = [*check_pages(named or pages(), Tree(), programs, options)]
    if not named:
        found += check_examples(programs, helps)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
