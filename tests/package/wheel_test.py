# SPDX-License-Identifier: Apache-2.0
"""Checks the files of a wheel: its size, its libraries and their licences. Usage: wheel_test.py WHEEL SOURCE_FOLDER"""

import pathlib
import re
import sys
import zipfile

wheel, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(source / "tests/structure"))
from check_licences import fault_of, listed  # noqa: E402

MOST_BYTES = 60_000_000
REMOTE = ("curl", "ldap", "krb5", "gssapi", "mpi")  # of HDF5's remote files and of runs of several ranks

size = wheel.stat().st_size
assert size <= MOST_BYTES, f"found {size} bytes, expected at most {MOST_BYTES}"
files = {info.filename: info for info in zipfile.ZipFile(wheel).infolist()}
licences = listed(source / "docs/licences.md")
own = "kvspectrum/libkvspectrum_codec.so"
assert own in files
libraries = [pathlib.PurePath(name).name for name in files if ".so" in name and name != own]
assert len(libraries) >= 10, libraries
for library in libraries:
    name = re.sub(r"(-[0-9a-f]{8})?\.so[.\d]*$", "", library)
    assert name in licences, f"{library}: not in docs/licences.md"
    assert fault_of(licences[name]) is None, f"{library}: {licences[name]} {fault_of(licences[name])}"
    assert not any(word in name for word in REMOTE), library
for program in ("kvspectrum", "kvcalibrate"):
    assert files[f"kvspectrum/bin/{program}"].external_attr >> 16 & 0o111, f"{program}: cannot be executed"
assert "kvspectrum/py.typed" in files
texts = [name for name in files if "/licenses/libraries/" in name]
assert any(name.endswith("/libopenblas0-openmp") for name in texts), texts
print(f"{len(libraries)} libraries, {len(texts)} licences, {size / 1e6:.1f} MB")
