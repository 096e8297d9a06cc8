#!/bin/sh
# Installs the package, builds the example of export/cpp against it, and reads a config with it.
# Usage: run.sh BUILD_FOLDER SOURCE_FOLDER
set -eu
build=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/prefix" >"$folder/log"
cmake -S "$source/export/cpp/example" -B "$folder/example" -DCMAKE_PREFIX_PATH="$folder/prefix" >>"$folder/log"
cmake --build "$folder/example" >>"$folder/log"
"$folder/example/print_config" "$source/tests/package/lagkv.json" >"$folder/printed"
diff - "$folder/printed" <<'PRINTED'
lagkv for Smollm2 135M 8k Lc100K Mix1 Ep2, 30 layers
layer 0, rows in q8_0, 0.5 of every 8 tokens
layer 1, rows in q8_0, 0.5 of every 16 tokens
layer 2, rows in q8_0, 0.5 of every 8 tokens
layer 29, rows in q8_0, 0.5 of every 16 tokens
PRINTED
sed 's/"ratio": 0.5/"ratio": 7/' "$source/tests/package/lagkv.json" >"$folder/wrong.json"
if "$folder/example/print_config" "$folder/wrong.json" 2>"$folder/refused"; then
  echo "a ratio of 7 was read" >&2
  exit 1
fi
grep -q '/parameters/ratio: found 7, expected a number from 0' "$folder/refused"
