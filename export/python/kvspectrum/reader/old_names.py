# SPDX-License-Identifier: Apache-2.0
"""Names that parameters had in version 0.1, which are still read."""

import warnings

from kvspectrum.reader.error import ConfigError

_RENAMED = {"store": "type", "store_k": "type_k", "store_v": "type_v", "store_skip_layers": "type_skip_layers"}


def _word(name, value):
    """The word "store" of one side stands for the parameter of both sides."""
    if name == "store":
        return value
    if isinstance(value, list):
        return ["type" if element == "store" else element for element in value]
    return "type" if value == "store" else value


def rename_old_parameters(document, where):
    """`document` with the names of this version. Warns of each old name.
    @raises ConfigError if an object has a parameter under both names"""
    if isinstance(document, list):
        return [rename_old_parameters(element, where) for element in document]
    if not isinstance(document, dict):
        return document
    for old, new in _RENAMED.items():
        if old in document and new in document:
            raise ConfigError(f"{where}: found {old} and {new}, expected one of them")
        if old in document:
            warnings.warn(f"{where}: {old} is now {new}", FutureWarning, stacklevel=4)
    return {_RENAMED.get(name, name): rename_old_parameters(_word(name, value) if name in _RENAMED else value, where)
            for name, value in document.items()}
