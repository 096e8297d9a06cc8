#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/lint.sh exits with 0 on an unchanged tree, and with 1 and a line that names the fault on a fault of each kind.
# Usage: lint_test.sh FOLDER_OF_THE_PROGRAMS
# shellcheck disable=SC2016  # faults are planted as they are
set -euo pipefail
cd "$(dirname "$0")/../.."
KVS_PROGRAMS=$(realpath "$1")
export KVS_PROGRAMS
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do if [ -f "$file" ]; then printf '%s\0' "$file"; fi; done |
  tar --create --null --files-from - | tar --extract --directory "$tree"
cd "$tree"
git init --quiet
git add --all
git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit --quiet --message tree
bad=0

# plant CHECK FILE FAULT TEXT: with TEXT at the end of FILE, CHECK fails and reports FAULT, a regular expression, there
plant() {
  local check=$1 file=$2 fault=$3 status=0
  printf '%b\n' "$4" >>"$file"
  scripts/lint.sh --changed HEAD "$check" >found.txt 2>&1 || status=$?
  if [ $status -ne 1 ] || ! grep -F "$file" found.txt | grep -qE -- "$fault" ||
    ! grep -q "^lint.sh: error: found faults by: $check" found.txt; then
    echo "$check: status $status; expected 1 and '$fault' of $file with '$4' at its end; found:"
    cat found.txt
    bad=1
  fi
  git checkout --quiet -- "$file"
}

scripts/lint.sh --changed HEAD >found.txt 2>&1 || { cat found.txt; bad=1; }
plant format src/core/error.h clang-format 'int  two_spaces;'
plant format src/kernels/cuda/norms.cu clang-format 'int  two_spaces;'
moved='std::size_t moved(std::string a) {\n  const std::string b = std::move(a);\n  return a.size() + b.size();\n}\n'
plant tidy src/core/error.cpp bugprone-use-after-move "#include <utility>\nnamespace kvs {\n$moved}  // namespace kvs"
counted='inline auto count(const int* p) { return sizeof(p) / sizeof(int); }'
plant tidy src/core/nearest.h bugprone-sizeof-expression "$counted"
plant shell scripts/demo.sh SC2086 'cd $1'
plant shell .ci/run SC2086 'cd $1'
plant docs README.md 'no such file' '[page](docs/none.md)'
plant docs docs/gpu.md 'no such heading' '[part](rope.md#none)'
plant docs docs/rope.md 'no such file' 'See src/model/none.cpp.'
plant docs figures/pareto.svg 'another figure' '<!-- -->'
plant docs CONTRIBUTING.md '[0-9]+ columns wide' "$(printf 'word %.0s' {1..25})"
plant commands README.md frobnicate '\n    kvspectrum capture --model x --frobnicate'
continued='```sh\ntype=f64\nkvcalibrate eval --model x \\\n  --dtype $type\n```'
plant commands README.md "'f64', expected one of f32, bf16" "$continued"
plant commands docs/spectra.md 'expected one of info' 'Try `kvspectrum plot x`.'
plant commands docs/spectra.md '--frobnicate: no command' 'Try `--frobnicate`.'
plant commands tests/README.md 'no preset none' 'Run `ctest --preset none -L unit`.'
plant commands tests/README.md 'no target absent' 'Run `cmake --build --preset cpu --target absent`.'
plant spelling docs/rope.md the 'te''h'
plant python tests/parity/make_models.py 'Undefined name' 'print(undefined)'
plant python tests/parity/make_models.py 'invalid-syntax' 'def ('
plant python export/python/kvspectrum/rotation.py B006 'def gathered(found=[]):\n    return found'
plant python export/python/kvspectrum/rotation.py 'has no attribute' 'FACTOR = NoRotation.factors'
plant python export/python/kvspectrum/records.py 'missing a type annotation' 'def untyped(value):\n    return value'
sed -i 's/^# SPDX-License-Identifier: Apache-2.0$/#/' scripts/demo.sh
plant spdx scripts/demo.sh 'found no line' '#'
exit $bad
