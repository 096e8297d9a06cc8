#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the folder of cuDNN's C++ front end (headers, version 1.32.0, Apache-2.0 and MIT). Fetches it once from the
# Python package index into ${KVS_CACHE:-~/.cache/kvspectrum} and checks its SHA-256. Does not fetch cuDNN itself: a
# CUDA build needs cuDNN's headers in the toolkit's folder, and a program needs cuDNN's library at run time.
set -euo pipefail
version=1.32.0
digest=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0
cache=${KVS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvspectrum}
folder=$cache/cudnn-frontend-$version  # the headers expect a folder named include

if [ ! -f "$folder/include/cudnn_frontend.h" ]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # The headers are the same in every wheel, so one Python version serves all.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" --only-binary :all: \
    --implementation cp --python-version 3.11 --abi cp311 --platform manylinux_2_28_x86_64 \
    "nvidia-cudnn-frontend==$version" >&2
  echo "$digest  $(ls "$work"/*.whl)" | sha256sum --check --status ||
    { echo "fetch_cudnn_frontend.sh: error: found another wheel than the one of SHA-256 $digest" >&2; exit 3; }
  unzip -q "$work"/*.whl 'include/*' -d "$work"
  rm -rf "$folder"
  mkdir "$folder"
  mv "$work/include" "$folder/"
fi
echo "$folder/include"
