# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the two programs."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not imported at run time: a console script starts in a few milliseconds
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

    Option = str | bytes | int | float | bool | PathLike[str] | Sequence[str | int | float | PathLike[str]] | None
    Listener = Callable[[str], None]


class ProgramError(RuntimeError):
    """A program refused its input or failed. The message is the program's own line, without its name.

    `status` is the exit status: 2 an option, 3 an input file, 4 not supported, 5 too little data, 6 environment,
    7 conflict (docs/errors.md); negative: the signal that ended the program. `command` is the command line."""

    def __init__(self, message: str, status: int, command: list[str]):
        super().__init__(message)
        self.status, self.command = status, command


def program_path(program: str) -> str:
    """The path of `kvspectrum` or `kvcalibrate`: in the folder that the variable KVSPECTRUM_PROGRAMS names, or in the
    package.
    @raises FileNotFoundError if it is not there"""
    folder = os.environ.get("KVSPECTRUM_PROGRAMS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    path = os.path.join(folder, program)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: is missing; the wheel of kvspectrum has it, or KVSPECTRUM_PROGRAMS names the "
                                "folder of the programs")
    return path


# Options that are repeated for several values. The values of all others are one word with commas.
_REPEATED = frozenset({"calibration_text", "config", "set", "text", "tokens_file"})


def path_word(path: str | bytes | PathLike[str]) -> str:
    """A path as a word of a command. A relative path that begins with "-" is no option."""
    word = os.fsdecode(path)
    return os.path.join(".", word) if word.startswith("-") else word


def _texts(name: str, value: Any) -> list[str]:
    """@raises ValueError for an empty list"""
    if isinstance(value, (str, bytes, os.PathLike)):
        return [os.fsdecode(value)]
    if not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:  # a number, also NumPy's
        return [str(value)]
    texts = [os.fsdecode(one) if isinstance(one, (bytes, os.PathLike)) else str(one) for one in value]
    if not texts:
        raise ValueError(f"{name}: found an empty list, expected at least one value, or None")
    return texts


def option_words(options: dict[str, Option]) -> list[str]:
    """The words of options by their Python names: `max_kl=0.01` is `--max-kl 0.01`, True is an option without a value,
    None and False are no option, a list is repeated (`text`, `config`) or one word with commas (`methods`).
    @raises ValueError for an empty list; TypeError for `help`"""
    words: list[str] = []
    for name, value in options.items():
        if name in ("help", "version"):
            raise TypeError(f"{name}: prints a text instead of a result; run the program in a shell")
        if value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
            continue
        texts = _texts(name, value)
        for text in texts if name in _REPEATED else [",".join(texts)]:
            words += [option, text]
    return words


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run_program(program: str, words: Sequence[str], progress: Listener | bool = False) -> str:
    """Runs a program and returns what it prints on standard output.
    @param progress  gets each line of notes, estimates and progress while the program runs; True: they are printed to
                     sys.stderr; False: the program is told `--quiet`
    @raises ProgramError if the exit status is not 0. KeyboardInterrupt stops the program, which keeps its state: the
            same call with `resume=True` continues."""
    import subprocess
    import tempfile

    command = [program_path(program), *words, *([] if progress else ["--quiet"])]
    listener = print_line if progress is True else progress
    problem = ""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE, text=True,
                              encoding="utf-8", errors="replace") as process:
            assert process.stderr is not None
            try:
                for line in map(str.rstrip, process.stderr):
                    if line.startswith(f"{program}: error: "):
                        problem = line.removeprefix(f"{program}: error: ")
                    elif listener:
                        listener(line)
            except BaseException:
                process.send_signal(2)  # SIGINT: the program writes its state
                process.wait()
                raise
        if process.returncode != 0:
            raise ProgramError(problem or f"ended with status {process.returncode}", process.returncode, command)
        printed.seek(0)
        return printed.read()
