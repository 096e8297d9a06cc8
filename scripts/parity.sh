#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the forward pass with Transformers on tiny models of every architecture and RoPE type (safetensors and GGUF)
# and on models and configs drawn at random. Compares how damaged files are read with the formats' own packages. Needs
# the network once: pip installs into build/parity/venv. Usage: scripts/parity.sh [PRESET]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-cpu}
folder=$PWD/build/parity
python=$folder/venv/bin/python

mkdir -p "$folder"
if ! cmp -s tests/parity/requirements.txt "$folder/ready"; then
  rm -rf "$folder/ready" "$folder/venv"
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet --require-hashes -r tests/parity/requirements.txt
  cp tests/parity/requirements.txt "$folder/ready"
fi
rm -rf "$folder/models"
PYTHONDONTWRITEBYTECODE=1 "$python" tests/parity/make_models.py "$folder/models"

cmake --preset "$preset" -DKVS_PARITY_PYTHON="$python" >/dev/null
cmake --build --preset "$preset" --target kvs_parity_test tokenize_lines read_files model_nll -- -j "$(nproc)"
KVS_PARITY_DIR=$folder/models OMP_WAIT_POLICY=passive ctest --preset "$preset" -L parity --no-tests=error -j "$(nproc)"
