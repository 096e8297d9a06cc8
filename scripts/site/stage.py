#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pages of the site: every Markdown file of the tree with the files that it links to, and a reference of the
commands from the programs' --help.

Usage: stage.py FOLDER_OF_THE_PROGRAMS FOLDER_OF_THE_PAGES
"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lint"))
from commands import help_texts  # noqa: E402
from docs import LINK  # noqa: E402
from markdown import ROOT, pages  # noqa: E402


def copy(path, out):
    target = out / path.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def copy_pages(out):
    """Copies the Markdown files to the same places below `out`, and the files that their links and images name."""
    for page in pages():
        copy(page.path, out)
        for name in LINK.findall(page.prose()):
            linked = (page.path.parent / name.partition("#")[0]).resolve()
            if not re.match(r"[a-z]+:", name) and linked.is_file():
                copy(linked, out)


def command_page(program, helps):
    """Returns the page of one program: the help of each command in its own section."""
    lines = [f"# {program}", "", "This page holds the `--help all` of each command, as the programs print it."]
    for (name, command), text in helps.items():
        if name == program:
            lines += ["", f"## {command}", "", "```text", text.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def method_page(programs, methods):
    lines = ["# Methods", "", "This page holds the parameters of each method, as `--help --method NAME` prints them."]
    for method in methods:
        words = [programs / "kvcalibrate", "eval", "--help", "--method", method]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        lines += ["", f"## {method}", "", "```text", text.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def main():
    programs, out = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    shutil.rmtree(out, ignore_errors=True)
    copy_pages(out)
    helps = help_texts(programs)
    folder = out / "docs/cli"
    folder.mkdir()
    for program in ("kvspectrum", "kvcalibrate"):
        (folder / f"{program}.md").write_text(command_page(program, helps))
    table = (ROOT / "docs/methods.md").read_text().partition("## Commands")[0]
    methods = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    (folder / "methods.md").write_text(method_page(programs, methods))
    return 0


if __name__ == "__main__":
    sys.exit(main())
