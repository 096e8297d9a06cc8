#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pins the Python packages of tests. Writes FILE.txt from FILE.in: every package that FILE.in needs, with its version
# and the SHA-256 of its file for this Python and processor; only those in FILE.in if its first line is `# without
# dependencies`. Installs nothing. Needs python3-venv, which `scripts/setup.sh build` installs.
# Usage: pin_packages.sh FILE.in...
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --upgrade pip  # resolves from metadata alone
for wanted in "$@"; do
  options=(--quiet --dry-run --ignore-installed --report "$work/report" -r "$wanted")
  [[ $(head -n 1 "$wanted") != "# without dependencies" ]] || options+=(--no-deps)
  "$work/venv/bin/pip" install "${options[@]}"
  "$work/venv/bin/python" - "$work/report" "${wanted##*/}" >"$work/pinned" <<'PYTHON'
import json, sys

print(f"# Made by scripts/pin_packages.sh from {sys.argv[2]}, for CPython 3.11 on x86-64.")
for line in sorted(
    f"{package['metadata']['name'].lower()}=={package['metadata']['version']} "
    f"--hash=sha256:{package['download_info']['archive_info']['hashes']['sha256']}"
    for package in json.load(open(sys.argv[1]))["install"]
):
    print(line)
PYTHON
  mv "$work/pinned" "${wanted%.in}.txt"
done
