# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the project work on machines without its libraries.

* OpenBLAS and LAPACKE, which the programs open by name, are copied into kvspectrum/lib, where the programs look.
* auditwheel copies the libraries that the programs link.
* The licences of all of these libraries, and of those that are compiled in, go into the wheel.

Usage: assemble.py WHEEL FOLDER; the new wheel goes to FOLDER.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLATFORM = "manylinux_2_36_x86_64"  # the C library of Debian 12
MOST_BYTES = 60_000_000
OPENED = ("libopenblas.so.0", "liblapacke.so.3", "libtmglib.so.3")  # the last is LAPACKE's


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def path_of(library):
    """The file that the loader finds for a library."""
    found = re.search(rf"^\s*{re.escape(library)} .*=> (\S+)$", output("/sbin/ldconfig", "-p"), re.MULTILINE)
    if not found:
        sys.exit(f"assemble.py: error: {library} is missing; scripts/setup.sh build installs it")
    return pathlib.Path(found[1]).resolve()


def carry(folder):
    """Copies the libraries that are opened by name. LAPACKE gets OpenBLAS as its BLAS and LAPACK: Debian's libraries
    of these names would load OpenBLAS a second time."""
    folder.mkdir()
    for name in OPENED:
        copy = folder / name
        shutil.copyfile(path_of(name), copy)
        if name != "libopenblas.so.0":
            output("patchelf", "--replace-needed", "libblas.so.3", "libopenblas.so.0", "--remove-needed",
                   "liblapack.so.3", "--set-rpath", "$ORIGIN", str(copy))
        copy.chmod(0o755)


def debian_packages(programs):
    """The packages of all libraries that the programs link or open, and of those that are compiled in."""
    libraries = {path_of(name) for name in OPENED}
    for user in [*programs, *libraries]:
        libraries |= {pathlib.Path(path).resolve() for path in re.findall(r"=> (/\S+)", output("ldd", str(user)))}
    owned = output("dpkg-query", "-S", *(f"*/x86_64-linux-gnu/*{library.name}" for library in libraries))
    packages = {line.split(":")[0] for line in owned.splitlines()}
    compiled_in = re.findall(r"^\| (lib[\w-]+-dev|nlohmann-json3-dev) \|", (ROOT / "docs/licences.md").read_text(),
                             re.MULTILINE)
    return sorted(packages | set(compiled_in) | {"libhdf5-dev"})


def add_licences(folder, programs):
    folder.mkdir()
    for package in debian_packages(programs):
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / package)


def main():
    wheel, dist = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        output("wheel", "unpack", "--dest", name, str(wheel))
        (tree,) = work.iterdir()
        programs = sorted((tree / "kvspectrum/bin").iterdir())
        (information,) = tree.glob("*.dist-info")
        add_licences(information / "licenses/libraries", programs)
        carry(tree / "kvspectrum/lib")
        output("wheel", "pack", "--dest-dir", name, str(tree))
        output("auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--wheel-dir", str(dist),
               str(work / wheel.name))
    (made,) = dist.iterdir()
    size = made.stat().st_size
    print(f"{made}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        sys.exit(f"assemble.py: error: found {size} bytes, expected at most {MOST_BYTES}")


if __name__ == "__main__":
    main()
