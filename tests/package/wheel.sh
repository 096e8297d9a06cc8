#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel, installs it into empty venvs without the network, and runs the programs and the Python of
# docs/python.md in a folder without the sources. Usage: wheel.sh SOURCE_FOLDER. Exits with status 77 (skipped) if the
# model or packages are not available.
set -euo pipefail
source=$1
if [[ -z ${KVS_MODEL:-} ]]; then
  echo "skipped: KVS_MODEL is not set (the path that scripts/fetch_model.sh prints)"
  exit 77
fi
"$source/scripts/wheel.sh" -D KVS_WERROR=ON
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wheel=("$source"/build/wheel/dist/kvspectrum-*-py3-none-manylinux_2_36_x86_64.whl)
python3 "$source/tests/package/wheel_test.py" "${wheel[0]}" "$source"

cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-index "${wheel[0]}"
bare() { env -i HOME=/nonexistent LANG=C.UTF-8 "$@"; }
bare venv/bin/kvspectrum --help >help
bare venv/bin/kvcalibrate --help >>help
status=0
bare venv/bin/kvcalibrate eval --model none.gguf --text none --method full 2>error || status=$?
if [ $status -ne 3 ] || ! grep -q '^kvcalibrate: error: none' error; then
  echo "found status $status and '$(cat error)', expected status 3 and the program's line" >&2
  exit 1
fi
bare venv/bin/python -c 'import sys, kvspectrum
kvspectrum.info
assert sys.argv[1].split("-")[1] == kvspectrum.__version__
assert not {"torch", "numpy", "h5py", "transformers"} & set(sys.modules)
try:
    kvspectrum.Capture.record("none.gguf", "none", "none.h5")
except ImportError as error:  # before the program runs
    assert "kvspectrum[capture]" in str(error)
else:
    raise AssertionError("found a Capture without h5py")
try:
    kvspectrum.CalibratedCache
except ImportError as error:
    assert "kvspectrum[transformers]" in str(error)
else:
    raise AssertionError("found a CalibratedCache without torch")' "$(basename "${wheel[0]}")"

if ! venv/bin/pip install --quiet --disable-pip-version-check --require-hashes \
  -r "$source/tests/package/requirements.txt"; then
  echo "skipped: the packages of tests/package/requirements.txt cannot be installed (is there a network?)"
  exit 77
fi
mkdir page
cd page
ln -s "$KVS_MODEL" model.gguf
cp "$source/data/opticks_sample.txt" book.txt
cp "$source/tests/package/page.py" "$source/docs/python.md" ..
bare ../venv/bin/python ../page.py ../python.md
# A method that decomposes matrices opens OpenBLAS and LAPACKE.
bare LD_DEBUG=libs ../venv/bin/kvcalibrate transform --model model.gguf --text book.txt --window 128 --documents 1 \
  --budget 25% --out transform.json --quiet 2>opened >printed
for library in libopenblas.so.0 liblapacke.so.3 libtmglib.so.3; do
  grep -q "calling init: $folder/venv/lib/.*/kvspectrum/bin/../lib/$library" opened ||
    { echo "found no $library of the wheel among the opened libraries" >&2; exit 1; }
done
