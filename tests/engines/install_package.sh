#!/usr/bin/env bash
# Installs export/python into the venvs that setup.sh made, from a copy (a build leaves files next to its sources)
# without links (the schema is one). Usage: install_package.sh FOLDER. Exits with status 77 (skipped) if pip cannot get
# its build backend.
set -euo pipefail
folder=$1
if [[ ! -e $folder/ready ]]; then
  echo "skipped: no engines in $folder (setup.sh)"
  exit 77
fi
rm -rf "$folder/package"
cp -rL "$(dirname "$0")/../../export/python" "$folder/package"
for venv in venv oldest; do
  if ! "$folder/$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$folder/package"
  then
    echo "skipped: setuptools cannot be had (is there a network?)"
    exit 77
  fi
done
