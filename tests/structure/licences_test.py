#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Licences that check_licences.py accepts and refuses. Usage: licences_test.py PROGRAM, whose libraries it reads."""
import pathlib
import subprocess
import sys
import tempfile

import check_licences

HERE = pathlib.Path(__file__).resolve().parent
TAKEN = [
    "MIT", "LGPL-2.1-or-later", "LGPL-3.0-or-later OR GPL-2.0-or-later", "BSD-3-Clause OR GPL-2.0-only",
    "GPL-3.0-or-later WITH GCC-exception-3.1",
]
ALONE = ["GPL-2.0-or-later", "GPL-3.0-only", "AGPL-3.0-only", "GPL-2.0-only OR GPL-3.0-only",
         "GPL-2.0-only WITH Classpath-exception-2.0"]
UNKNOWN = ["", "Proprietary", "MIT AND GPL-2.0-only", "GPL"]


def run(document, root, *programs):
    command = [HERE / "check_licences.py", document, root, *programs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def main():
    for licence in TAKEN:
        assert check_licences.fault_of(licence) is None, licence
    for licence in ALONE:
        assert check_licences.fault_of(licence) == "is the GPL alone", licence
    for licence in UNKNOWN:
        assert check_licences.fault_of(licence) == "is not known to this test", licence

    program, root = sys.argv[1], HERE.parents[1]
    text = (root / "docs/licences.md").read_text()
    status, said = run(root / "docs/licences.md", root, program)
    assert status == 0, said
    with tempfile.TemporaryDirectory() as folder:
        document = pathlib.Path(folder) / "licences.md"
        for name in ("libgomp", "libsz", "libopenblas", "libgfortran"):  # linked, by a library, opened, by that library
            document.write_text(text.replace(f"`{name}`", "`another`"))
            status, said = run(document, root, program)
            assert status == 1 and said.startswith(f"{name} (of ") and said.count("\n") == 1, (name, said)
        document.write_text(text.replace("third_party/pocketfft", "nothing"))
        status, said = run(document, root, program)
        assert status == 1 and "third_party/pocketfft (of the tree): not in" in said, said
        document.write_text(text + "\n| `libfftw3` | FFTW | GPL-2.0-or-later |\n")
        status, said = run(document, root, program)
        assert status == 1 and "libfftw3: GPL-2.0-or-later is the GPL alone" in said, said


if __name__ == "__main__":
    main()
