#!/usr/bin/env bash
# Runs press_test.py in a venv of its own, FOLDER/kvpress, which takes torch from the other one: kvpress needs an older
# Transformers. Usage: press_test.sh FOLDER BINARIES. Ends with status 77 (skipped) where packages cannot be had.
set -euo pipefail
folder=$1 requirements=$(dirname "$0")/press.txt
if ! cmp -s "$requirements" "$folder/kvpress/ready"; then
  rm -rf "$folder/kvpress"
  "$folder/venv/bin/python" -m venv "$folder/kvpress"
  packages=$("$folder/venv/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
  echo "import site; site.addsitedir('$packages')" > "$("$folder/kvpress/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")/zz_engines.pth"
  if ! "$folder/kvpress/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$requirements"; then
    echo "skipped: kvpress cannot be installed (is there a network?)"
    exit 77
  fi
  cp "$requirements" "$folder/kvpress/ready"
fi
if [[ -z ${KVS_MODEL:-} ]]; then
  echo "skipped: KVS_MODEL is not set (the path that scripts/fetch_model.sh prints)"
  exit 77
fi
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
exec "$folder/kvpress/bin/python" "$(dirname "$0")/press_test.py" "$2" "$folder"
