#!/usr/bin/env bash
# Sets the machine up, builds and runs every test: the suite under ASan and UBSan, the fuzz targets (30 s each), the CUDA
# build where nvcc is, and last the Release suite with the end-to-end runs. Needs nothing but a Debian 12 base.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
KVS_MODEL=$(scripts/fetch_model.sh)
export KVS_MODEL
jobs=$(nproc)

build() { cmake --preset "$1" >/dev/null && cmake --build --preset "$1" -- -j "$jobs" >"build/$1/build.log" 2>&1 ||
  { tail -40 "build/$1/build.log" >&2; exit 1; }; }

echo "== Release build"; build cpu
echo "== suite under AddressSanitizer and UndefinedBehaviorSanitizer"; build asan
ctest --preset asan -L unit -j "$jobs"
echo "== fuzz targets"; build fuzz
ctest --preset fuzz -L fuzz -j "$jobs"
if command -v nvcc >/dev/null; then
  echo "== CUDA build"; build cuda
fi
echo "== Release suite"
ctest --preset cpu -j "$jobs"
