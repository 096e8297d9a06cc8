#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs press_test.py in a venv of its own, FOLDER/kvpress: kvpress needs an older Transformers.
# Usage: press_test.sh FOLDER BINARIES. Exits with status 77 (skipped) if packages are not available.
set -euo pipefail
here=$(dirname "$0")
"$here/venv.sh" "$1" kvpress "$here/press.txt"
exec "$here/run.sh" "$1" kvpress press_test.py "$2"
