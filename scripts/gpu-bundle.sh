#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a folder that tests and measures the CUDA backend on another machine with an NVIDIA GPU. That machine needs
# neither network nor packages.
#   scripts/gpu-bundle.sh [FOLDER]        (default build/gpu-bundle; then run FOLDER/gpu-test.sh there)
# The folder holds the test and benchmark programs, both programs and the shared libraries they need, packed. It leaves
# out libraries that the GPU machine must have: the driver, glibc (2.36 or later), and the libraries of CUDA 13 and
# cuDNN, which are over 1 GB.
#   KVS_TRANSFER_MIB   limit of one transfer: the bundle and the repository's own files together (64)
#   KVS_ARCHITECTURES  the GPUs (90); the preset cuda builds "80-real;90"
#   KVS_CUDNN          CMake's option of that name (ON)
#   KVS_MODEL          a GGUF file that is also split into FOLDER.model-N/model.gguf.part-N. Each piece is one transfer
#                      into $SCRATCH of the GPU machine.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/gpu-bundle}
build=build/cuda-portable
jobs=${KVS_JOBS:-$(nproc)}
transfer=${KVS_TRANSFER_MIB:-64}
most=$((transfer * 1048576 - $(git ls-files -z | xargs -0 du -cbL | tail -1 | cut -f1)))
programs=(kvs_kernels_test kvs_model_test kvspectrum kvcalibrate make_model gpu_smoke gpu_speed gpu_agreement gpu_compare)

# The programs find the packed libraries by themselves; other programs on the GPU machine do not see these libraries.
# shellcheck disable=SC2016
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVS_CUDA=ON \
  '-DCMAKE_BUILD_RPATH=$ORIGIN/../lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DKVS_CUDNN="${KVS_CUDNN:-ON}" \
  "-DCMAKE_CUDA_ARCHITECTURES=${KVS_ARCHITECTURES:-90}" >/dev/null
cmake --build $build --target "${programs[@]}" -- -j "$jobs"

rm -rf "$folder" "$folder".model-*
mkdir -p "$folder/bin" "$folder/lib" "$folder/python" "$folder/parity"
cp scripts/gpu-test.sh "$folder/"
cp data/opticks_sample.txt "$folder/sample.txt"
cp tests/bench/{transformers_gpu,transformers_ablation,transformers_profile,gpu_report,gpu_programs}.py "$folder/python/"
cp tests/golden/parity/*.json "$folder/parity/"
for program in "${programs[@]}"; do
  strip -o "$folder/bin/$program" $build/bin/"$program"
done
elsewhere='^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libcuda|libcudart|libcublas|libcublasLt|libcudnn|libcudnn_[a-z_]+|libcufft|libcusolver|libcusparse|libnvJitLink)[.-]'
# Libraries that the programs load at run time (src/kernels/cpu/lapack_library.cpp).
loaded=$(ldconfig -p | awk '/x86-64/ && ($1 == "libopenblas.so.0" || $1 == "liblapacke.so.3") {print $1, $NF}')
mapfile -t loaded_paths < <(cut -d' ' -f2 <<<"$loaded")
{
  echo "$loaded"
  for file in "$folder"/bin/* "${loaded_paths[@]}"; do ldd "$file"; done | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}'
} | sort -u |
  while read -r name path; do
    grep -qE "$elsewhere" <<<"$name" || strip -o "$folder/lib/$name" "$(readlink -f "$path")"
  done
if for program in "$folder"/bin/*; do ldd "$program"; done | grep -q 'not found'; then
  echo "gpu-bundle.sh: error: a program needs a library that this machine lacks" >&2
  exit 6
fi
git describe --always --dirty >"$folder/commit"
tar -C "$folder" -cf - bin lib | xz -9 -T "$jobs" >"$folder/programs.tar.xz"
rm -r "${folder:?}"/{bin,lib}

if [ -n "${KVS_MODEL:-}" ]; then
  stat -c %s "$KVS_MODEL" >"$folder/model.bytes"
  split -b "$((most - 1048576))" -d -a 1 "$KVS_MODEL" "$folder.part-"
  for piece in "$folder".part-*; do
    part=${piece##*-}
    mkdir -p "$folder.model-$part"
    mv "$piece" "$folder.model-$part/model.gguf.part-$part"
  done
fi
bytes=$(du -sb "$folder" | cut -f1)
echo "$folder: $((bytes / 1048576)) MiB of $((most / 1048576)), commit $(cat "$folder/commit")"
[ "$bytes" -le $most ] || { echo "gpu-bundle.sh: error: found $bytes bytes, expected at most $most: $transfer MiB with the repository's files (KVS_TRANSFER_MIB)" >&2; exit 6; }
