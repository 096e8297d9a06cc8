# SPDX-License-Identifier: Apache-2.0
"""The package takes the versions of Transformers that the suite runs: from oldest.in's to requirements.in's. Says when
pip gives a newer one. Usage: versions_test.py; needs no packages."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def pinned(file):
    return re.search(r"^transformers==([\d.]+)$", (HERE / file).read_text(), re.MULTILINE)[1]


def numbers(version):
    return tuple(map(int, version.split(".")))


def newest_of_pip():
    """@return a version, or None if pip cannot tell"""
    done = subprocess.run([sys.executable, "-m", "pip", "index", "versions", "transformers"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = re.match(r"transformers \(([\d.]+)\)", done.stdout)
    return found and found[1]


oldest, newest = pinned("oldest.in"), pinned("requirements.in")
major, minor = numbers(newest)[:2]
project = (HERE.parents[1] / "pyproject.toml").read_text()
bounds = re.search(r'"transformers(>=[^"]*)"', project)[1]
expected = f">={oldest.removesuffix('.0')},<{major}.{minor + 1}"
if bounds != expected:
    sys.exit(f"pyproject.toml: found transformers{bounds}, expected {expected}: what the suite runs")
given = newest_of_pip()
if given is None:
    print("pip does not say which versions there are (is there a network?)")
elif numbers(given) > numbers(newest):
    sys.exit(f"found Transformers {given} on the package index, expected {newest}, the newest that the suite runs: put "
             "it into tests/engines/requirements.in, run scripts/pin_packages.sh and the suite, and move the bound of "
             "pyproject.toml")
print(f"Transformers {oldest} to {newest}; pip gives {given}")
