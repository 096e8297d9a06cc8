# SPDX-License-Identifier: Apache-2.0
"""Reads a config as `kvcalibrate validate` does, with Python's own library alone."""

import hashlib
from pathlib import Path

from kvspectrum.reader.error import ConfigError
from kvspectrum.reader.groups import check_groups
from kvspectrum.reader.json_text import parse
from kvspectrum.reader.lists import check_lists
from kvspectrum.reader.old_names import rename_old_parameters
from kvspectrum.reader.parameters import check_parameters, check_row_types
from kvspectrum.reader.schema import check_schema
from kvspectrum.reader.tensors import check_tensors

__all__ = ["ConfigError", "read_config"]


def _check_files(document, path):
    for index, file in enumerate(document["files"]):
        beside, expected = path.parent / file["path"], file["sha256"]
        try:
            found = hashlib.sha256(beside.read_bytes()).hexdigest() if beside.is_file() else "no file"
        except ValueError:  # a zero byte in the name
            found = "no file name"
        if found != expected:
            raise ConfigError(f"{path}: /files/{index}/sha256: found {expected}, expected {found}, of {beside}")


def read_config(path):
    """The document of the file at `path`, after a check of its files.
    @raises ConfigError for what `kvcalibrate validate` refuses"""
    path = Path(path)
    try:
        document = parse(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}, expected a config of kvspectrum") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: found no object, expected a config of kvspectrum")
    document = rename_old_parameters(document, path)
    check_schema(document, path)
    check_lists(document, path, "/model/")  # parameters are read with the sizes of their layers
    if document["method"] in ("elitekv", "kvtc", "transform"):
        check_row_types(document, path)
    else:
        check_parameters(document, path)
    check_lists(document, path)
    if document["method"] == "transform":
        check_groups(document, path)
    _check_files(document, path)
    if document["files"]:
        check_tensors(document, path.parent / document["files"][0]["path"])
    return document
