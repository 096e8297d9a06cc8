# SPDX-License-Identifier: Apache-2.0
"""The result of `kvspectrum spectrum`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kvspectrum.figures import Figure
from kvspectrum.results import Model, Result, numbered_figures

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Summaries:
    """One value for each layer, or for each head of a layer."""

    energy: list[float]  # Σ power
    low_share: list[list[float]]  # [layer or head][percent]: share of the energy in the lowest bins
    bins_for_energy: list[int]  # the fewest bins from 0 on that hold 95 % of the energy
    flatness: list[float]  # geometric over arithmetic mean of the bins' power


@dataclass(frozen=True)
class SpectrumTable:
    """Summaries over the bins of a spectrum, by layer and by head: `heads[layer].energy[head]`."""

    bins: int
    layers: Summaries
    heads: list[Summaries]


@dataclass(frozen=True)
class SpectrumCurve:
    """Power by layer without DC, means over neighbouring bins (bands of 1/12 octave)."""

    bins: list[float]  # the middle of each band, in bins
    power: list[list[float]]  # [layer][band]


@dataclass(frozen=True)
class TokenSpectra:
    with_dc: SpectrumTable
    without_dc: SpectrumTable
    chunk_share: list[list[float]] | None = None  # [layer][chunk]: share of the energy in FAEDKV's 22 chunks
    curve: SpectrumCurve | None = None


@dataclass(frozen=True)
class StateSpectra:
    """`without_sinks` leaves the first `sinks` tokens out."""

    all_tokens: TokenSpectra
    without_sinks: TokenSpectra | None = None


@dataclass(frozen=True, kw_only=True)
class Spectra(Result):
    """Power spectra of keys and values along tokens: `spectrum(capture)`.

    Lists by layer follow `layers`, the layers of the model that were analysed. `power()` has every bin of every head.
    """

    model: Model
    transform: str  # "dct" or "dft"
    tokens: int  # of a document
    sinks: int
    documents: int
    layers: list[int]
    low_percents: list[float]
    states: dict[str, StateSpectra]  # k_pre, k_post, v
    constant_channels: list[dict[str, Any]] = field(default_factory=list)
    coding_gain: dict[str, Any] | None = None  # docs/spectra.md

    shown: ClassVar[tuple[str, ...]] = ("spectrum_layers",)

    def power(self, state: str = "k_pre", without_sinks: bool = False) -> NDArray[float32]:
        """Power of a state (`k_pre`, `k_post` or `v`), the squared coefficient of the orthonormal transform, mean over
        a head's channels and over documents. Needs h5py.
        @return [layer of `layers`, kv_head, bin]; NaN in rows of heads that a layer does not have
        @raises KeyError for a state that was not analysed"""
        import h5py

        if self.path is None:
            raise ValueError("found a result without a file, expected that of spectrum() or Spectra.read()")
        with h5py.File(self.path.with_name("spectrum.h5"), "r") as file:
            return file[f"power_without_sinks/{state}" if without_sinks else f"power/{state}"][()]

    @classmethod
    def _figures_beside(cls, path: Path) -> dict[str, Figure]:
        return numbered_figures(path.parent)
