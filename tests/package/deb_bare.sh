#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian package with apt in a bare Debian 12, runs its programs there, and removes it: no file stays.
# Usage: deb_bare.sh BUILD_FOLDER SOURCE_FOLDER. Exits with status 77 (skipped) without root, debootstrap, mounts or
# Debian's mirror. KVS_BARE_DEBIAN names a folder that `debootstrap --variant=minbase bookworm` made, which is copied.
set -euo pipefail
build=$1
source=$2
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "needs root, which installs packages in a folder"
unshare --mount true 2>/dev/null || skip "cannot make mounts of its own"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
if [ -n "${KVS_BARE_DEBIAN:-}" ]; then
  cp -a "$KVS_BARE_DEBIAN" "$root"
else
  command -v debootstrap >/dev/null || skip "found no debootstrap (Debian: apt-get install debootstrap)"
  debootstrap --variant=minbase bookworm "$root" >"$folder/log" 2>&1 ||
    skip "debootstrap made no Debian 12 (is there a network?): $(tail -1 "$folder/log")"
fi

# inside COMMAND…: runs it in the bare Debian, with mounts that end with it.
inside() {
  # shellcheck disable=SC2016  # the inner shell's own arguments
  unshare --mount bash -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"' - "$root" \
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
# files_of_root: prints every file, without what apt and dpkg keep of their own runs.
files_of_root() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./var/lib/apt -o \
    -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path ./package \) -prune -o -print | sort)
}

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder/made" >"$folder/log" || { cat "$folder/log" >&2; exit 1; }
mkdir "$root/package"
cp "$folder"/made/kvspectrum_*.deb "$root/package/kvspectrum.deb"
cp -r "$source/tests/golden/checkpoints/gptq_w4" "$root/package/tiny"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
inside apt-get update -qq || skip "apt-get finds no mirror"
# The packages that it depends on stay, so that the files before and after are those of the same packages.
# shellcheck disable=SC2016
inside bash -c 'apt-get install -y -qq --no-install-recommends \
  $(dpkg-deb --field /package/kvspectrum.deb Depends | tr , "\n" | sed "s/[(|].*//")' >"$folder/log" 2>&1 ||
  { cat "$folder/log" >&2; exit 1; }
files_of_root >"$folder/before"
inside apt-get install -y -qq --no-install-recommends /package/kvspectrum.deb >"$folder/log" 2>&1 ||
  { cat "$folder/log" >&2; exit 1; }

for program in kvspectrum kvcalibrate; do
  inside $program --version
  for file in "bash-completion/completions/$program" "zsh/site-functions/_$program" \
    "fish/vendor_completions.d/$program.fish" "man/man1/$program.1"; do
    [ -s "$root/usr/share/$file" ] || { echo "found no /usr/share/$file" >&2; exit 1; }
  done
done
inside kvspectrum doctor
inside kvspectrum info /package/tiny

inside apt-get purge -y -qq kvspectrum >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
files_of_root >"$folder/after"
diff "$folder/before" "$folder/after" || { echo "the lines above differ after the removal" >&2; exit 1; }
