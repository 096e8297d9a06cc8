#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes FOLDER/venv with the engines of requirements.txt and FOLDER/oldest with the oldest Transformers that
# export/python supports, once; compiles llama.cpp, which takes minutes.
# Usage: setup.sh FOLDER. Exits with status 77 (skipped) if packages are not available.
set -euo pipefail
here=$(dirname "$0") requirements=$(dirname "$0")/requirements.txt
folder=$1
mkdir -p "$folder"
if ! cmp -s "$requirements" "$folder/ready"; then
  rm -rf "$folder/ready" "$folder/venv" "$folder/oldest" "$folder/lmcache" "$folder/press" "$folder/llama.cpp"
  python3 -m venv "$folder/venv"
  # The library is compiled below.
  if ! CMAKE_ARGS=-DLLAMA_BUILD=OFF "$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    --require-hashes -r "$requirements"; then
    echo "skipped: the packages of tests/engines/requirements.txt cannot be installed (is there a network?)"
    exit 77
  fi
  # The source archive of llama-cpp-python contains llama.cpp with its tools.
  grep '^llama_cpp_python==' "$requirements" >"$folder/llama.cpp.txt"
  "$folder/venv/bin/pip" download --quiet --disable-pip-version-check --require-hashes --no-deps \
    --no-binary llama-cpp-python --dest "$folder/llama.cpp" -r "$folder/llama.cpp.txt"
  tar -xzf "$folder"/llama.cpp/llama_cpp_python-*.tar.gz -C "$folder/llama.cpp" --strip-components 1
  # Without AMX, because llama.cpp's AMX code has crashed.
  cmake -S "$folder/llama.cpp/vendor/llama.cpp" -B "$folder/llama.cpp/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DLLAMA_BUILD_SERVER=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF >/dev/null
  cmake --build "$folder/llama.cpp/build" --target llama-perplexity >"$folder/llama.cpp/build.log" ||
    { tail -20 "$folder/llama.cpp/build.log" >&2; exit 1; }
  cp "$requirements" "$folder/ready"
fi
exec "$here/venv.sh" "$folder" oldest "$here/oldest.txt"
