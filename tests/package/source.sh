#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tarball of the sources: it has every file of the repository and no build output, and it configures.
# Usage: source.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cpack --config "$build/CPackSourceConfig.cmake" -B "$folder/made" >"$folder/log" || { cat "$folder/log" >&2; exit 1; }
mkdir "$folder/tree"
tar -xzf "$folder"/made/kvspectrum-*.tar.gz --strip-components=1 -C "$folder/tree"
cd "$folder/tree"
if git -C "$source" rev-parse --git-dir >/dev/null 2>&1; then  # an unpacked tarball has no list to compare with
  find . -type f -o -type l | sed 's,^\./,,' | sort >"$folder/packed"
  git -C "$source" ls-files --cached --others --exclude-standard | sort >"$folder/tracked"
  diff "$folder/tracked" "$folder/packed" || { echo "the lines above: < missing, > no source" >&2; exit 1; }
fi
cmake --preset cpu -DKVS_TESTS=OFF >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
