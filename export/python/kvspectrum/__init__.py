"""kvspectrum's calibrated KV-cache configs in Transformers."""

from kvspectrum.cache import CalibratedCache
from kvspectrum.config import ConfigError

__all__ = ["CalibratedCache", "ConfigError"]
