#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs for 64-bit Arm on an x86-64 machine and runs the unit tests under qemu-aarch64.
# Fetches Debian's arm64 libraries into build/arm64-libraries; nothing is installed.
# Usage: arm64.sh [CTEST_ARGUMENT…]   default: the unit tests, without those of real models
# Needs the packages g++-aarch64-linux-gnu and qemu-user; status 77 without them.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $program >/dev/null || { echo "arm64.sh: skipped: no $program (Debian: g++-aarch64-linux-gnu, qemu-user)"; exit 77; }
done
libraries=build/arm64-libraries

fetch_libraries() {
  local apt=build/arm64-apt packages names=$libraries/usr/lib/aarch64-linux-gnu link target
  mkdir -p $apt/{state/lists/partial,cache/archives/partial} $libraries
  : >$apt/status
  packages=$(awk '/^\[/ { list = $1 == "[build]"; next } list && /^[a-z].*-dev$/' scripts/packages.txt)
  local options=(-o Dir::State="$PWD/$apt/state" -o Dir::State::status="$PWD/$apt/status" -o Dir::Cache="$PWD/$apt/cache"
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=)
  apt-get "${options[@]}" update -qq
  # shellcheck disable=SC2086
  apt-get "${options[@]}" install -y -qq --download-only --no-install-recommends \
    $packages libc6-dev libstdc++-12-dev libgmock-dev libgtest-dev libgomp1 >/dev/null
  for package in "$apt"/cache/archives/*.deb; do dpkg -x "$package" $libraries; done
  # What the packages' installation would link, and links that lead out of the folder.
  for link in libopenblas.so.0 libopenblas.so libblas.so.3 liblapack.so.3; do ln -sf openblas-openmp/$link $names/$link; done
  for link in openblas blas-openblas lapack-openblas; do
    ln -sf ../openblas-openmp/pkgconfig/$link.pc $names/pkgconfig/${link%-openblas}.pc
  done
  find $libraries -lname '/*' -printf '%p %l\n' | while read -r link target; do ln -sfr "$libraries$target" "$link"; done
  rm -rf $apt
  touch $libraries/complete
}

[ -e $libraries/complete ] || fetch_libraries
cmake --preset arm64 >/dev/null
cmake --build --preset arm64 -- -j "$(nproc)" >build/arm64/build.log 2>&1 || { tail -40 build/arm64/build.log >&2; exit 1; }
# Under qemu-user a test cannot start its own program anew, stop itself at a system call, or limit its memory.
needs_kernel=(ThreadTeam ExitReport CaptureCrash StopsATaskThatTakesTooMuchMemory AFailureWithoutTheMemoryThatIsAllowed
  ANullThatFindsNoMemory WithoutTheProgramNamesItsPackage WhereNothingMakesAPng svg_files)
[ $# -gt 0 ] || set -- -L unit -E "$(IFS='|'; echo "${needs_kernel[*]}")"
# With SmolLM2 the tests would take hours.
env -u KVS_MODEL ctest --test-dir build/arm64 --output-on-failure -j "$(nproc)" "$@"
