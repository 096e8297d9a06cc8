#!/usr/bin/env bash
# Include lines may only point where docs/architecture.md's table allows. One row: folder, then the folders it may include.
set -euo pipefail
cd "$(dirname "$0")/../.."

allowed() {
  case $1 in
    core) echo core ;;
    io) echo core io ;;
    ranks) echo core io ranks ;;
    kernels) echo core kernels ;;
    policy) echo core io kernels policy ;;
    model) echo core io kernels policy model ;;
    analyzers) echo core kernels analyzers ;;
    calibrate) echo core kernels policy analyzers calibrate ;;
    capture) echo core io kernels policy model analyzers capture ;;
    eval) echo core io ranks kernels policy model analyzers calibrate export eval ;;
    tasks) echo core io kernels policy model calibrate export eval tasks ;;
    compare) echo core io ranks kernels policy model calibrate export eval compare ;;
    export) echo core io kernels policy model analyzers calibrate export embedded ;;
    cli) echo core io ranks kernels policy model analyzers calibrate capture eval tasks compare export cli ;;
  esac
}

folders="core io ranks kernels policy model capture eval tasks compare cli analyzers calibrate export embedded"
bad=0
for folder in core io ranks kernels policy model capture eval tasks compare cli analyzers calibrate export; do
  root=$folder
  [ -d "src/$folder" ] && root=src/$folder
  while IFS=: read -r file line text; do
    target=$(sed -E 's/^ *#include "([^"\/]+)\/.*/\1/' <<<"$text")
    grep -qw "$target" <<<"$folders" || continue
    if ! grep -qw "$target" <<<"$(allowed $folder)"; then
      echo "$file:$line: $folder may not include $target"
      bad=1
    fi
  done < <(grep -rnE '^ *#include "[^"/]+/' "$root" --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' || true)
done

# HDF5 appears only in io/hdf5, CUDA only in kernels/cuda, MPI only in ranks/mpi, gnuplot's process only in export.
for rule in 'hdf5\.h:src/io/hdf5/' 'cuda_runtime|cublas|cufft|cusolver:src/kernels/cuda/' 'dnnl\.hpp:src/kernels/cpu/' 'mpi\.h:src/ranks/mpi/'; do
  header=${rule%%:*} home=${rule##*:}
  if grep -rnE "#include <($header)" src analyzers calibrate export | grep -v "^$home"; then
    echo "the lines above include $header outside $home"
    bad=1
  fi
done
exit $bad
