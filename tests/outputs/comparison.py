# SPDX-License-Identifier: Apache-2.0
"""Differences between two files or two JSON values, except those that renames.py lists."""
import json

import renames


class Rules:
    """The renamed and ignored members of a step's outputs."""

    def __init__(self, step, command, left_out=()):
        rows = renames.PARAMETERS + renames.KEYS
        self.keys = {old: new for where, old, new in rows if where in (None, command)}
        self.words = {old: new for where, old, new in renames.PARAMETERS if where in (None, command)}  # as values, too
        self.left_out = renames.TIMES | renames.ORIGINS | set(left_out)
        self.changes = [pointer for where, pointer, _ in renames.CHANGES if where == step]

    def members(self, value):
        """Returns the members of an object under their newest names."""
        found = {}
        for key, member in value.items():
            name = self.keys.get(key, key)
            if name in found:
                raise ValueError(f"found {key} and {name} in one object, expected one of them")
            if name not in self.left_out:
                found[name] = member
        return found

    def passes(self, pointer):
        return any(pointer == part or pointer.startswith(part + "/") for part in self.changes)


def kind(value):
    """Numbers are of one kind, whether they are written with a point or without."""
    return "number" if type(value) in (int, float) else type(value).__name__


def shown(value):
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def differences(old, new, rules, pointer=""):
    """Yields "POINTER: found NEW, expected OLD"."""
    if rules.passes(pointer):
        return
    if kind(old) != kind(new):
        yield f"{pointer}: found {shown(new)}, expected {shown(old)}"
    elif isinstance(old, dict):
        old, new = rules.members(old), rules.members(new)
        for key in old.keys() | new.keys():
            below = f"{pointer}/{key}"
            if key in old and key in new:
                if key not in renames.PROSE:
                    yield from differences(old[key], new[key], rules, below)
            elif not rules.passes(below):
                yield f"{below}: " + ("found nothing, expected it" if key in old else "expected nothing, found it")
    elif isinstance(old, list):
        if len(old) != len(new):
            yield f"{pointer}: found {len(new)} elements, expected {len(old)}"
        for number, (left, right) in enumerate(zip(old, new)):
            yield from differences(left, right, rules, f"{pointer}/{number}")
    elif old != new and rules.words.get(old) != new:
        yield f"{pointer}: found {shown(new)}, expected {shown(old)}"


def hdf5_value(path):
    """Returns an HDF5 file as the JSON value of its groups, attributes and datasets."""
    import h5py  # Debian's python3-h5py; not needed if bytes are equal

    def of(item):
        found = {"@" + key: value.tolist() if hasattr(value, "tolist") else value for key, value in item.attrs.items()}
        if isinstance(item, h5py.Dataset):
            return found | {"type": str(item.dtype), "values": item[()].tolist()}
        return found | {name: of(member) for name, member in item.items()}

    with h5py.File(path) as file:
        return of(file)


def file_differences(old, new, rules):
    """Compares two files: JSON, HDF5, or bytes."""
    old_bytes, new_bytes = old.read_bytes(), new.read_bytes()
    if old_bytes == new_bytes:
        return
    if old.suffix == ".json" and old_bytes and new_bytes:
        yield from differences(json.loads(old_bytes), json.loads(new_bytes), rules)
    elif old.suffix == ".h5":
        yield from differences(hdf5_value(old), hdf5_value(new), rules)
    else:
        place = next((n for n, (a, b) in enumerate(zip(old_bytes, new_bytes)) if a != b), len(old_bytes))
        yield f": found other bytes from {place} on ({len(new_bytes)} of them, expected {len(old_bytes)})"
