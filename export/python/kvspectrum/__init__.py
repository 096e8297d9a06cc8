"""kvspectrum's calibrated KV-cache configs in Transformers."""

from kvspectrum.cache import CalibratedCache
from kvspectrum.config import ConfigError
from kvspectrum.press import press_from_config

__all__ = ["CalibratedCache", "ConfigError", "press_from_config"]
