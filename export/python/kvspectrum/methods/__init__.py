# SPDX-License-Identifier: Apache-2.0
"""Each file defines the layer of one method. It has the name of the method, as configs spell it."""

from importlib import import_module
from pkgutil import iter_modules

from kvspectrum.layer import CalibratedLayer

METHODS = {"full": CalibratedLayer}
for _file in iter_modules(__path__):
    METHODS[_file.name] = getattr(import_module(f"{__name__}.{_file.name}"), f"{_file.name.capitalize()}Layer")
