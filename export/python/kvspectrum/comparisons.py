# SPDX-License-Identifier: Apache-2.0
"""Results of `kvcalibrate compare` and `kvcalibrate recommend`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from kvspectrum.figures import Figure
from kvspectrum.results import DivergenceTail, EngineUse, FullCache, Interval, Model, PerplexityRatio, Result


@dataclass(frozen=True)
class SampledRatio:
    """A mean ratio; the interval is None for one sample."""

    mean: float
    interval: Interval | None = None
    over: str = "documents"


@dataclass(frozen=True)
class RelativeLoss:
    """Losses divided by those of another configuration, on the documents that both were scored on."""

    documents: int
    ppl: SampledRatio
    kl: SampledRatio


@dataclass(frozen=True)
class Retrieval:
    """Answers to the questions of a task."""

    task: str
    accuracy: float
    log_likelihood: float  # nats a token of the right answers
    questions: int


@dataclass(frozen=True)
class Configuration:
    """A cache at a budget. `error` says why it has no scores; the members from `bytes_ratio` on are then None."""

    label: str
    method: str
    budget: float  # share of the full cache's bytes
    documents: int  # that it was scored on
    stopped: bool  # early, as clearly worse
    pareto_front: bool
    type: str | None = None  # storage type
    settings: dict[str, Any] = field(default_factory=dict)
    config: str | None = None  # file
    calibrated: bool = False
    shared_bytes: int = 0  # that all sequences share
    engines: list[str] = field(default_factory=list)  # that execute it
    retrieval: Retrieval | None = None
    error: str | None = None
    needs: float | None = None  # the smallest share of the bytes that the method has, if it is above the budget
    bytes_ratio: float | None = None
    tokens_scored: int | None = None
    ppl: float | None = None
    nll_mean: float | None = None  # nats a token
    kl: float | None = None  # nats a token
    top1: float | None = None  # share of tokens
    ratio: PerplexityRatio | None = None
    tail: DivergenceTail | None = None
    over_standard: RelativeLoss | None = None  # calibrated settings relative to the paper's
    over_best: RelativeLoss | None = None  # relative to the least divergence at the same budget


@dataclass(frozen=True)
class BestChoice:
    """The best configuration of a budget. Numbers of configurations are indices into `Comparison.configurations`."""

    budget: float
    configuration: int | None
    documents: int
    verdict: str
    leader: int | None = None
    alike: list[int] = field(default_factory=list)  # that are not distinguished from it
    unscored: int = 0


@dataclass(frozen=True)
class SmallestChoice:
    """The smallest configuration of the front whose perplexity rises by at most `loss` (0.01: 1 %)."""

    loss: float
    configuration: int | None
    documents: int
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Comparison(Result):
    """Caches at equal bytes: `compare(model, text)`. `best_at(0.25)` is the best cache of a budget."""

    model: Model
    documents: int
    tokens: int  # of a document
    prefix: int  # tokens of a document that are not scored
    full: FullCache
    budgets: list[float]  # shares of the full cache's bytes, descending
    configurations: list[Configuration]
    best: list[BestChoice]
    smallest: list[SmallestChoice]
    dtype: str = ""

    shown: ClassVar[tuple[str, ...]] = ("pareto",)

    @property
    def front(self) -> list[Configuration]:
        """The configurations of the Pareto front of bytes and divergence, by budget, descending."""
        return [one for one in self.configurations if one.pareto_front]

    def best_at(self, budget: float) -> Configuration | None:
        """The best configuration of one of `budgets`; None if none was scored.
        @raises KeyError for a budget that was not compared"""
        for choice in self.best:
            if abs(choice.budget - budget) < 1e-9:
                return None if choice.configuration is None else self.configurations[choice.configuration]
        raise KeyError(f"found budget {budget}, expected one of {self.budgets}")

    @classmethod
    def _figures_beside(cls, path: Path) -> dict[str, Figure]:
        names = {"pareto": path.with_name(path.stem + "_pareto.svg")}
        return {name: Figure.read(file) for name, file in names.items() if file.is_file()}


@dataclass(frozen=True)
class CacheLoss:
    """The loss of a cache relative to the full cache on the same documents."""

    bytes_ratio: float
    tokens_scored: int
    ppl: float | None
    nll_mean: float  # nats a token
    kl: float  # nats a token
    top1: float  # share of tokens
    ratio: PerplexityRatio
    tail: DivergenceTail | None = None


@dataclass(frozen=True)
class MeasuredCache:
    """A cache of an engine. `bytes` are those of a document of `context` tokens."""

    label: str
    settings: dict[str, Any]
    bytes: float
    documents: int
    loss: CacheLoss
    retrieval: Retrieval | None = None


@dataclass(frozen=True, kw_only=True)
class Recommendation(Result):
    """The cache that suits a model in an engine: `recommend(model, engine=…, context=…)`.

    `chosen` is None if every cache exceeds `max_kl`: stay at 16 bits. `use.flags` are the engine's flags."""

    model: Model
    engine: str
    engine_version: str
    context: int  # tokens that were asked for
    tokens: int  # of each measured document
    full_bytes: float  # of the full cache at 16 bits, at `context` tokens
    max_kl: float  # nats a token
    max_bytes: float | None = None
    chosen: MeasuredCache | None = None
    smaller: MeasuredCache | None = None
    safer: MeasuredCache | None = None
    unsafe: list[MeasuredCache] = field(default_factory=list)
    use: EngineUse | None = None
    files: list[str] = field(default_factory=list)

    shown: ClassVar[tuple[str, ...]] = ("pareto",)

    @property
    def config_path(self) -> Path | None:
        """The config of the chosen cache, which `evaluate(model, text, config=…)` reads."""
        file = self.path.with_name("config.json") if self.path else None
        return file if file and file.is_file() else None

    @classmethod
    def _figures_beside(cls, path: Path) -> dict[str, Figure]:
        return Comparison._figures_beside(path.with_name("comparison.json"))
