#!/usr/bin/env bash
# Sets the machine up, builds and runs every test: the suite under ASan and UBSan, the fuzz targets (30 s each), the CUDA
# build where nvcc is, and last the Release suite with the end-to-end runs. Needs nothing but a Debian 12 base.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
KVS_MODEL=$(scripts/fetch_model.sh)
export KVS_MODEL
jobs=$(nproc)
export OMP_WAIT_POLICY=passive  # two test programs at a time: waiting threads must not spin

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" ${1:+--target "$@"} -- -j "$jobs" >"build/$preset/build.log" 2>&1 ||
    { tail -40 "build/$preset/build.log" >&2; exit 1; }
}

echo "== Release build"; build cpu
echo "== suite under AddressSanitizer and UndefinedBehaviorSanitizer"; build asan
env -u KVS_MODEL ctest --preset asan -L unit -j "$jobs"  # the tests of the real model run in the Release suite
echo "== fuzz targets"; build fuzz
ctest --preset fuzz -L fuzz -j "$jobs"
if command -v nvcc >/dev/null; then
  echo "== CUDA build (nothing here runs it)"; build cuda kvspectrum kvcalibrate kvs_kernels_test kvs_benchmarks
fi
echo "== Release suite"
ctest --preset cpu -j "$jobs"
