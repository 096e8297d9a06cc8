#!/usr/bin/env bash
# Makes FOLDER/venv with the engines of requirements.txt and FOLDER/oldest with the oldest Transformers that
# export/python supports, once; compiles llama.cpp, which takes minutes.
# Usage: setup.sh FOLDER. Exits with status 77 (skipped) if packages are not available.
set -euo pipefail
here=$(dirname "$0") requirements=$(dirname "$0")/requirements.txt
folder=$1
mkdir -p "$folder"
if ! cmp -s "$requirements" "$folder/ready"; then
  rm -rf "$folder/ready" "$folder/venv" "$folder/oldest" "$folder/kvpress"
  python3 -m venv "$folder/venv"
  # Without AMX, because llama.cpp's AMX code has crashed.
  export CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON"
  if ! "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$requirements"; then
    echo "skipped: the packages of tests/engines/requirements.txt cannot be installed (is there a network?)"
    exit 77
  fi
  cp "$requirements" "$folder/ready"
fi
exec "$here/venv.sh" "$folder" oldest "$here/oldest.txt"
