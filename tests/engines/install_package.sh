#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the package of export/python, without the programs, into the venvs that setup.sh made. Links (the schema is
# one) become files. Usage: install_package.sh FOLDER. Exits with status 77 (skipped) if there are no venvs.
set -euo pipefail
folder=$1
if [[ ! -e $folder/ready ]]; then
  echo "skipped: no engines in $folder (setup.sh)"
  exit 77
fi
for venv in venv oldest; do
  packages=$("$folder/$venv/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
  rm -rf "$packages"/kvspectrum "$packages"/kvspectrum-*.dist-info
  cp -rL "$(dirname "$0")/../../export/python/kvspectrum" "$packages/kvspectrum"
done
