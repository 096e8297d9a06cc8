# SPDX-License-Identifier: Apache-2.0
"""Splits a Markdown file into code blocks, inline code and prose, each with its line number."""
import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tracked(*patterns):
    """Returns the repository's files, including new files, without files that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()})


@dataclasses.dataclass
class Piece:
    line: int
    text: str


class Page:
    def __init__(self, path):
        self.path = path
        self.lines = path.read_text(encoding="utf-8").split("\n")
        self.is_code = self._code_lines()

    def _code_lines(self):
        flags, fence, after_blank = [], None, True
        for line in self.lines:
            mark = re.match(r" {0,3}(```+|~~~+)", line)
            if fence is None and mark:
                fence = mark[1]
                flags.append(True)
            elif fence is not None:
                flags.append(True)
                if line.strip() == fence:
                    fence = None
            else:
                indented = line.startswith("    ") and (after_blank or flags[-1])
                flags.append(indented)
            after_blank = not line.strip()
        return flags

    def code(self):
        """Returns the lines of code blocks other than ```text, which holds output. A line that ends in a backslash is
        joined with the next."""
        pieces, open_piece, is_output = [], None, False
        for number, (line, code) in enumerate(zip(self.lines, self.is_code), 1):
            if not code or re.match(r" {0,3}(```|~~~)", line):
                is_output = line.strip() == "```text"
                open_piece = None
                continue
            if is_output:
                continue
            if open_piece:
                open_piece.text += " " + line.strip()
            else:
                open_piece = Piece(number, line.strip())
                pieces.append(open_piece)
            if open_piece.text.endswith("\\"):
                open_piece.text = open_piece.text[:-1]
            else:
                open_piece = None
        return pieces

    def prose(self):
        """Returns the text outside code blocks. Lines of code blocks are empty."""
        return "\n".join("" if code else line for line, code in zip(self.lines, self.is_code))

    def inline_code(self):
        prose = self.prose()
        return [
            Piece(prose.count("\n", 0, match.start()) + 1, " ".join(match[1].split()))
            for match in re.finditer(r"`((?:[^`\n]|\n(?!\s*\n))+)`", prose)
        ]

    def anchors(self):
        """Returns the anchors that GitHub gives to headings."""
        found = {}
        for line, code in zip(self.lines, self.is_code):
            heading = None if code else re.match(r"#{1,6} +(.*?)[ #]*$", line)
            if heading:
                text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
                name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                found[name] = found.get(name, -1) + 1
        return {f"{name}-{n}" if n else name for name, count in found.items() for n in range(count + 1)}


def pages():
    return [Page(path) for path in tracked("*.md")]


def complaint(page, line, text):
    return f"{page.path.relative_to(ROOT)}:{line}: {text}"
