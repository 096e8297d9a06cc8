#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up the machine, builds, runs every test, and prints the duration of each stage. Needs only a Debian 12 base.
#   --long  runs every fuzz target for 2 minutes instead of 5 s, the unit tests without optimisation, and the tests with
#           the label "long"
# tests/README.md describes the stages.
set -euo pipefail
cd "$(dirname "$0")/.."
long=
case ${*:-} in
  "") fuzz_seconds=5 skip=(-LE long) ;;
  --long) fuzz_seconds=120 skip=() long=yes ;;
  *) echo "test.sh: error: found '$*', expected --long or nothing" >&2; exit 2 ;;
esac
jobs=$(nproc)
export OMP_WAIT_POLICY=passive  # two test programs run at once: waiting threads must not spin

# stage NAME COMMAND...
stage() {
  local name=$1 started=$SECONDS
  shift
  echo "== $name"
  "$@"
  echo "== $name: $((SECONDS - started)) s"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" -DKVS_WERROR=ON -DKVS_FUZZ_SECONDS=$fuzz_seconds >/dev/null
  cmake --build --preset "$preset" ${1:+--target "$@"} -- -j "$jobs" >"build/$preset/build.log" 2>&1 ||
    { tail -40 "build/$preset/build.log" >&2; exit 1; }
}

stage "packages and model" scripts/setup.sh development
KVS_MODEL=$(scripts/fetch_model.sh)
export KVS_MODEL
stage "Release build" build cpu
stage "lint" scripts/lint.sh
stage "build for AddressSanitizer and UndefinedBehaviorSanitizer" build asan
# The Release suite runs the tests of the real model.
stage "unit tests under the sanitizers" env -u KVS_MODEL ctest --preset asan -L unit -j "$jobs"
if [ -n "$long" ]; then
  stage "build without optimisation, every type's definitions compared" build debug
  stage "unit tests without optimisation" env -u KVS_MODEL ctest --preset debug -L unit -j "$jobs"
fi
stage "build of the fuzz targets" build fuzz kvs_fuzz ${long:+kvs_fuzz_long}
stage "fuzz targets" ctest --preset fuzz -L fuzz "${skip[@]}" -j "$jobs"
if command -v nvcc >/dev/null; then
  stage "CUDA build, which nothing here runs" build cuda kvspectrum kvcalibrate kvs_kernels_test kvs_benchmarks
fi
if grep -qw avx512f /proc/cpuinfo; then  # elsewhere the Release suite is that of AVX2
  stage "numeric tests limited to AVX2" ctest --preset avx2 -j "$jobs"
fi
echo "== Release suite, after $SECONDS s"
ctest --preset cpu "${skip[@]}" -j "$jobs"
