#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test of this folder in a venv that setup.sh made. Usage: run.sh FOLDER VENV TEST.py BINARIES
set -euo pipefail
folder=$1 venv=$1/$2
if [[ ! -e $folder/ready || ! -e $venv/bin/python ]]; then
  echo "skipped: no engines in $venv (setup.sh)"
  exit 77
fi
if [[ -z ${KVS_MODEL:-} ]]; then
  echo "skipped: KVS_MODEL is not set (the path that scripts/fetch_model.sh prints)"
  exit 77
fi
export LLAMA_CPP_LIB_PATH=$folder/llama.cpp/build/bin
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" "$(dirname "$0")/$3" "$4" "$folder"
