#!/usr/bin/env bash
# From nothing to calibrated configs: installs, builds, fetches SmolLM2-135M and runs the whole chain on the sample text.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
scripts/setup.sh
mkdir -p build/cpu
echo "== building"
cmake --preset cpu -DKVS_TESTS=OFF >/dev/null
cmake --build --preset cpu -- -j "$(nproc)" >build/cpu/build.log 2>&1 || { tail -40 build/cpu/build.log >&2; exit 1; }
model=$(scripts/fetch_model.sh)
text=data/opticks_sample.txt
out=${1:-out/demo}
mkdir -p "$out"
bin=build/cpu/bin
findings=$out/findings.txt
: >"$findings"
# Each command's result is a line or a small table on stdout; they are shown together at the end.
run() { echo "+ $*"; "$@" | tee -a "$findings"; }

run $bin/kvspectrum capture --model "$model" --text $text --window 512 --documents 8 --states q_pre,k_pre,v \
  --out "$out/states.h5" --force
run $bin/kvspectrum verify "$out/states.h5"
run $bin/kvspectrum spectrum --capture "$out/states.h5" --out-dir "$out/spectrum" --force
run $bin/kvcalibrate faedkv --model "$model" --text $text --window 512 --documents 3 --dtype bf16 \
  --out "$out/faedkv.json" --force
run $bin/kvcalibrate elitekv --model "$model" --text $text --window 512 --documents 8 --elite 16 --rank 192 \
  --out "$out/elitekv.json" --force
run $bin/kvcalibrate validate "$out/faedkv.json"
run $bin/kvcalibrate validate "$out/elitekv.json"
run $bin/kvcalibrate eval --model "$model" --text $text --window 512 --windows -4: --method full --out "$out/full.eval.json" --force
run $bin/kvcalibrate eval --model "$model" --text $text --window 512 --windows -4: --config "$out/elitekv.json" \
  --out "$out/elitekv.eval.json" --force

echo
echo "figures:"; find "$out" -name '*.svg' | sort | sed 's/^/  /'
echo "configs:"; find "$out" -maxdepth 1 -name '*kv.json' | sort | sed 's/^/  /'
echo "findings:"; sed 's/^/  /' "$findings"
echo "done in $((SECONDS - started)) s"
