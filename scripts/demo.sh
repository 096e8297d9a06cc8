#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the whole chain on the sample text: installs, builds, fetches SmolLM2-135M, analyses, calibrates and evaluates.
set -euo pipefail
cd "$(dirname "$0")/.."
times=()
# timed LABEL COMMAND…: runs COMMAND and records its duration.
timed() {
  local label=$1 began=$SECONDS
  shift
  "$@"
  times+=("$(printf '%5d s  %s' $((SECONDS - began)) "$label")")
}
build() {
  mkdir -p build/cpu
  echo "== building"
  cmake --preset cpu -DKVS_TESTS=OFF >/dev/null
  cmake --build --preset cpu -- -j "$(nproc)" >build/cpu/build.log 2>&1 || { tail -40 build/cpu/build.log >&2; exit 1; }
}
fetch() { model=$(scripts/fetch_model.sh); }

timed "installation" scripts/setup.sh
timed "build" build
timed "model" fetch
text=data/opticks_sample.txt
out=${1:-out/demo}
mkdir -p "$out"
bin=build/cpu/bin
findings=$out/findings.txt
: >"$findings"
# Each command prints a line or a small table on stdout. The script shows them together at the end.
shown() { echo "+ $*"; "$@" | tee -a "$findings"; }
run() { timed "$(basename "$1") $2" shown "$@"; }

dtype=f32
info=$($bin/kvspectrum info "$model" --json)
case $info in *'"bf16_faster": true'*) dtype=bf16 ;; esac

run $bin/kvspectrum capture --model "$model" --text $text --window 512 --documents 8 --states q_pre,k_pre,v \
  --out "$out/states.h5" --force
run $bin/kvspectrum verify "$out/states.h5"
run $bin/kvspectrum spectrum --capture "$out/states.h5" --out-dir "$out/spectrum" --force
# Two documents need 240 passes each, one per chunk. 320 more passes go to the chunks nearest to the threshold.
run $bin/kvcalibrate faedkv --model "$model" --text $text --window 512 --prefix 448 --documents 5 --chunks 8 \
  --passes 800 --dtype $dtype --out "$out/faedkv.json" --force
run $bin/kvcalibrate elitekv --model "$model" --text $text --window 512 --documents 8 --elite 16 --rank 192 \
  --out "$out/elitekv.json" --force
run $bin/kvcalibrate validate "$out/faedkv.json"
run $bin/kvcalibrate validate "$out/elitekv.json"
run $bin/kvcalibrate eval --model "$model" --text $text --window 512 --windows -4: --method full --out "$out/full.eval.json" --force
run $bin/kvcalibrate eval --model "$model" --text $text --window 512 --windows -4: --config "$out/elitekv.json" \
  --out "$out/elitekv.eval.json" --force
run $bin/kvcalibrate compare --model "$model" --text $text --window 512 --windows -4: --budgets 50%,25% --time 2m \
  --task needle --dtype $dtype --out "$out/compare.json" --force
run $bin/kvspectrum report "$out" --out "$out/report.html" --force

echo
echo "figures:"; find "$out" -name '*.svg' | sort | sed 's/^/  /'
echo "configs:"; find "$out" -maxdepth 1 -name '*kv.json' | sort | sed 's/^/  /'
echo "findings:"; sed 's/^/  /' "$findings"
echo "times:"; printf '  %s\n' "${times[@]}"
echo "report: $out/report.html"
echo "done in $SECONDS s"
