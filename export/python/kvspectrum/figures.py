# SPDX-License-Identifier: Apache-2.0
"""Figures of the programs, which notebooks show."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A figure that a program wrote. A notebook shows it; `path` is its SVG file, `svg` the file's text."""

    path: Path
    svg: str

    @classmethod
    def read(cls, path: Path) -> Figure:
        return cls(path, path.read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        return f"Figure({str(self.path)!r})"

    def _repr_svg_(self) -> str:
        return self.svg

    def html(self) -> str:
        """An image that holds the figure, so that names in one figure do not meet those of another on the page."""
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img alt="{self.path.stem}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'
