#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library that engines link needs no library that runs a model, reads a capture or transforms. Usage:
# check_library.sh FILE [LIBRARY]
#   LIBRARY   another one that it may need
set -euo pipefail
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if other=$(grep -vE "^(${2:-libc}|libcrypto|libstdc\+\+|libm|libgcc_s|libc|libasan|libubsan|ld-linux-x86-64)\.so" <<<"$needed"); then
  echo "$1 needs $(tr '\n' ' ' <<<"$other"), expected the C++ library, libcrypto${2:+ and $2} alone"
  exit 1
fi
