#!/usr/bin/env bash
# On a GPU machine: tests and measures a bundle that gpu-bundle.sh made; a missing device is a failure here.
#   gpu-test.sh [BUNDLE] [STEP ...]     (default bundle: this script's folder, else build/gpu-bundle; default: all steps)
# Steps: tests      every CUDA operation against the CPU
#        sanitize   a part of them once more under compute-sanitizer (memcheck, racecheck, synccheck), where there is one
#        agreement  a whole model on both devices: SmolLM2 (model.gguf or model.gguf.part-* in the bundle, or KVS_MODEL),
#                   else one with random weights
#        llama2-7b, llama3-8b, qwen2.5-7b   speeds at these geometries, random weights, beside Transformers
#        report     the table, and $OUT/gpu.json
# Results go to $OUT (default: ./gpu-results) as they come, so that a run that is cut short keeps them; models are made in
# $SCRATCH (default: /dev/shm, 24 GB with the captures). TOKENS (4096) tokens are prefilled.
# Needs CUDA 13's libraries: on the loader's path, in CUDA_HOME/lib64, in /usr/local/cuda/lib64 or in a Python's
# site-packages (nvidia/cu13/lib), in that order; PyTorch and Transformers for the comparisons.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$here
[ -f "$bundle/programs.tar.gz" ] || bundle=$here/../build/gpu-bundle
if [ $# -gt 0 ] && [ -d "$1" ]; then bundle=$1; shift; fi
bundle=$(cd "$bundle" 2>/dev/null && pwd || echo "$bundle")
[ -f "$bundle/programs.tar.gz" ] || { echo "gpu-test.sh: error: found no $bundle/programs.tar.gz, expected a bundle by scripts/gpu-bundle.sh" >&2; exit 3; }
steps=${*:-tests sanitize agreement llama2-7b llama3-8b report}
OUT=${OUT:-gpu-results}; SCRATCH=${SCRATCH:-/dev/shm}; TOKENS=${TOKENS:-4096}
programs=$SCRATCH/kvs-programs; bin=$programs/bin
rm -rf "$programs" && mkdir -p "$programs" && tar -C "$programs" -xzf "$bundle/programs.tar.gz" || exit 6
device=${KVS_DEVICE:-cuda}
mkdir -p "$OUT"
results=$OUT/results.jsonl

found_path=${LD_LIBRARY_PATH:-}
LD_LIBRARY_PATH=$programs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 \
  "$(python3 -c 'import nvidia.cu13 as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null || true)"; do
  [ -d "$folder" ] && LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folder
done
export LD_LIBRARY_PATH
[ "$device" = cpu ] || export KVS_REQUIRE_CUDA=1
python() { LD_LIBRARY_PATH=$found_path python3 "$@"; }  # PyTorch brings its own
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin  # compute-sanitizer

missing=$(for program in "$bin"/*; do ldd "$program"; done | awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
[ -z "$missing" ] || { echo "gpu-test.sh: error: found no $missing, expected CUDA 13's libraries (set CUDA_HOME)" >&2; exit 6; }
machine=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | tr '\n"' "; ")
machine=${machine:-no nvidia-smi}
room=$(df --output=avail -BG "$SCRATCH" | tr -dc 0-9)
[ "$room" -ge 24 ] || echo "gpu-test.sh: warning: found $room GB free in $SCRATCH, expected 24 for the models of 7 billion weights" >&2
echo "commit $(cat "$bundle/commit" 2>/dev/null || echo unknown) on $machine"
echo "{\"section\": \"machine\", \"model\": \"\", \"commit\": \"$(cat "$bundle/commit" 2>/dev/null)\", \"gpu\": \"$machine\"}" >>"$results"

failed=
# step NAME COMMAND...: what it prints on stdout in JSON joins the results; a failure is noted, the next step runs.
step() {
  local name=$1; shift
  echo "== $name"
  "$@" > >(tee >(grep '^{' >>"$results")) || { echo "gpu-test.sh: $name failed ($?)" >&2; failed="$failed $name"; }
}

sanitize() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here: skipped"; return 0; }
  local tool
  for tool in memcheck racecheck synccheck; do
    compute-sanitizer --tool $tool --error-exitcode 1 "$bin/kvs_kernels_test" --gtest_brief=1 \
      --gtest_filter='*CudaAttention.ToAPast*:*CudaAttention.AtTheEdges*:*BothDevices*Activations*:*BothDevices*CholeskyFactors*:*BothDevices*RefusesLogits*:*BothDevices*Staging*:*BothDevices*RopeDistance*' || return 1
  done
}

agreement() {
  local model=${KVS_MODEL:-$bundle/model.gguf} text=$bundle/sample.txt
  if [ ! -f "$model" ] && compgen -G "$bundle/model.gguf.part-*" >/dev/null; then
    model=$SCRATCH/kvs-model.gguf
    cat "$bundle"/model.gguf.part-* >"$model" || return 1
  fi
  if [ ! -f "$model" ]; then
    echo "no SmolLM2 carried: random weights instead"
    model=$SCRATCH/kvs-tiny; text=-
    rm -rf "$model"; "$bin/make_model" tiny-llama "$model" f32 || return 1
  fi
  "$bin/gpu_agreement" "$model" "$text" "$([ "$text" = - ] && echo 128 || echo 512)" "$device"
}

speed() {
  local geometry=$1 model=$SCRATCH/$1 status=0
  rm -rf "$model"
  "$bin/make_model" "$geometry" "$model" bf16 || return 1
  "$bin/gpu_speed" "$model" "$device" bf16 "$TOKENS" "$SCRATCH" || status=1
  if python -c 'import torch, transformers' 2>/dev/null; then
    python "$bundle/python/transformers_gpu.py" "$model" --tokens "$TOKENS" --device "$device" || status=1
  else
    echo "no PyTorch and Transformers here: nothing to compare with"
  fi
  rm -rf "$model"
  return $status
}

for name in $steps; do
  case $name in
    tests) step tests "$bin/kvs_kernels_test" --gtest_filter='*BothDevices*:CudaBackend.*:Staging.*' --gtest_brief=1 ;;
    sanitize | agreement) step "$name" "$name" ;;
    report) step report python "$bundle/python/gpu_report.py" "$results" "$OUT/gpu.json" ;;
    *) step "$name" speed "$name" ;;
  esac
  wait  # for the results to be written
done
[ -z "$failed" ] || { echo "gpu-test.sh: failed:$failed" >&2; exit 1; }
