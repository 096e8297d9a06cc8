#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lints the tree. Exits with 0 if nothing is found. Usage: scripts/lint.sh [--changed [BASE]] [CHECK...]
#   --changed  only files that differ from BASE (default HEAD), including new files
#   CHECK      some of: format tidy shell docs commands spelling python spdx (default: all)
# The check `commands` uses the two programs in $KVS_PROGRAMS, or else builds the preset cpu. The check `docs` also
# builds the site where the programs are and scripts/site.sh has installed its tools. The check `python` needs the
# network once, for the tools of scripts/lint/tools.txt (a venv in ~/.cache/kvspectrum/lint).
set -euo pipefail
cd "$(dirname "$0")/.."

checks=()
base=
while [ $# -gt 0 ]; do
  case $1 in
    --changed)
      base=HEAD
      if [ $# -gt 1 ] && git rev-parse --verify --quiet "$2^{commit}" >/dev/null; then base=$2; shift; fi
      ;;
    format | tidy | shell | docs | commands | spelling | python | spdx) checks+=("$1") ;;
    *)
      echo "lint.sh: error: found '$1', expected --changed [BASE] or checks of its head" >&2
      exit 2
      ;;
  esac
  shift
done
[ ${#checks[@]} -ne 0 ] || checks=(format tidy shell docs commands spelling python spdx)

for tool in git cmake ninja clang++ clang-format-14 clang-tidy-14 shellcheck codespell python3; do
  command -v $tool >/dev/null || { echo "lint.sh: error: $tool is missing; scripts/setup.sh development installs it" >&2; exit 6; }
done

# files PATTERN...: prints the files to check, each ended by NUL
files() {
  if [ -n "$base" ]; then
    git diff --name-only -z --diff-filter=d "$base" -- "$@"
    git ls-files -z --others --exclude-standard -- "$@"
  else
    git ls-files -z --cached --others --exclude-standard -- "$@"
  fi | while IFS= read -r -d '' file; do if [ -f "$file" ]; then printf '%s\0' "$file"; fi; done
}

check_format() { files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs -0r clang-format-14 --dry-run -Werror; }

# Uses its own build folder, without the GCC precompiled headers that clang cannot read.
check_tidy() {
  local sources=()
  if [ -n "$base" ]; then
    mapfile -d '' -t sources < <(files '*.cpp' '*.h' '*.cu' '*.cuh' ':!third_party')
    [ ${#sources[@]} -ne 0 ] || return 0
  fi
  cmake -S . -B build/lint -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_UNITY_BUILD=OFF \
    >build/lint.log 2>&1 || { cat build/lint.log; return 1; }
  ninja -C build/lint -t targets all | sed -n 's,^\([^/].*/generated/.*\.h\): .*,\1,p' |
    xargs -r ninja -C build/lint -t commands -s | sh
  scripts/lint/tidy.py build/lint "${sources[@]}"
}

check_shell() {
  # shellcheck disable=SC2016  # awk's own variables
  files | xargs -0r awk 'FNR == 1 && /^#!.*[\/ ](ba)?sh$/ { printf "%s%c", FILENAME, 0 } { nextfile }' |
    xargs -0r shellcheck --format=gcc
}

check_docs() {
  scripts/lint/docs.py && scripts/lint/pareto.py --check || return 1
  [ -f build/site/tools/ready ] || { echo "docs: without the site, whose tools scripts/site.sh installs"; return 0; }
  [ -x "${KVS_PROGRAMS:-build/cpu/bin}/kvcalibrate" ] || { echo "docs: without the site and its programs"; return 0; }
  scripts/site.sh
}

check_commands() {
  local pages=()
  if [ -n "$base" ] && [ -z "$(files src/cli scripts tests '*CMake*' ':!*.md' | tr '\0' ' ')" ]; then
    mapfile -d '' -t pages < <(files '*.md')
    [ ${#pages[@]} -ne 0 ] || return 0
  fi
  if [ -z "${KVS_PROGRAMS:-}" ]; then
    mkdir -p build/cpu
    { cmake --preset cpu && cmake --build --preset cpu --target kvspectrum kvcalibrate; } >build/lint.log 2>&1 ||
      { tail -40 build/lint.log; return 1; }
  fi
  scripts/lint/commands.py "${KVS_PROGRAMS:-build/cpu/bin}" "${pages[@]}"
}

check_spelling() { files | xargs -0r codespell --quiet-level 3; }

check_python() {
  local tools=${XDG_CACHE_HOME:-$HOME/.cache}/kvspectrum/lint status=0
  if ! cmp -s scripts/lint/tools.txt "$tools/ready"; then
    rm -rf "$tools"
    python3 -m venv "$tools" || return
    "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r scripts/lint/tools.txt || return
    cp scripts/lint/tools.txt "$tools/ready"
  fi
  # ruff's own choice of rules for the package; elsewhere undefined and unused names, and syntax
  files '*.py' ':!export/python' | xargs -0r "$tools/bin/ruff" check --quiet --output-format concise --select E9,F ||
    status=1
  files 'export/python/*.py' | xargs -0r "$tools/bin/ruff" check --quiet --output-format concise || status=1
  if [ -z "$base" ] || [ -n "$(files 'export/python/*.py' 'export/python/*.pyi' pyproject.toml | tr '\0' ' ')" ]; then
    "$tools/bin/mypy" --no-error-summary --cache-dir "$tools/mypy" || status=1
  fi
  return $status
}

check_spdx() { scripts/lint/spdx.py; }

mkdir -p build
failed=()
for check in "${checks[@]}"; do
  started=$EPOCHREALTIME
  "check_$check" || failed+=("$check")
  printf '== %-9s %6.1f s\n' "$check" "$(awk "BEGIN { print $EPOCHREALTIME - $started }")"
done
if [ ${#failed[@]} -ne 0 ]; then
  echo "lint.sh: error: found faults by: ${failed[*]}" >&2
  exit 1
fi
