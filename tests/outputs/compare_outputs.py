#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of two builds with equal arguments on a tiny model and compares their outputs: JSON and HDF5 value
by value, other files except figures and pages byte by byte. Prints a line for each run and exits with 1 if anything
differs.

Usage: compare_outputs.py OLD_BIN NEW_BIN [--scratch DIR] [--only NAME …] [--list]

  OLD_BIN, NEW_BIN  folders with kvspectrum and kvcalibrate
  --scratch DIR     keep the outputs in DIR, which may not exist (default: a temporary folder)
  --only NAME       these runs, or all runs of these commands, and the runs whose outputs they read
  --list            print the runs and stop

The GGUF file that $KVS_MODEL names, if any, takes part in a few runs. renames.py holds what may differ.
"""
import argparse
import concurrent.futures
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import commands
import inputs
import renames
from comparison import Rules, file_differences

DRAWN = {".svg", ".png", ".html"}
SHOWN = 5  # differences of a run


class Build:
    """One of the two builds, and the folder for its outputs."""

    def __init__(self, programs, folder):
        self.programs, self.folder = pathlib.Path(programs).resolve(), folder
        folder.mkdir()

    @functools.lru_cache(maxsize=None)
    def help(self, program, command):
        """Returns the whole help of a command, which an older build prints without the word `all`."""
        texts = [subprocess.run([self.programs / program, command, "--help", *more], capture_output=True, text=True).stdout
                 for more in (["all"], [])]
        return max(texts, key=len)

    def spelled(self, step):
        """Returns the arguments of a step in this build's spelling."""
        text = self.help(step.program, step.words[0])
        words = list(step.words)
        for command, old, new in renames.OPTIONS:
            if command in (None, step.words[0]) and f" {new} " in text:
                words = [new if word == old else word for word in words]
        for command, old, new in renames.PARAMETERS:
            if command in (None, step.words[0]) and f" {new}=" in self.help("kvcalibrate", "eval"):
                words = [" ".join(new + part[len(old):] if part.startswith(old + "=") else part for part in word.split(" "))
                         for word in words]
        return words

    def has(self, step):
        """Tells whether this build has the command and the method that a step names."""
        if not self.help(step.program, step.words[0]):
            return False
        named = [value for option, value in zip(step.words, step.words[1:]) if option == "--method"]
        return all(f"\n  {name}" in self.help("kvcalibrate", "eval") for name in named)

    def run(self, step):
        """@return the exit status and the text of standard error"""
        (self.folder / step.name).mkdir()
        done = subprocess.run([self.programs / step.program, *self.spelled(step)], cwd=self.folder, capture_output=True,
                              text=True, env=os.environ | {"OMP_WAIT_POLICY": "passive"})
        if "--json" in step.words:
            (self.folder / step.name / "stdout.json").write_text(done.stdout)
        return done.returncode, done.stderr.strip()

    def outputs(self, step):
        folder = self.folder / step.name
        return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file() and path.suffix not in DRAWN}


def found_in(step, old, new):
    """Yields the differences between a step's outputs."""
    rules = Rules(step.name, step.words[0], step.left_out)
    old_files, new_files = old.outputs(step), new.outputs(step)
    for name in sorted(old_files.keys() | new_files.keys()):
        if rules.passes("/" + name):
            continue
        if name not in new_files:
            yield f"{name}: found nothing, expected a file"
        elif name not in old_files:
            yield f"{name}: found a file, expected nothing"
        else:
            for difference in file_differences(old_files[name], new_files[name], rules):
                yield name + difference


def compare(step, old, new, pool):
    """@return the step's line and whether both builds made the same"""
    if not old.has(step):
        return "not run: the old build does not have the command or the method", True
    (old_status, old_error), (new_status, new_error) = pool.map(lambda build: build.run(step), (old, new))
    if old_status != 0:
        return f"not run: the old build ends with {old_status}: {old_error}", False
    if new_status != 0:
        return f"found status {new_status}, expected 0: {new_error}", False
    found = list(found_in(step, old, new))
    if not found:
        return "equal", True
    more = f"\n    and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "differs" + "".join("\n    " + line for line in found[:SHOWN]) + more, False


def chosen(steps, only):
    """Returns the steps that `only` names (all if it is empty) and the steps whose outputs they read."""
    if not only:
        return steps
    names = {name for step in steps for name in (step.name, step.words[0])}
    for name in only:
        if name not in names:
            sys.exit(f"compare_outputs.py: error: --only: found {name}, expected a name that --list prints")
    wanted = {step.name for step in steps if step.name in only or step.words[0] in only}
    for step in reversed(steps):
        if step.name in wanted:
            wanted |= step.needs()
    return [step for step in steps if step.name in wanted]


def options():
    parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def compare_all(steps, old, new):
    """@return the number of steps that differ"""
    unequal = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for step in steps:
            line, equal = compare(step, old, new, pool)
            unequal += not equal
            print(f"{step.words[0]:10} {step.name:34} {line}", flush=True)
    print(f"{len(steps)} runs, {unequal} of them differ")
    return unequal


def main():
    given = options()
    steps = chosen(list(commands.steps(os.environ.get("KVS_MODEL"))), given.only)
    if given.list:
        print("\n".join(f"{step.words[0]:10} {step.name}" for step in steps))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = (given.scratch or pathlib.Path(temporary) / "outputs").resolve()
        if scratch.exists():
            sys.exit(f"compare_outputs.py: error: --scratch: found {scratch}, expected a folder that does not exist")
        inputs.write_inputs(scratch / "inputs")
        return 1 if compare_all(steps, Build(given.old, scratch / "old"), Build(given.new, scratch / "new")) else 0


if __name__ == "__main__":
    sys.exit(main())
