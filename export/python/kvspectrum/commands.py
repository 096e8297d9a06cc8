# SPDX-License-Identifier: Apache-2.0
"""The programs' commands as functions. Each runs a program and returns its result.

Every function takes the command's other options as keywords: `--max-ppl-increase 1%,5%` is
`max_ppl_increase=["1%", "5%"]`, `--resume` is `resume=True`. `progress` is that of run_program(): True prints the
program's notes and progress to sys.stderr, False prints nothing, a function gets each line. A program that fails
raises ProgramError. KeyboardInterrupt stops the program; the same call with `resume=True` continues it.

Without a place for its files a command writes them to a temporary folder, which is removed with the result.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from kvspectrum.capture import Capture
from kvspectrum.comparisons import Comparison, Recommendation
from kvspectrum.config_file import Config
from kvspectrum.model_info import ModelInfo
from kvspectrum.programs import option_words, path_word, run_program
from kvspectrum.results import AnyResult, Evaluation, TaskEvaluation, TraceEvaluation
from kvspectrum.spectra import Spectra

if TYPE_CHECKING:
    from kvspectrum.programs import Listener, Option

AnyPath = str | os.PathLike[str]


def _run(kind: type[AnyResult], command: tuple[str, str], options: dict[str, Option],
         output: tuple[str, AnyPath | None], file: str, progress: Listener | bool) -> AnyResult:
    """Runs a command and reads its JSON file.
    @param output  the option that says where results go, and its value; None: a temporary folder
    @param file    the name of the JSON file in the folder that the option names; "": the option names the file"""
    option, place = output
    folder = None
    if place is None:
        folder = tempfile.TemporaryDirectory(prefix="kvspectrum-")
        place = Path(folder.name, "files" if file else "result.json")
    program, name = command
    text = run_program(program, [name, *option_words({**options, option: place})], progress)
    return kind.read(Path(place, file) if file else place, text, folder)


def info(model: AnyPath, *, window: int | None = None) -> ModelInfo:
    """A model's geometry, the bytes of its cache, and the methods and engines that apply to it: `kvspectrum info`.
    @param model   GGUF file, or folder with config.json and safetensors; no weights are read
    @param window  tokens of a document, on which the memory of each command depends"""
    words = ["info", path_word(model), *option_words({"window": window})]
    document = json.loads(run_program("kvspectrum", [*words, "--json"], progress=True))
    return ModelInfo.of(document, run_program("kvspectrum", words, progress=True), os.fsdecode(model))


def recommend(model: AnyPath, *, engine: str, context: int, text: Option = None, budget: str | None = None,
              max_kl: float | None = None, documents: int | None = None, time: str | None = None,
              out_dir: AnyPath | None = None, progress: Listener | bool = True, **options: Option) -> Recommendation:
    """The cache that suits a model in an engine at a context length: `kvcalibrate recommend`.
    @param engine     a name that `kvcalibrate recommend --help` lists, such as llama.cpp or vllm
    @param context    tokens of a conversation
    @param text       one or more files or folders; None: a sample of 12,000 tokens
    @param budget     the most bytes: "40%" of the full cache, or "9000B" a token
    @param max_kl     without `budget`: the largest mean KL divergence, nats a token; None: 0.02
    @param documents  the most documents of `context` tokens; None: 4
    @param time       time limit: "30s", "60m", "2h"
    @param out_dir    folder for the recommendation, the config, the comparison and the engine's file"""
    return _run(Recommendation, ("kvcalibrate", "recommend"), {
        "model": model, "engine": engine, "context": context, "text": text, "budget": budget, "max_kl": max_kl,
        "documents": documents, "time": time, **options}, ("out_dir", out_dir), "recommendation.json", progress)


def compare(model: AnyPath, text: Option = None, *, budgets: Option = None, methods: Option = None,
            types: Option = None, calibration_text: Option = None, engine: str | None = None,
            window: int | None = None, documents: int | None = None, time: str | None = None,
            out: AnyPath | None = None, progress: Listener | bool = True, **options: Option) -> Comparison:
    """Methods and storage types at equal bytes: `kvcalibrate compare`.
    @param text              one or more files or folders; None with `tokens_file`
    @param budgets           shares of the full cache's bytes: ["50%", "25%"]
    @param methods           methods to try at each budget: ["full", "lagkv"]
    @param types             storage types of the full cache: ["q8_0", "q8_0/q4_0"]
    @param calibration_text  calibrate methods to each budget on this text
    @param engine            only caches that this engine executes
    @param window            tokens of a document; None: 1,024
    @param documents         the most documents; None: all
    @param time              time limit: "30s", "60m", "2h"
    @param out               the JSON file; the figure is written next to it"""
    return _run(Comparison, ("kvcalibrate", "compare"), {
        "model": model, "text": text, "budgets": budgets, "methods": methods, "types": types,
        "calibration_text": calibration_text, "engine": engine, "window": window, "documents": documents, "time": time,
        **options}, ("out", out), "", progress)


@overload
def evaluate(model: AnyPath, text: Option = None, *, method: str | None = None,
             settings: dict[str, Any] | None = None, config: AnyPath | Config | None = None, task: str,
             trace: None = None, out: AnyPath | None = None, progress: Listener | bool = True,
             **options: Option) -> TaskEvaluation: ...
@overload
def evaluate(model: AnyPath, text: Option = None, *, method: str | None = None,
             settings: dict[str, Any] | None = None, config: AnyPath | Config | None = None, task: None = None,
             trace: int, out: AnyPath | None = None, progress: Listener | bool = True,
             **options: Option) -> TraceEvaluation: ...
@overload
def evaluate(model: AnyPath, text: Option = None, *, method: str | None = None,
             settings: dict[str, Any] | None = None, config: AnyPath | Config | None = None, task: None = None,
             trace: None = None, out: AnyPath | None = None, progress: Listener | bool = True,
             **options: Option) -> Evaluation: ...
def evaluate(model: AnyPath, text: Option = None, *, method: str | None = None,
             settings: dict[str, Any] | None = None, config: AnyPath | Config | None = None, task: str | None = None,
             trace: int | None = None, out: AnyPath | None = None, progress: Listener | bool = True,
             **options: Option) -> Evaluation | TaskEvaluation | TraceEvaluation:
    """Perplexity, bytes, and the divergence from the full cache's predictions: `kvcalibrate eval`.
    @param text      one or more files or folders; None with `tokens_file`
    @param method    a method, with its `settings`: "lagkv", {"ratio": 0.5}; a list has a value for each layer
    @param config    a config instead of a method
    @param task      ask the questions of a task instead ("needle"): the result is a TaskEvaluation
    @param trace     score texts of this many tokens that the model generates: the result is a TraceEvaluation
    @param out       the JSON file, for `resume`
    @param options   `save_config="lagkv.json"` writes the method as a config"""
    if settings is not None and not isinstance(settings, dict):
        raise TypeError(f"settings: found {settings!r}, expected a dict such as {{'ratio': 0.5}}")
    words = [f"{name}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}"
             for name, value in (settings or {}).items()]
    kind: type[Evaluation | TaskEvaluation | TraceEvaluation] = (
        TaskEvaluation if task is not None else TraceEvaluation if trace is not None else Evaluation)
    return _run(kind, ("kvcalibrate", "eval"), {
        "model": model, "text": text, "method": method, "set": words or None, "config": config, "task": task, "trace": trace,
        **options}, ("out", out), "", progress)


def spectrum(capture: AnyPath | Capture | None = None, *, model: AnyPath | None = None, text: Option = None,
             transform: str | None = None, layers: str | None = None, out_dir: AnyPath | None = None,
             progress: Listener | bool = True, **options: Option) -> Spectra:
    """Power spectra of keys and values along tokens, and the coding gain of transforms: `kvspectrum spectrum`.
    @param capture    a capture with k_pre and v; None: states of `model` on `text`
    @param transform  "dct" (None) or "dft"
    @param layers     such as "0,14-16"; None: all
    @param out_dir    folder for spectrum.json, spectrum.h5 and the figures"""
    path = capture.path if isinstance(capture, Capture) else capture
    return _run(Spectra, ("kvspectrum", "spectrum"), {
        "capture": path, "model": model, "text": text, "transform": transform, "layers": layers, **options},
        ("out_dir", out_dir), "spectrum.json", progress)
