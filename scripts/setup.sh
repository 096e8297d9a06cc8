#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that kvspectrum is built with. Fetches cuDNN's front end if nvcc is installed. Does
# nothing if all are present.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

missing=()
while read -r package; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done < "$here/packages.txt"
if [ ${#missing[@]} -ne 0 ]; then
  echo "installing: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup.sh: error: needs root or sudo to install ${missing[*]}" >&2; exit 6; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if command -v nvcc >/dev/null && ! "$here/fetch_cudnn_frontend.sh" >/dev/null; then
  echo "setup.sh: warning: found no front end of cuDNN; the CUDA build will not use cuDNN's attention" >&2
fi
