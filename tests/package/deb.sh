#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package, unpacks it, and runs its programs from there. Usage: deb.sh BUILD_FOLDER
set -euo pipefail
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder" >"$folder/log" || { cat "$folder/log" >&2; exit 1; }
packages=("$folder"/kvspectrum_*.deb)
dpkg-deb --extract "${packages[0]}" "$folder/root"
dpkg-deb --field "${packages[0]}" Depends | grep -q liblapacke || { echo "no dependency on liblapacke" >&2; exit 1; }
usr=$folder/root/usr
for program in kvspectrum kvcalibrate; do
  "$usr/bin/$program" --version
  for file in "bash-completion/completions/$program" "zsh/site-functions/_$program" \
    "fish/vendor_completions.d/$program.fish" "man/man1/$program.1"; do
    [ -s "$usr/share/$file" ] || { echo "found no share/$file in the package" >&2; exit 1; }
  done
  bash -n "$usr/share/bash-completion/completions/$program"
done
"$usr/bin/kvspectrum" doctor
[ -s "$usr/share/kvspectrum/kvspectrum-config.schema.json" ] || { echo "found no schema in the package" >&2; exit 1; }
