#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the package, builds the examples of export/cpp and export/codec against it, and reads configs with them.
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

# The codec in C.
cmake -S "$source/export/codec/example" -B "$folder/codec" -DCMAKE_PREFIX_PATH="$folder/prefix" >>"$folder/log"
cmake --build "$folder/codec" >>"$folder/log"
"$source/tests/package/make_transform_config.py" "$source/tests/package/lagkv.json" "$folder"
"$folder/codec/round_trip" "$folder/transform.json" 30 3 64 29 >"$folder/printed"
# A head of 48 bytes, 4 sinks in f32, 60 tokens of 6 rows of 2 + 32 bytes.
grep -q '^layer 29: 64 tokens in 18432 bytes, relative error of keys 0\.0[0-9]*, of values 0\.[01]' "$folder/printed" || {
  cat "$folder/printed" >&2
  exit 1
}
if "$folder/codec/round_trip" "$folder/transform.json" 30 3 32 29 2>"$folder/refused"; then
  echo "a config for another head_dim was opened" >&2
  exit 1
fi
grep -q 'model.head_dim of layer 0: found 64, expected 32' "$folder/refused"
awk '/^```c$/ { code = 1; next } /^```/ { code = 0 } code' "$source/docs/codec.md" >"$folder/page.c"
test -s "$folder/page.c"
cc -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -I "$folder/prefix/include" "$folder/page.c"
library=$(find "$folder/prefix" -name libkvspectrum_codec.so)
"$source/tests/structure/check_library.sh" "$library" libgomp
if nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^kvs_codec_'; then
  echo "$library exports the names above, expected kvs_codec_* alone" >&2
  exit 1
fi
