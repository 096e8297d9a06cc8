#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the venv FOLDER/NAME with the packages of REQUIREMENTS, once. Installs these alone (scripts/pin_packages.sh lists
# what they need). Packages of FOLDER/venv are found after its own, so that torch is installed once.
# Usage: venv.sh FOLDER NAME REQUIREMENTS. Exits with status 77 (skipped) if packages are not available.
set -euo pipefail
base=$1/venv venv=$1/$2 requirements=$3
cmp -s "$requirements" "$venv/ready" && exit 0
rm -rf "$venv"
packages() { "$1/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))"; }
"$base/bin/python" -m venv "$venv"
echo "import site; site.addsitedir('$(packages "$base")')" >"$(packages "$venv")/zz_engines.pth"
if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$requirements"; then
  echo "skipped: the packages of $requirements cannot be installed (is there a network?)"
  exit 77
fi
cp "$requirements" "$venv/ready"
