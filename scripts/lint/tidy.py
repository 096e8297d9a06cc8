#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of a compilation database, with the checks of .clang-tidy.

clang-tidy spends most of its time in headers of the standard library, GoogleTest and nlohmann, once per source. So the
sources of a folder with equal flags are checked as one translation unit that includes all of them. A source that
clashes with its neighbours (two anonymous functions with one name) goes to a second unit. A unit found clean, in any
clone, is not checked again until its files, flags or checks change (~/.cache/kvspectrum/tidy).

Usage: tidy.py BUILD_FOLDER [FILE...]   with files: checks only these; checks a header through a source that includes it
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kvspectrum" / "tidy"
FINDING = re.compile(r"^(/[^:\n]+):(\d+):(\d+): (?:warning|error): (.*)$", re.MULTILINE)
# clang 14 rejects structured bindings in lambdas and OpenMP regions, and some views of libstdc++ 12; GCC accepts all.
CLANG_LACKS = "reference to local binding"


def units(build):
    """Returns {(folder, flags): [source, ...]}. A source of several targets counts for the first."""
    groups, seen = {}, set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source in seen or not source.is_relative_to(ROOT) or source.is_relative_to(build):
            continue
        seen.add(source)
        words = shlex.split(entry["command"])
        out = words.index("-o")
        flags = tuple(words[1:out] + [word for word in words[out + 2 :] if word not in ("-c", entry["file"])])
        folder = "_".join(source.relative_to(ROOT).parts[:-1][:2])
        groups.setdefault((folder, flags), []).append(source)
    return groups


class Includes:
    """Finds the project's own files that a file includes, directly or indirectly."""

    def __init__(self, build):
        self.roots = [ROOT / "src", ROOT, build / "export/generated"]
        self.direct = {}

    def of(self, source):
        found, left = set(), [source]
        while left:
            file = left.pop()
            if file not in found:
                found.add(file)
                left.extend(self._direct(file))
        return found

    def _direct(self, file):
        if file not in self.direct:
            names = re.findall(r'^\s*#\s*include "([^"]+)"', file.read_text(errors="replace"), re.MULTILINE)
            candidates = [[root / name for root in [file.parent, *self.roots]] for name in names]
            self.direct[file] = [next((path for path in paths if path.is_file()), None) for paths in candidates]
        return [path for path in self.direct[file] if path]


def run_unit(build, name, flags, sources):
    """Returns [(file, text of the finding)] for one translation unit."""
    unit = build / "tidy" / f"{name}.cpp"
    parts = []
    for number, source in enumerate(sources):
        for entry in ("main", "LLVMFuzzerTestOneInput"):  # each program has its own
            parts.append(f"#undef {entry}\n#define {entry} {entry}_{number}\n")
        parts.append(f'#include "{source}"\n')
    unit.write_text("".join(parts))
    command = ["clang-tidy-14", "--quiet", str(unit), "--", *flags, "-w", "-ferror-limit=0"]
    result = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    found = FINDING.finditer(result.stdout.replace(",-warnings-as-errors]", "]"))
    findings = [(match[1], f"{match[1]}:{match[2]}: {match[4]}") for match in found]
    if result.returncode and not findings:
        return [(str(unit), result.stderr.strip())]
    return [(file, text) for file, text in findings if file.startswith(f"{ROOT}/") and CLANG_LACKS not in text]


def check(build, name, flags, sources, key, includes):
    marker = CACHE / key
    if marker.exists():
        return []
    found, left, part = [], list(sources), 0
    while left:
        findings = run_unit(build, f"{name}_{part}", flags, left)
        broken = {pathlib.Path(file) for file, text in findings if "[clang-diagnostic-error]" in text}
        broken -= includes.of(left[0])  # nothing precedes the first source: its errors are its own
        left = [source for source in left[1:] if broken & includes.of(source)]
        again = set().union(*(broken & includes.of(source) for source in left))
        found += [finding for finding in findings if pathlib.Path(finding[0]) not in again]
        part += 1
    if not found:
        marker.touch()
    return found


def selected(sources, wanted, includes):
    """Returns the wanted sources and, for headers that none of them includes, the smallest sources that do."""
    chosen = {source for source in sources if source in wanted}
    left = wanted.difference(*(includes.of(source) for source in chosen))
    for source in sorted(sources, key=lambda source: len(includes.of(source))):
        if left & includes.of(source):
            chosen.add(source)
            left -= includes.of(source)
    return chosen


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    (build / "tidy").mkdir(exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    includes = Includes(build)
    groups = units(build)
    if len(sys.argv) > 2:
        wanted = {(ROOT / name).resolve() for name in sys.argv[2:]}
        chosen = selected([source for sources in groups.values() for source in sources], wanted, includes)
        groups = {key: [source for source in sources if source in chosen] for key, sources in groups.items()}
    version = subprocess.run(["clang-tidy-14", "--version"], capture_output=True, text=True, check=True).stdout
    version += (ROOT / ".clang-tidy").read_text()
    jobs = []
    for number, ((folder, flags), sources) in enumerate(groups.items()):
        if not sources:
            continue
        digest = hashlib.sha256((version + repr(flags).replace(str(ROOT), "")).encode())
        for file in sorted(set().union(*(includes.of(source) for source in sources))):
            digest.update(f"{file.relative_to(ROOT)}".encode() + file.read_bytes())
        jobs.append((len(sources), f"{folder}_{number}", flags, sources, digest.hexdigest(), includes))
    jobs.sort(key=lambda job: -job[0])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: check(build, *job[1:]), jobs)
        findings = sorted({text.replace(f"{ROOT}/", "") for found in results for _, text in found})
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
