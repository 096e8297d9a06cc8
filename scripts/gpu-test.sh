#!/usr/bin/env bash
# On a GPU machine: runs the CUDA tests of a bundle that gpu-bundle.sh made; a missing device is a failure here.
#   gpu-test.sh [BUNDLE] [--sanitize] [gtest options ...]     (default bundle: this script's folder, else build/gpu-bundle)
# --sanitize runs the tests once more under compute-sanitizer, the longest sizes left out.
# Needs CUDA 13's libraries: on the loader's path, in CUDA_HOME/lib64, in /usr/local/cuda/lib64 or in a Python's
# site-packages (nvidia/cu13/lib), in that order.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$here
[ -d "$bundle/bin" ] || bundle=$here/../build/gpu-bundle
if [ $# -gt 0 ] && [ -d "$1" ]; then bundle=$1; shift; fi
test=$bundle/bin/kvs_kernels_test
[ -x "$test" ] || { echo "gpu-test.sh: error: found no $test, expected a bundle by scripts/gpu-bundle.sh" >&2; exit 3; }
sanitize=0
if [ "${1:-}" = --sanitize ]; then sanitize=1; shift; fi

LD_LIBRARY_PATH=$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 \
  "$(python3 -c 'import nvidia.cu13 as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null || true)"; do
  [ -d "$folder" ] && LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folder
done
export LD_LIBRARY_PATH KVS_REQUIRE_CUDA=1

missing=$(ldd "$test" | awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
[ -z "$missing" ] || { echo "gpu-test.sh: error: found no $missing, expected CUDA 13's libraries (set CUDA_HOME)" >&2; exit 6; }
echo "commit $(cat "$bundle/commit" 2>/dev/null || echo unknown) on $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || echo 'a machine without nvidia-smi')"

"$test" --gtest_filter='*BothDevices*:CudaBackend.*' --gtest_brief=1 "$@"
if [ $sanitize = 1 ]; then
  compute-sanitizer --error-exitcode 1 "$test" --gtest_brief=1 \
    --gtest_filter='*BothDevices*SwigluAndWiden*:*BothDevices*AttentionToAPast*:*BothDevices*CholeskyFactors*:*BothDevices*RefusesLogits*'
fi
