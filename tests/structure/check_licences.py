#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every library that comes with the programs is in the tables of docs/licences.md, under a licence that leaves the
project's own as it is.

Usage: check_licences.py LICENCES.md ROOT PROGRAM...
  ROOT      the tree: its sources' names of libraries to open, its folder third_party
  PROGRAM   programs and libraries, of which all count that `ldd` gives
"""
import pathlib
import re
import subprocess
import sys

PERMISSIVE = {
    "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-3-Clause-Attribution", "BSL-1.0", "curl", "HDF5", "MIT",
    "MPL-2.0", "OLDAP-2.8", "Unicode-3.0", "Zlib", "LicenseRef-NVIDIA",
}
LESSER = re.compile(r"LGPL-[23]\.[01]-(only|or-later)")
GENERAL = re.compile(r"A?GPL-[123]\.0-(only|or-later)")
OPENED = re.compile(r'"(lib[\w+-]+)\.so(?:\.\d+)*"')


def fault_of(licence):
    """Returns the fault of an SPDX expression of OR and WITH, None if it leaves the project's licence unchanged."""
    faults = []
    for choice in licence.split(" OR "):
        general, _, exception = choice.partition(" WITH ")
        if choice in PERMISSIVE or LESSER.fullmatch(choice):
            return None
        if GENERAL.fullmatch(general):
            if exception == "GCC-exception-3.1":
                return None
            faults.append("is the GPL alone")
        else:
            faults.append("is not known to this test")
    return faults[0]


def listed(document):
    """Returns {library or path: licence} of a document's tables."""
    found = {}
    for line in document.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or set(cells[2]) == {"-"} or cells[2] == "licence":
            continue
        for name in re.findall(r"`([^`]+)`", cells[0]) or [cells[0]]:
            found[name] = cells[2]
    return found


def name_of(library):
    return re.sub(r"\.so[.\d]*$", "", pathlib.PurePath(library).name)


def linked(program):
    """Returns the names of the libraries that a program comes with, including libraries of libraries."""
    lines = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.splitlines()
    words = [line.split()[0] for line in lines if line.strip()]
    return {name_of(word) for word in words if not word.startswith(("linux-vdso", "linux-gate", "statically"))}


def opened(root):
    """Returns {name: path or None} of the libraries that sources open by name."""
    cached = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    paths = {name_of(line.split()[0]): line.split()[-1] for line in cached.splitlines() if " => " in line}
    names = set()
    for source in (root / "src").rglob("*"):
        if source.suffix in (".cpp", ".h", ".cu"):
            names.update(OPENED.findall(source.read_text()))
    return {name: paths.get(name) for name in names}


def main():
    document, root, programs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    licences, users = listed(document), {}
    for name, path in opened(root).items():
        users.setdefault(name, "the sources")
        if path:
            programs.append(path)
    for program in programs:
        for name in linked(program):
            users.setdefault(name, program)
    vendored = root / "third_party"
    for folder in filter(pathlib.Path.is_dir, vendored.glob("*")):
        users.setdefault(f"third_party/{folder.name}", "the tree")
    faults = [f"{name} (of {user}): not in {document}" for name, user in users.items() if name not in licences]
    faults += [f"{name}: {licence} {fault_of(licence)}" for name, licence in licences.items() if fault_of(licence)]
    print("\n".join(sorted(faults)) or f"{len(users)} libraries, each under a licence that is fine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
