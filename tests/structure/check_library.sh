#!/usr/bin/env bash
# The library that engines link needs no library that runs a model, reads a capture or transforms. Usage:
# check_library.sh FILE
set -euo pipefail
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if other=$(grep -vE '^(libcrypto|libstdc\+\+|libm|libgcc_s|libc|libasan|libubsan|ld-linux-x86-64)\.so' <<<"$needed"); then
  echo "$1 needs $(tr '\n' ' ' <<<"$other"), expected the C++ library and libcrypto alone"
  exit 1
fi
