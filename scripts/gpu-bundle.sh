#!/usr/bin/env bash
# Builds a folder that runs the kernels' tests on another machine with an NVIDIA GPU, without network or packages:
#   scripts/gpu-bundle.sh [FOLDER]        (default build/gpu-bundle)
# It holds the test program, both programs and the shared libraries they need, for any x86-64-v3 processor; at most
# 64 MiB. Left out on purpose, to be found on the GPU machine: the driver, glibc (2.36 or later), and the CUDA 13
# libraries, which alone would be 1 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/gpu-bundle}
build=build/cuda-portable
jobs=${KVS_JOBS:-$(nproc)}

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVS_CUDA=ON -DKVS_NATIVE=OFF -DKVS_BENCHMARKS=OFF \
  -DCMAKE_CXX_FLAGS=-march=x86-64-v3 >/dev/null
cmake --build $build --target kvs_kernels_test kvspectrum kvcalibrate -- -j "$jobs"

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib"
cp scripts/gpu-test.sh "$folder/"
for program in kvs_kernels_test kvspectrum kvcalibrate; do
  strip -o "$folder/bin/$program" $build/bin/$program
done
elsewhere='^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libcuda|libcudart|libcublas|libcublasLt|libcufft|libcusolver|libcusparse|libnvJitLink)[.-]'
for program in "$folder"/bin/*; do ldd "$program"; done | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u |
  while read -r name path; do
    grep -qE "$elsewhere" <<<"$name" || cp -L "$path" "$folder/lib/$name"
  done
if for program in "$folder"/bin/*; do ldd "$program"; done | grep -q 'not found'; then
  echo "gpu-bundle.sh: error: a program needs a library that this machine lacks" >&2
  exit 6
fi
git describe --always --dirty >"$folder/commit"

bytes=$(du -sb "$folder" | cut -f1)
echo "$folder: $((bytes / 1048576)) MiB, commit $(cat "$folder/commit")"
[ "$bytes" -le $((64 * 1048576)) ] || { echo "gpu-bundle.sh: error: found $bytes bytes, expected at most 64 MiB" >&2; exit 6; }
