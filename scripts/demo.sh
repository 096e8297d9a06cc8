#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows the product's answer on the sample text: installs, builds, fetches SmolLM2-135M, measures its cache, compares
# caches with a transform coder calibrated here, and recommends one for llama.cpp. Needs only a Debian 12 base.
# Usage: demo.sh [FOLDER]   the folder of the results (default: out/demo)
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
  cmake --build --preset cpu --target kvspectrum kvcalibrate -- -j "$(nproc)" >build/cpu/build.log 2>&1 ||
    { tail -40 build/cpu/build.log >&2; exit 1; }
}
fetch() { model=$(scripts/fetch_model.sh); }

timed "installation" scripts/setup.sh build
timed "build" build
timed "model" fetch
out=${1:-out/demo}
mkdir -p "$out"
bin=build/cpu/bin
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# Each command prints a line or a small table on stdout. The last one's is kept in $said.
shown() { echo "+ $*"; "$@" | tee "$said"; }
run() { timed "$(basename "$1") $2" shown "$@"; }

dtype=f32
info=$($bin/kvspectrum info "$model" --json)
case $info in *'"bf16_faster": true'*) dtype=bf16 ;; esac
of_model=(--model "$model" --text data/opticks_sample.txt)

run $bin/kvspectrum capture "${of_model[@]}" --window 512 --documents 4 --states q_pre,k_pre,v \
  --out "$out/states.h5" --force
run $bin/kvspectrum verify "$out/states.h5"
run $bin/kvspectrum spectrum --capture "$out/states.h5" --out-dir "$out/spectrum" --force
# The calibration reads the first quarter of the text, the scores are of its end. Every configuration is scored in full.
run $bin/kvcalibrate compare "${of_model[@]}" --window 512 --windows -4: --budgets 25% \
  --methods h2o,streaming,transform --types-with-methods q8_0 \
  --calibration-text data/opticks_sample.txt --calibration-window 128 --calibration-windows 0:24 \
  --no-early-stop --timed-tokens 0 --dtype $dtype --best-dir "$out/best" --out "$out/compare.json" --force
best=$(sed -n 's/^ *25 %: //p' "$said")
run $bin/kvcalibrate recommend "${of_model[@]}" --engine llama.cpp --context 512 --documents 2 --dtype $dtype \
  --out-dir "$out/safe" --force
safe=$(sed -n 2p "$said")
run $bin/kvspectrum report "$out" --out "$out/report.html" --force

echo
echo "figures:"; find "$out" -name '*.svg' | sort | sed 's/^/  /'
echo "configs:"; find "$out/best" "$out/safe" -name '*.json' | sort | sed 's/^/  /'
echo "times:"; printf '  %s\n' "${times[@]}"
echo "done in $SECONDS s"
echo
echo "best cache of a quarter of the bytes: $best"
echo "in llama.cpp: $safe"
echo "page: $out/report.html"
