# SPDX-License-Identifier: Apache-2.0
"""The console scripts of the two programs. A script becomes the program: signals and exit status are the program's."""

import os
import sys
from typing import NoReturn

from kvspectrum.programs import program_path


def _become(program: str) -> NoReturn:
    try:
        path = program_path(program)
    except FileNotFoundError as error:
        sys.exit(f"{program}: error: {error}")
    os.execv(path, [program, *sys.argv[1:]])


def kvspectrum() -> NoReturn:
    _become("kvspectrum")


def kvcalibrate() -> NoReturn:
    _become("kvcalibrate")
