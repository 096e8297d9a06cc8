# SPDX-License-Identifier: Apache-2.0
"""Reads each config named on standard input as the Python package does: a line of its verdict, "valid" or the error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "export/python"))

from kvspectrum.reader import ConfigError, read_config  # noqa: E402

for line in sys.stdin:
    path = line.rstrip("\n")
    try:
        read_config(path)
        verdict = "valid"
    except ConfigError as error:
        verdict = f"refused: {error}"
    except Exception as error:  # the package promises ConfigError alone
        verdict = f"raised {type(error).__name__}: {error}"
    print(verdict.replace("\n", "\\n"))
