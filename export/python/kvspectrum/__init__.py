"""kvspectrum's calibrated KV-cache configs in Transformers.

Names are imported when they are used, so that kvspectrum.reader needs neither torch nor Transformers.
"""

from importlib import import_module

_MODULES = {
    "CalibratedCache": "kvspectrum.cache",
    "ConfigError": "kvspectrum.reader.error",
    "press_from_config": "kvspectrum.press",
}
__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module 'kvspectrum' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
