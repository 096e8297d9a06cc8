#!/usr/bin/env bash
# Builds a folder that tests and measures the CUDA backend on another machine with an NVIDIA GPU, without network or
# packages:
#   scripts/gpu-bundle.sh [FOLDER]        (default build/gpu-bundle; then FOLDER/gpu-test.sh there)
# It holds the test and benchmark programs, both programs and the shared libraries they need, for any x86-64-v3 processor,
# packed (unpacked they take more than 100 MiB); at most 64 MiB. Left out on purpose, to be found on the GPU machine: the driver, glibc (2.36 or later), and the CUDA 13
# libraries, which alone would be 1 GB. KVS_MODEL=FILE.gguf also cuts that model into FOLDER.model-N/model.gguf.part-N of
# at most 48 MiB, each to be carried by itself and put into the bundle's folder there.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/gpu-bundle}
build=build/cuda-portable
jobs=${KVS_JOBS:-$(nproc)}
programs=(kvs_kernels_test kvspectrum kvcalibrate make_model gpu_speed gpu_agreement)

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVS_CUDA=ON -DKVS_NATIVE=OFF \
  -DCMAKE_CXX_FLAGS=-march=x86-64-v3 >/dev/null
cmake --build $build --target "${programs[@]}" -- -j "$jobs"

rm -rf "$folder" "$folder".model-*
mkdir -p "$folder/bin" "$folder/lib" "$folder/python"
cp scripts/gpu-test.sh "$folder/"
cp data/opticks_sample.txt "$folder/sample.txt"
cp tests/bench/{transformers_gpu,transformers_ablation,gpu_report}.py "$folder/python/"
for program in "${programs[@]}"; do
  strip -o "$folder/bin/$program" $build/bin/"$program"
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
tar -C "$folder" -czf "$folder/programs.tar.gz" bin lib
rm -r "$folder/bin" "$folder/lib"

if [ -n "${KVS_MODEL:-}" ]; then
  part=0
  split -b 48M -d -a 1 "$KVS_MODEL" "$folder.part-"
  for piece in "$folder".part-*; do
    mkdir -p "$folder.model-$part"
    mv "$piece" "$folder.model-$part/model.gguf.part-$part"
    part=$((part + 1))
  done
fi
bytes=$(du -sb "$folder" | cut -f1)
echo "$folder: $((bytes / 1048576)) MiB, commit $(cat "$folder/commit")"
[ "$bytes" -le $((64 * 1048576)) ] || { echo "gpu-bundle.sh: error: found $bytes bytes, expected at most 64 MiB" >&2; exit 6; }
