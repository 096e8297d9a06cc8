#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and measures on a GPU machine a bundle that gpu-bundle.sh made. A missing device is a failure here.
#   gpu-test.sh [BUNDLE] [STEP ...]     (default bundle: this script's folder, else build/gpu-bundle; default: all)
# Steps: smoke      takes seconds: the device, one product, attention, FFT, SVD, a tiny model. If it cannot run to
#                   its end, no other step starts
#        tests      compares every CUDA operation and the forward pass of nine architectures with the CPU. Each test is
#                   a process of its own, ended after TEST_SECONDS (45)
#        agreement  compares a whole model on both devices: SmolLM2 (model.gguf.part-* in the bundle or in $SCRATCH, or
#                   KVS_MODEL), else a model with random weights
#        programs   compares every output of kvspectrum and kvcalibrate on both devices: SmolLM2 and nine
#                   tiny architectures
#        llama2-7b, llama3-8b, qwen2.5-7b   compares speeds at these geometries with Transformers (random weights)
#        profile    compares the time of each operation of a layer with Transformers, at the geometries of PROFILES
#                   (llama2-7b llama3-8b)
#        sanitize   runs part of the tests under compute-sanitizer (racecheck, memcheck, synccheck) if it is installed
#        report     writes the table of all results so far, $OUT/gpu.json, and $OUT/gemm_table.txt for KVS_GEMM_TABLE
# Results go to $OUT (default: ./gpu-results) as soon as they are known: results.jsonl, log.txt. A copy in $SCRATCH
# serves later calls. SECONDS_LEFT (570) limits one call, and each step has its own limit (STEP_SECONDS sets it for all
# steps). A step that exceeds a limit is ended and reported, so the other steps and the report always run.
# Models are made in $SCRATCH (default: /dev/shm if it has 24 GB, else a RAM disk if one can be mounted, else a folder
# on disk, which the capture's speed then measures). Programs are unpacked in $SCRATCH or, if it does not allow
# execution, in the first folder of $TMPDIR, /tmp, $HOME and $OUT that does. TOKENS (4096) tokens are prefilled.
# Needs CUDA 13's libraries on the loader's path, in CUDA_HOME/lib64, in /usr/local/cuda/lib64 or in a Python's
# site-packages (nvidia/*/lib), searched in that order; Python; PyTorch and Transformers for the comparisons.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$here
[ -f "$bundle/programs.tar.xz" ] || bundle=$here/../build/gpu-bundle
if [ $# -gt 0 ] && [ -d "$1" ]; then bundle=$1; shift; fi
bundle=$(cd "$bundle" 2>/dev/null && pwd || echo "$bundle")
[ -f "$bundle/programs.tar.xz" ] || { echo "gpu-test.sh: error: found no $bundle/programs.tar.xz, expected a bundle by scripts/gpu-bundle.sh" >&2; exit 3; }
steps=${*:-smoke tests agreement programs llama2-7b llama3-8b profile sanitize report}
OUT=${OUT:-gpu-results}; TOKENS=${TOKENS:-4096}
until=$(($(date +%s) + ${SECONDS_LEFT:-570}))
device=${KVS_DEVICE:-cuda}

room() { df --output=avail -BG "$1" 2>/dev/null | tr -dc 0-9; }
if [ -z "${SCRATCH:-}" ]; then
  SCRATCH=/dev/shm
  if [ "$(room /dev/shm || echo 0)" -lt 24 ]; then
    SCRATCH=/tmp/kvs-ram; mkdir -p $SCRATCH
    mountpoint -q $SCRATCH || mount -t tmpfs -o size=48g kvs $SCRATCH 2>/dev/null || echo "gpu-test.sh: warning: no RAM disk: $SCRATCH is on a disk" >&2
  fi
fi
[ "$(room "$SCRATCH")" -ge 24 ] || echo "gpu-test.sh: warning: found $(room "$SCRATCH") GB free in $SCRATCH, expected 24 for the models of 7 billion weights" >&2
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

# Prints a folder from which programs can run; a RAM disk may forbid execution.
executable_folder() {
  local parent probe
  for parent in "$SCRATCH" "${TMPDIR:-/tmp}" /tmp "${HOME:-/root}" "$OUT"; do
    probe=$parent/kvs-programs/probe
    rm -rf "$parent/kvs-programs"
    { mkdir -p "$parent/kvs-programs" && printf '#!/bin/sh\nexit 0\n' >"$probe" && chmod +x "$probe"; } 2>/dev/null || continue
    if "$probe" 2>/dev/null; then echo "$parent/kvs-programs"; return; fi
    rm -rf "$parent/kvs-programs"
  done
  return 1
}
programs=$(executable_folder) || { echo "gpu-test.sh: error: found no folder from which programs may be run (set SCRATCH)" >&2; exit 6; }
bin=$programs/bin
tar -C "$programs" -xJf "$bundle/programs.tar.xz" 2>/dev/null ||  # without xz
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$bundle/programs.tar.xz" "$programs" || exit 6
kept=$SCRATCH/kvs-results.jsonl; results=$OUT/results.jsonl
touch "$kept" && cp "$kept" "$results"

found_path=${LD_LIBRARY_PATH:-}
while read -r folder; do
  [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done < <(printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64
  python3 -c 'import glob, nvidia; print(*(f for p in nvidia.__path__ for f in sorted(glob.glob(p + "/*/lib"))), sep="\n")' 2>/dev/null)
[ -z "${LD_LIBRARY_PATH:-}" ] || export LD_LIBRARY_PATH
[ "$device" = cpu ] || export KVS_REQUIRE_CUDA=1
export OMP_WAIT_POLICY=passive  # several programs run at once: waiting threads must not spin
python() { LD_LIBRARY_PATH=$found_path python3 "$@"; }  # PyTorch brings its own libraries
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin  # compute-sanitizer

missing=$(for program in "$bin"/*; do ldd "$program"; done | awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
[ -z "$missing" ] || { echo "gpu-test.sh: error: found no $missing, expected CUDA 13's libraries (set CUDA_HOME)" >&2; exit 6; }
machine=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | tr '\n"' "; ")
machine="${machine:-no nvidia-smi}, $(nproc) processors"
commit=$(cat "$bundle/commit" 2>/dev/null || echo unknown)
say() { echo "$*" | tee -a "$OUT/log.txt"; }
say "commit $commit on $machine, scratch $SCRATCH, programs in $programs"
note() { echo "{\"section\": \"$1\", \"model\": \"\", $2}" | tee -a "$kept" >>"$results"; }
note machine "\"commit\": \"$commit\", \"gpu\": \"$machine\", \"device\": \"$device\""

limit_of() {  # STEP; prints seconds, about twice the expected time on one H200 with 16 processors
  case $1 in
    smoke) echo 90 ;;
    tests) echo 240 ;;
    agreement | profile) echo 120 ;;
    programs) echo 210 ;;
    sanitize) echo 330 ;;
    report) echo 60 ;;
    *) echo 270 ;;
  esac
}

failed=
# step NAME COMMAND...: logs all output. Adds JSON lines to the results and shows the other lines. Notes a failure or a
# timeout; then the next step runs.
step() {
  local name=$1 start left limit status
  shift
  start=$(date +%s); left=$((until - start - 8)); limit=${STEP_SECONDS:-$(limit_of "$name")}
  [ "$name" != report ] || left=$limit
  [ "$left" -lt "$limit" ] || left=$limit
  say "== $name"
  if [ "$left" -lt 10 ]; then say "-- $name: not begun, the time of this call is over"; failed="$failed $name"; return 0; fi
  timeout -k 5 "$left" bash -c '"$@"' _ "$@" 2>&1 | tee -a "$OUT/log.txt" |
    awk -v kept="$kept" -v results="$results" '/^{/ {print >> kept; print >> results; fflush(); next} {print; fflush()}'
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || failed="$failed $name"
  note step "\"name\": \"$name\", \"status\": $status, \"seconds\": $(($(date +%s) - start))"
  say "-- $name: $([ "$status" = 124 ] && echo "ended after its $left s" || echo "status $status"), $(($(date +%s) - start)) s"
  return "$status"
}

list_tests() {  # FILTER; prints lines "PROGRAM TEST"
  local program
  for program in kvs_kernels_test kvs_model_test; do
    "$bin/$program" --gtest_list_tests --gtest_filter="$1" | awk -v program=$program '/^[^ ]/ {suite = $1} /^  / {print program, suite $1}'
  done
}
# run_tests JOBS WRAPPER...: runs each test named on stdin in its own process, because a CUDA error fails all later
# tests of a process.
run_tests() {
  local jobs=$1
  shift
  OMP_NUM_THREADS=$((($(nproc) + jobs - 1) / jobs)) xargs -P "$jobs" -I{} bash -c 'one_test "$@"' _ {} "$@"
}
# shellcheck disable=SC2317  # xargs calls it
one_test() {  # "PROGRAM TEST" WRAPPER...
  local program=${1% *} name=${1#* } text=$programs/text.$BASHPID status
  shift
  timeout -k 5 "$TEST_SECONDS" "$@" "$bin/$program" --gtest_brief=1 --gtest_filter="$name" >"$text" 2>&1 &
  # shellcheck disable=SC2064
  trap "kill $! 2>/dev/null" TERM  # TERM comes from the step: the test and its wrapper are a process group of their own
  wait $!
  status=$?
  [ "$status" = 0 ] || printf '%s\nFAILED (%s): %s\n' "$(grep -vE '^Running main|^\[=|^\[  PASSED' "$text" | head -c 3000)" \
    "$([ "$status" = 124 ] && echo "ended after $TEST_SECONDS s" || echo "status $status")" "$*${*:+ }$program $name"
  [ "$status" = 0 ] || echo "$name" >>"$programs/failed.$BASHPID"
  echo "$name" >>"$programs/ran.$BASHPID"
  rm -f "$text"
  return $((status > 0))
}

tests() {
  local filter='*BothDevices*:*Cuda*:*Cudnn*:Staging.*' status
  rm -f "$programs"/{ran,failed}.*
  # shellcheck disable=SC2064
  trap "tests_result '$filter'; exit 124" TERM  # reports the results so far if the time ends here
  list_tests "$filter" | run_tests 4
  status=$?
  tests_result "$filter"
  return $status
}
# shellcheck disable=SC2317  # tests calls it
tests_result() {  # FILTER
  local all ran failed
  all=$(list_tests "$1" | wc -l); ran=$(cat "$programs"/ran.* 2>/dev/null | wc -l); failed=$(cat "$programs"/failed.* 2>/dev/null | wc -l)
  echo "{\"section\": \"tests\", \"model\": \"\", \"tests\": $all, \"not_run\": $((all - ran)), \"failed\": $failed}"
}

# These tests run small shapes of every kernel whose threads share memory. The other tests would take an hour.
sanitized='*CudaDecoder*gemma3_bf16:*CudaDecoder*gpt_neox_bf16:*CudaAttention.AtTheEdges*:*CudaAttention.ToAPast*:*CudaAttention.InSections*:*AttentionInWindows*:*BothDevices*NormOfHeads*:*BothDevices*RefusesLogits*:*BothDevices*SoftCappedLogits*:*BothDevices*Staging*:*BothDevices*CholeskyFactors*:*BothDevices*SecondMoment*-*Cudnn*'
# The libraries' kernels are skipped: they are not ours to fix, and they take most of the time.
sanitize() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here: skipped"; return 0; }
  local tool code status=0 found=
  export TEST_SECONDS=$((2 * TEST_SECONDS))
  for tool in racecheck memcheck synccheck; do
    list_tests "$sanitized" | run_tests 3 compute-sanitizer --tool $tool --error-exitcode 1 --kernel-name kernel_substring=kvs4cuda
    code=$?
    found="$found${found:+, }\"$tool\": $code"
    echo "{\"section\": \"sanitize\", \"model\": \"\", \"tools\": {$found}}"  # kept if the time ends here
    [ $code = 0 ] || status=1
  done
  return $status
}

# Prints the path of SmolLM2, or nothing. Several transfers may have brought its pieces into $SCRATCH.
real_model() {
  local model=${KVS_MODEL:-$bundle/model.gguf}
  if [ ! -f "$model" ]; then
    model=$SCRATCH/kvs-model.gguf
    cp "$bundle"/model.gguf.part-* "$SCRATCH" 2>/dev/null
    [ -f "$model" ] || cat "$SCRATCH"/model.gguf.part-* >"$model" 2>/dev/null
    if [ "$(stat -c %s "$model")" != "$(cat "$bundle/model.bytes" 2>/dev/null)" ]; then rm "$model"; return; fi
  fi
  echo "$model"
}

smoke() {
  local model=$SCRATCH/kvs-tiny
  rm -rf "$model"
  "$bin/make_model" tiny-llama "$model" f32 && "$bin/gpu_smoke" "$model" "$device"
}

agreement() {
  local model text=$bundle/sample.txt
  model=$(real_model)
  if [ -z "$model" ]; then
    echo "no SmolLM2 carried: random weights instead"
    model=$SCRATCH/kvs-tiny; text=-
    rm -rf "$model"; "$bin/make_model" tiny-llama "$model" f32 || return 1
  fi
  "$bin/gpu_agreement" "$model" "$text" "$([ "$text" = - ] && echo 128 || echo 512)" "$device"
}

programs() {
  local models=("$bundle"/parity/[!t]*.json) model  # all but tokens.json
  model=$(real_model)
  if [ -n "$model" ]; then models=("$model" "${models[@]}"); else echo "no SmolLM2 carried: tiny models alone"; fi
  python3 "$bundle/python/gpu_programs.py" "$bin" "${models[@]}" --text "$bundle/sample.txt" --device "$device" \
    --scratch "$SCRATCH/kvs-outputs"
}

speed() {
  local model=$SCRATCH/kvs-models/$1 status=0
  rm -rf "$SCRATCH/kvs-models"  # also removes the model of a step that was ended
  "$bin/make_model" "$1" "$model" bf16 || return 1
  "$bin/gpu_speed" "$model" "$device" bf16 "$TOKENS" "$SCRATCH" || status=1
  ! has_transformers || python "$bundle/python/transformers_gpu.py" "$model" --tokens "$TOKENS" --device "$device" || status=1
  rm -rf "$SCRATCH/kvs-models"
  return $status
}

has_transformers() {
  python -c 'import torch, transformers' 2>/dev/null || { echo "no PyTorch and Transformers here: nothing to compare with"; return 1; }
}

# Two layers of each geometry suffice: all layers have the same operations.
profile() {
  local name model status=0
  for name in ${PROFILES:-llama2-7b llama3-8b}; do
    model=$SCRATCH/kvs-profile/$name
    rm -rf "$SCRATCH/kvs-profile"
    "$bin/make_model" "$name" "$model" bf16 0 2 || return 1
    "$bin/gpu_speed" "$model" "$device" bf16 "$TOKENS" "$SCRATCH" profile || status=1
    ! has_transformers || python "$bundle/python/transformers_gpu.py" "$model" --tokens "$TOKENS" --device "$device" --profile || status=1
  done
  rm -rf "$SCRATCH/kvs-profile"
  return $status
}

export KVS_GOLDEN=$bundle TEST_SECONDS=${TEST_SECONDS:-45} bundle bin programs device found_path sanitized SCRATCH TOKENS
export -f agreement has_transformers list_tests one_test profile programs python real_model run_tests sanitize smoke speed tests tests_result
stopped=
for name in $steps; do
  [ -z "$stopped" ] || [ "$name" = report ] || continue
  case $name in
    smoke)  # 1: a piece is wrong, and the other steps will show more; else a hang, a crash, no device
      step smoke smoke || [ $? = 1 ] || { stopped=1; say "no other step is begun"; } ;;
    tests | sanitize | agreement | programs | profile) step "$name" "$name" ;;
    report) step report python "$bundle/python/gpu_report.py" "$OUT/gpu.json" "$results" ;;
    *) step "$name" speed "$name" ;;
  esac
done
[ -z "$failed" ] || { echo "gpu-test.sh: failed:$failed" >&2; exit 1; }
