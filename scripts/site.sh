#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site of the Markdown pages: build/site/html. A link that leads nowhere is an error. Needs the programs in
# $KVS_PROGRAMS (default build/cpu/bin), and the network once for the tools of scripts/site/tools.txt (a venv of their
# own). Usage: scripts/site.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -ne 0 ]; then
  echo "site.sh: error: found '$1', expected no argument" >&2
  exit 2
fi
tools=build/site/tools
if ! cmp -s scripts/site/tools.txt "$tools/ready"; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r scripts/site/tools.txt
  cp scripts/site/tools.txt "$tools/ready"
fi
python3 scripts/site/stage.py "${KVS_PROGRAMS:-build/cpu/bin}" build/site/pages
# --quiet would leave out warnings, which --strict counts.
NO_MKDOCS_2_WARNING=1 "$tools/bin/mkdocs" build --strict 2>&1 | { grep -v ^INFO || true; }
