# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of a page in the current folder, and compares what each block prints with the output block after it.
Usage: page.py PAGE.md [--print]   with --print: only prints what the blocks print"""

import contextlib
import io
import pathlib
import re
import sys

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)

NUMBER = re.compile(r"\d+(?:\.\d+)?")


def alike(found, expected):
    """Whether two texts differ at most in their numbers, and these by at most 5 %: processors round differently."""
    if NUMBER.sub("0", found) != NUMBER.sub("0", expected):
        return False
    return all(abs(float(one) - float(other)) <= 0.05 * float(other)
               for one, other in zip(NUMBER.findall(found), NUMBER.findall(expected)))


names, faults = {}, 0
for code, expected in BLOCK.findall(pathlib.Path(sys.argv[1]).read_text()):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, sys.argv[1], "exec"), names)
    if "--print" in sys.argv:
        print(printed.getvalue())
    elif not alike(printed.getvalue(), expected):
        print(f"{code}\nprinted\n{printed.getvalue()}\nexpected\n{expected}")
        faults += 1
sys.exit(faults)
