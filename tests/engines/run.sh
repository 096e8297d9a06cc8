#!/usr/bin/env bash
# Runs a test of this folder in the venv that setup.sh made. Usage: run.sh FOLDER TEST.py BINARIES
set -euo pipefail
folder=$1
if [[ ! -e $folder/ready ]]; then
  echo "skipped: no engines in $folder (setup.sh)"
  exit 77
fi
if [[ -z ${KVS_MODEL:-} ]]; then
  echo "skipped: KVS_MODEL is not set (the path that scripts/fetch_model.sh prints)"
  exit 77
fi
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
exec "$folder/venv/bin/python" "$(dirname "$0")/$2" "$3" "$folder"
