#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Include lines may only point where docs/architecture.md's table allows. One row: folder, then the folders it may include.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Lowest first: a folder may include those of its row.
allowed() {
  local model="core io turns results tokenizer kernels caches model" eval="ranks texts states draw eval embedded"
  case $1 in
    core) echo core ;;
    io) echo core io ;;
    options) echo core options ;;
    turns) echo core turns ;;
    ranks) echo core io turns ranks ;;
    kernels) echo core kernels ;;
    draw) echo core io draw ;;
    results) echo core io draw results ;;
    tokenizer) echo core io tokenizer ;;
    texts) echo core io tokenizer texts ;;
    caches) echo core io kernels caches ;;
    model) echo "$model" ;;
    states) echo "$model" states ;;
    eval) echo "$model" "$eval" ;;
    analyzers) echo "$model" "$eval" analyzers ;;
    tasks) echo "$model" "$eval" tasks ;;
    calibrate) echo "$model" "$eval" options analyzers tasks calibrate ;;
    export/engines) echo "$model" "$eval" calibrate engines ;;
    run) echo "$model" "$eval" options tasks calibrate engines run ;;
    calibrate/compare) echo "$model" "$eval" options analyzers tasks calibrate engines run ;;
    export) echo "$model" "$eval" calibrate engines export embedded ;;
    cli) echo "$model" "$eval" options analyzers tasks calibrate engines run export cli ;;
  esac
}

folders="core io options turns ranks kernels draw results tokenizer texts caches model states eval analyzers tasks calibrate run export cli"
bad=0
for folder in $folders calibrate/compare export/engines; do
  root=$folder
  [ -d "src/$folder" ] && root=src/$folder
  while IFS=: read -r file line text; do
    target=$(sed -E 's/^ *#include "(export\/)?(engines|[^"\/]+)\/.*/\2/' <<<"$text")
    grep -qw "$target" <<<"$folders engines embedded" || continue
    if ! grep -qw "$target" <<<"$(allowed "$folder")"; then
      echo "$file:$line: $folder may not include $target"
      bad=1
    fi
  done < <(grep -rnE '^ *#include "[^"/]+/' "$root" --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' | { [ "$folder" = calibrate ] && grep -v '^calibrate/compare/' || cat; } || true)
done

# A method's folder includes no other method's folder, and the shared folders include no method's.
methods=$(grep -l 'constinit const Method k' calibrate/*/*.cpp | cut -d/ -f2 | sort -u)
for folder in $methods common config budget compare; do
  for method in $methods; do
    [ "$folder" = "$method" ] && continue
    if grep -rnE "^ *#include \"calibrate/$method/" "calibrate/$folder"; then
      echo "the lines above include calibrate/$method, a method, in calibrate/$folder"
      bad=1
    fi
  done
done

# calibrate/compare is above all of calibrate, and above src/run.
if grep -rnE '^ *#include "calibrate/compare/' calibrate src export | grep -vE '^(calibrate/compare|src/cli)/'; then
  echo "the lines above include calibrate/compare below it"
  bad=1
fi

# HDF5 appears only in io/hdf5, CUDA only in kernels/cuda, oneDNN only in kernels/cpu, MPI only in ranks/mpi.
for rule in 'hdf5\.h:src/io/hdf5/' 'cuda_runtime|cublas|cufft|cusolver:src/kernels/cuda/' 'dnnl\.hpp:src/kernels/cpu/' 'mpi\.h:src/ranks/mpi/'; do
  header=${rule%%:*} home=${rule##*:}
  if grep -rnE "#include <($header)" src analyzers calibrate export | grep -v "^$home"; then
    echo "the lines above include $header outside $home"
    bad=1
  fi
done
exit $bad
