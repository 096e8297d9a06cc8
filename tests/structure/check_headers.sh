#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone. Usage: check_headers.sh CXX [flags ...]
# The build has compiled a header alone if its own source file includes it first; only the others are compiled here.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0
while read -r header; do
  source=${header%.h}.cpp
  if [ -f "$source" ] && [ "$(grep -m1 '^#include' "$source")" = "#include \"${header#src/}\"" ]; then continue; fi
  printf '#include "%s"\n' "$header" | "$@" -std=c++20 -fsyntax-only -I src -I . -x c++ - ||
    { echo "$header does not compile alone"; bad=1; }
done < <(find src analyzers calibrate export -name '*.h' -not -path '*/cuda/*' | sort)
exit $bad
