#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Code for an instruction set that not every processor has must not be linked into other code: objects of
# src/kernels/cpu/simd share no symbol with any other object. Usage: check_instruction_sets.sh ISA OBJECT ...
set -euo pipefail
isa=$1
shift
[ $# -gt 0 ] || { echo "found no objects of $isa"; exit 1; }
bad=0
for object in "$@"; do
  # The linker keeps any one copy of a weak symbol (W, V, u); every other symbol must lie in the namespace of the set.
  while read -r type symbol; do
    if [[ $type == [WVu] ]] || [[ $symbol != "kvs::cpu::$isa::"* ]]; then
      echo "$object: found $type $symbol, expected only symbols of kvs::cpu::$isa"
      bad=1
    fi
  done < <(nm -C --defined-only --extern-only "$object" | cut -d' ' -f2-)
done
# The objects contain the instruction set of their name.
has_zmm() { objdump -d --no-show-raw-insn "$@" | grep zmm >/dev/null; }
if [ "$isa" = avx2 ] && has_zmm "$@"; then
  echo "objects of $isa hold AVX-512 instructions"
  bad=1
elif [ "$isa" != avx2 ] && ! has_zmm "$@"; then
  echo "objects of $isa hold no AVX-512 instruction"
  bad=1
fi
exit $bad
