# SPDX-License-Identifier: Apache-2.0
"""Configs (docs/configs.md) as Python objects, without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvspectrum.records import from_json
from kvspectrum.results import Model

if TYPE_CHECKING:
    from kvspectrum.cache import CalibratedCache


@dataclass(frozen=True)
class ConfigFile:
    """A file that belongs to a config and is in its folder."""

    path: str  # relative to the config's folder
    sha256: str


@dataclass(frozen=True)
class Config:
    """A calibrated cache. `evaluate(model, text, config=config)` runs it; `config.cache(model)` is its cache in
    Transformers.

    `parameters` are the method's; a list has a value for each of `parameters["layers"]`. `quality` was measured when
    the config was made."""

    method: str
    model: Model
    parameters: dict[str, Any]
    calibration: dict[str, Any] = field(repr=False)
    quality: dict[str, Any]
    files: list[ConfigFile] = field(default_factory=list)
    path: Path = Path()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Config:
        """@raises ConfigError (a ValueError of one line) for what `kvcalibrate validate` refuses"""
        from kvspectrum.reader import read_config

        document = read_config(path)
        document.pop("path", None)
        config: Config = from_json(cls, document, str(path))
        object.__setattr__(config, "path", Path(path))  # the class is frozen
        return config

    def __fspath__(self) -> str:
        return str(self.path)

    def cache(self, model: Any, prefix: int | None = None) -> CalibratedCache:
        """The cache of this config for one sequence: CalibratedCache.from_config(). Needs kvspectrum[transformers].
        @param model  a causal language model of Transformers"""
        from kvspectrum.cache import CalibratedCache

        return CalibratedCache.from_config(self.path, model, prefix)
