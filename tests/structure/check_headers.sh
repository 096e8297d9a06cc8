#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone. Usage: check_headers.sh CXX [flags ...]
# The presets without unity batches (debug, arm64) compile a header alone if a source file includes it first. Only the
# others are compiled here.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2016  # awk's own fields
first=$(find src analyzers calibrate export -name '*.cpp' -print0 |
  xargs -0 awk '/^#include/ { if ($2 ~ /^"/) print $2; nextfile }' | tr -d '"' | sort -u)
bad=0
while read -r header; do
  if grep -qxF -e "${header#src/}" <<<"$first"; then continue; fi
  printf '#include "%s"\n' "$header" | "$@" -std=c++20 -fsyntax-only -I src -I . -x c++ - ||
    { echo "$header does not compile alone"; bad=1; }
done < <(find src analyzers calibrate export -name '*.h' -not -path '*/cuda/*' | sort)
exit $bad
