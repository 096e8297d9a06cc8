# SPDX-License-Identifier: Apache-2.0
"""The common parts of all results, and the results of `kvcalibrate eval`.

The names of members are those of the JSON files. `json` has the whole document, with members that no class here has.
"""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from kvspectrum.figures import Figure
from kvspectrum.records import from_json

AnyResult = TypeVar("AnyResult", bound="Result")
Sizes = int | list[int]  # one for all layers, or one for each; 0 in a layer without a KV cache
Interval = tuple[float, float]  # 95 %
BESIDE_DOCUMENTS = ("text", "figures", "json", "path")  # members of Result that no document gives


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a command. `str(result)` is the text that the command prints; a notebook shows it with `figures`.

    command       the command line; empty where the document has none
    tool_version  of the program that computed it
    text          what the command prints; empty if the result was read from a file
    figures       by name: "pareto", "spectrum_layers"
    json          the whole document
    path          the JSON file
    """

    command: str = ""
    tool_version: str = ""
    text: str = field(default="", repr=False)
    figures: dict[str, Figure] = field(default_factory=dict, repr=False)
    json: dict[str, Any] = field(default_factory=dict, repr=False)
    path: Path | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)  # removed with the result

    shown: ClassVar[tuple[str, ...]] = ()  # the figures that a notebook shows with the result

    @classmethod
    def read(cls: type[AnyResult], path: str | os.PathLike[str], text: str = "",
             folder: tempfile.TemporaryDirectory[str] | None = None) -> AnyResult:
        """The result in a JSON file of the programs, with the figures next to it.
        @raises ValueError if the file is not such a result"""
        file = Path(path)
        try:
            document = json.loads(file.read_bytes())
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
        return cls.of(document, text, str(file), figures=cls._figures_beside(file), path=file, _folder=folder)

    @classmethod
    def of(cls: type[AnyResult], document: Any, text: str, where: str, **members: Any) -> AnyResult:
        """The result in a JSON document. @param where  names the document in errors"""
        if not isinstance(document, dict):
            raise ValueError(f"{where}: found no object, expected a result of kvspectrum")
        own = {name: value for name, value in document.items() if name not in BESIDE_DOCUMENTS}
        result = from_json(cls, own, where)
        for name, value in {"text": text, "json": document, **members}.items():
            object.__setattr__(result, name, value)  # the class is frozen
        return result

    @classmethod
    def _figures_beside(cls, path: Path) -> dict[str, Figure]:
        return {}

    def __str__(self) -> str:
        return self.text or repr(self)

    def _repr_html_(self) -> str:
        figures = "".join(self.figures[name].html() for name in self.shown if name in self.figures)
        return f"<pre>{html.escape(str(self))}</pre>{figures}"


def numbered_figures(folder: Path, pattern: str = "*.svg") -> dict[str, Figure]:
    """The figures of a folder by name; pages (_1, _2, _10) are in their order."""
    def order(path: Path) -> list[Any]:
        return [(word.isdigit(), int(word) if word.isdigit() else word) for word in re.split(r"(\d+)", path.stem)]

    return {path.stem: Figure.read(path) for path in sorted(folder.glob(pattern), key=order)}


@dataclass(frozen=True)
class Model:
    """The model that a result was made with."""

    name: str
    sha256: str
    architecture: str
    layers: int
    query_heads: Sizes
    kv_heads: Sizes
    head_dim: Sizes
    rope: dict[str, Any]


@dataclass(frozen=True)
class EngineUse:
    """How an engine is told to use a cache: `flags` of its command line, `notes` of one line each."""

    engine: str
    flags: str = ""
    notes: list[str] = field(default_factory=list)
    export: str = ""  # `kvcalibrate export --to`, for the files that the engine needs


@dataclass(frozen=True)
class LargestDivergence:
    """The token of the text whose prediction changes most."""

    kl: float  # nats
    document: int  # from 0
    position: int  # from 0
    token: int  # id


@dataclass(frozen=True)
class DivergenceTail:
    """KL divergence from the full cache's predictions over tokens, nats."""

    median: float
    p99: float
    p999: float
    largest: LargestDivergence
    change_mean: float  # |Δ log p| of the text's tokens, nats
    change_p95: float
    relative_error: float  # of the quantiles
    top1_interval: Interval  # of the share of equal first choices


@dataclass(frozen=True)
class PerplexityRatio:
    """Perplexity divided by the full cache's on the same documents."""

    ppl: float | None  # None if it is beyond a double
    nll_difference: float  # nats a token
    interval: Interval | None = None  # of `ppl`
    over: str | None = None  # what the interval is over: documents, or parts of them


@dataclass(frozen=True)
class FullCache:
    """The full cache on the same documents."""

    ppl: float | None
    nll_mean: float = 0.0
    nll_error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Evaluation(Result):
    """A cache on texts: `evaluate(model, text, method=…)`.

    `ppl` is None if it is beyond a double. `full`, `ratio`, `kl`, `top1` and `tail` compare with the full cache on the
    same documents; they are None with `reference="none"` and for the full cache at 16 bits."""

    method: str
    ppl: float | None
    nll_mean: float  # nats a token
    nll_error: float  # standard error
    errors_over: str  # "documents" or "tokens"
    tokens_scored: int
    bytes_per_token: float  # mean over a document's tokens of the bytes that the cache holds
    bytes_ratio: float  # of the full cache's bytes
    bytes_per_token_end: float  # at a document's end
    compressions: int
    documents: int
    window: int  # tokens of a document
    dtype: str
    model: Model
    parameters: dict[str, Any] = field(default_factory=dict)
    full: FullCache | None = None
    ratio: PerplexityRatio | None = None
    kl: float | None = None  # mean, nats a token
    kl_error: float | None = None  # standard error
    top1: float | None = None  # share of tokens with the full cache's first choice
    tail: DivergenceTail | None = None
    engines: list[EngineUse] = field(default_factory=list)  # that execute the cache


@dataclass(frozen=True, kw_only=True)
class TaskEvaluation(Result):
    """Answers to the questions of a task: `evaluate(model, task=…)`. Scores are means over questions, 0 … 1."""

    method: str
    task: str
    questions: int
    accuracy: float
    log_likelihood: float  # of the right answers, nats a token
    bytes_ratio: float
    samples: list[dict[str, Any]]  # one for each question
    model: Model
    recall: float | None = None
    partial: float | None = None
    f1: float | None = None
    full: dict[str, Any] | None = None  # the full cache's scores
    difference: dict[str, Any] | None = None  # of log_likelihood from the full cache's, with its interval
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptMean:
    """A mean over prompts; the interval is absent for one prompt."""

    mean: float
    interval: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class TraceEvaluation(Result):
    """A cache on texts that the model generates itself: `evaluate(model, text, trace=…)`."""

    method: str
    trace: dict[str, Any]  # how tokens are chosen
    tokens_scored: int
    kl: PromptMean  # nats a token
    top1: PromptMean  # share of tokens with the full cache's first choice
    nll_difference: PromptMean  # nats a token
    full_nll: float  # nats a token
    tail: DivergenceTail
    own: dict[str, Any]  # the cache's own continuations
    bytes_ratio: float
    samples: list[dict[str, Any]]  # one for each prompt
    model: Model
    parameters: dict[str, Any] = field(default_factory=dict)
