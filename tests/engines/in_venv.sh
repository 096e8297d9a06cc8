#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs NAME_test.py in a venv of its own, FOLDER/NAME, with the packages of NAME.txt: kvpress needs an older
# Transformers, and lmcache comes without its dependencies.
# Usage: in_venv.sh FOLDER NAME BINARIES. Exits with status 77 (skipped) if packages are not available.
set -euo pipefail
here=$(dirname "$0")
"$here/venv.sh" "$1" "$2" "$here/$2.txt"
exec "$here/run.sh" "$1" "$2" "$2_test.py" "$3"
