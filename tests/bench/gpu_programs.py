#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs kvspectrum and kvcalibrate on the CPU and on a device and compares all of their outputs.

Usage: gpu_programs.py BIN MODEL ... [--text FILE] [--device cuda] [--scratch /dev/shm/kvs-gpu] [--jobs N]

MODEL is a GGUF file (with --text), a folder, or a file of tests/golden/parity, from which make_model makes a tiny model.
The first model gets every check, the others the checks of their arithmetic. Prints a line for every model and for every
failed check (--verbose: for all) with the worst difference, its position and its bound, and a line of JSON for every
model; exit status 1 if a check fails. Needs only Python's standard library. Figures are not compared.
"""
import argparse
import concurrent.futures
import filecmp
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

# Bounds. NLL in nats, spectra relative, changes of perplexity: the targets. A state: f32 products of k terms in two
# orders of summation differ by about sqrt(k) 2^-24, 2e-6 at k = 1,536. Seven products in each of 30 layers, adding up
# like noise, make 3e-5; the bound is three times that (oneDNN's kernels for AVX-512 and SSE4.1 are 3e-6 apart on
# SmolLM2). One head's token may be ten times worse than all. Stored in f16, each of the two values is rounded, 2^-11
# each.
NLL, SPECTRUM, DELTA = 2e-3, 1e-3, 2e-3
NORM = {"f32": 1e-4, "f16": 1e-4 + 2**-10}
ROW = {"f32": 1e-3, "f16": 1e-3 + 2**-10}
# bf16 against f32, mean NLL of some 600 tokens: on the CPU SmolLM2 differs by 2e-3, and no tiny model differs by more.
BF16 = 2e-2
SINGULAR = 1e-3  # of the largest value; they follow from second moments of f32 states
SECONDS = 300  # for one program


class Failed(Exception):
    """A program with an unexpected result, described in one line."""


class Checks:
    """Checks of one model; lines are kept, to be printed together."""

    def __init__(self, name):
        self.name, self.lines, self.failed, self.worst, self.count = name, [], [], {}, 0  # worst: name -> value, bound

    def holds(self, what, good, text):
        self.count += 1
        self.lines.append(f"{'ok  ' if good else 'FAIL'} {self.name:10} {what}: {text}")
        if not good:
            self.failed.append(what)

    def below(self, what, value, bound, where=""):
        self.worst[what] = [value, bound]
        self.holds(what, math.isfinite(value) and value <= bound, f"{value:.2e}, at most {bound:.2e}" + (f" ({where})" if where else ""))

    def summary(self):
        share = {what: value / bound for what, (value, bound) in self.worst.items() if math.isfinite(value)}
        nearest = max(share, key=share.get, default=None)
        tail = f"; nearest to its bound: {nearest}, {self.worst[nearest][0]:.2e} of {self.worst[nearest][1]:.2e}" if nearest else ""
        return f"{'FAIL' if self.failed else 'ok  '} {self.name:10} {self.count - len(self.failed)} of {self.count} checks hold{tail}"

    def attempt(self, what, work):
        """Runs a check. A check that cannot run counts as failed; the other checks continue."""
        try:
            work()
        except (Failed, OSError, KeyError, IndexError, TypeError, ValueError, subprocess.TimeoutExpired) as error:
            self.holds(what, False, f"{type(error).__name__}: {error}")


class Model:
    def __init__(self, options, path, scratch):
        self.options, self.real = options, path.endswith(".gguf")
        self.full = path == options.models[0]  # every check; the other models take the same code paths
        self.name = "SmolLM2" if self.real else os.path.splitext(os.path.basename(path.rstrip("/")))[0]
        self.folder = os.path.join(scratch, self.name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.checks, self.path = Checks(self.name), path
        if path.endswith(".json"):
            self.path = self.at("model")
            self.run("make_model", path, self.path)
        self.info = json.loads(self.run("kvspectrum", "info", self.path, "--json").stdout)
        if self.real:
            self.text = ["--text", options.text]
        else:
            self.text = ["--tokens-file", self.at("tokens.jsonl")]
            numbers = random.Random(5)
            with open(self.at("tokens.jsonl"), "w", encoding="utf-8") as file:
                ids = [numbers.randrange(self.info["geometry"]["vocabulary"]) for _ in range(4096)]
                file.write(json.dumps(ids) + "\n")

    def at(self, name):
        return os.path.join(self.folder, name)

    def run(self, program, *words, **variables):
        done = subprocess.run([os.path.join(self.options.bin, program), *map(str, words)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=SECONDS, env={**os.environ, **variables}, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
            raise Failed(f"{program} {' '.join(map(str, words[:1]))} ended with {done.returncode}: {last}")
        return done

    def words(self, command, device, window, documents):
        return [command, "--model", self.path, *self.text, "--window", window, "--documents", documents, "--device", device]

    def each(self, program, command, window, documents, *more, out=None):
        """Runs the command on both devices. Returns the outputs' paths, the device's first."""
        paths = []
        for role, device in (("device", self.options.device), ("cpu", "cpu")):
            paths.append(self.at(f"{role}-{out}"))
            option = "--out-dir" if command == "spectrum" else "--out"
            # A trial without a GPU compares two orders of summation: oneDNN's for this processor and for an old one.
            variables = {"DNNL_MAX_CPU_ISA": "SSE41"} if (role, device) == ("device", "cpu") else {}
            self.run(program, *self.words(command, device, window, documents), "--quiet", option, paths[-1], *more, **variables)
        return paths

    def json_of(self, path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    # ---- the checks ----

    def captures(self, store):
        ours, reference = self.each("kvspectrum", "capture", 300, 2, "--states", "q_pre,k_pre,k_post,v", "--state-dtype", store, out=f"{store}.h5")
        for path in (ours, reference):
            self.run("kvspectrum", "verify", path)
        found = json.loads(self.run("gpu_compare", ours, reference).stdout)
        self.checks.below(f"capture {store}, NLL", found["nll"]["value"], NLL, found["nll"]["at"])
        for kind, worst in found["states"].items():
            self.checks.below(f"capture {store}, {kind}, a layer", worst["norm"]["value"], NORM[store], worst["norm"]["at"])
            self.checks.below(f"capture {store}, {kind}, a head's token", worst["row"]["value"], ROW[store], worst["row"]["at"])

    def spectrum(self):
        for transform in ("dct", "dft") if self.real else ("dct",):
            ours, reference = self.each("kvspectrum", "spectrum", 512 if self.real else 250, 2, "--transform", transform, out=f"spectrum-{transform}")
            found = json.loads(self.run("gpu_compare", ours + "/spectrum.h5", reference + "/spectrum.h5").stdout)
            self.checks.below(f"spectrum {transform}, power of a bin", found["relative"]["value"], SPECTRUM, found["relative"]["at"])
            self.energies(transform, *(self.json_of(path + "/spectrum.json")["states"] for path in (ours, reference)))

    def energies(self, transform, ours, reference):
        worst = 0.0
        for state, sets in reference.items():
            for tokens in ("all_tokens", "without_sinks"):
                for a, b in zip(ours[state][tokens]["with_dc"]["layers"]["energy"], sets[tokens]["with_dc"]["layers"]["energy"], strict=True):
                    worst = max(worst, abs(a - b) / b)
        self.checks.below(f"spectrum {transform}, energy of a layer", worst, SPECTRUM)

    def elitekv(self):
        chunks = self.info["rope"][0]["rotary_dim"] // 2
        more = ["--norm", "2", "--elite", max(1, chunks // 2)]
        if self.real:
            more += ["--rank", "192"]
        ours, reference = self.each("kvcalibrate", "elitekv", 300, 2, *more, out="elite.json")
        for path in (ours, reference):
            self.run("kvcalibrate", "validate", path)
        a, b = self.json_of(ours), self.json_of(reference)
        picks = [(n, h) for n, layer in enumerate(b["parameters"]["elite"]) for h, head in enumerate(layer)]
        differ = [place for place in picks if a["parameters"]["elite"][place[0]][place[1]] != b["parameters"]["elite"][place[0]][place[1]]]
        first = f", first in layer and head {differ[0]}" if differ else ""
        self.checks.holds("elitekv, picks", picks and not differ, f"{len(differ)} of {len(picks)} heads differ, expected 0{first}")
        if self.real:
            worst = 0.0
            for x, y in zip(a["calibration"]["singular_values"], b["calibration"]["singular_values"], strict=True):
                worst = max(worst, max(abs(p - q) for p, q in zip(x, y, strict=True)) / y[0])
            self.checks.below("elitekv, singular values", worst, SINGULAR)
            self.evaluations("eval with the config", "--config", reference)

    def faedkv(self):
        layers = self.info["geometry"]["layers"]
        for protocol in ("in-place", "continuation"):
            ours, reference = self.each("kvcalibrate", "faedkv", 256, 1, "--protocol", protocol, "--chunks", 4, "--layers",
                                        f"0,{layers // 2},{layers - 1}" if layers > 2 else "all", out=f"{protocol}.json")
            for path in (ours, reference):
                self.run("kvcalibrate", "validate", path)
            a, b = (self.json_of(path)["calibration"]["ablation"]["delta"] for path in (ours, reference))
            worst = max(abs(p - q) for x, y in zip(a, b, strict=True) for p, q in zip(x, y, strict=True))
            self.checks.below(f"faedkv {protocol}, change of perplexity", worst, DELTA)

    def evaluations(self, what, *how):
        ours, reference = self.each("kvcalibrate", "eval", 512 if self.real else 300, 2, *how, out=what.replace(" ", "-") + ".json")
        a, b = self.json_of(ours)["nll_mean"], self.json_of(reference)["nll_mean"]
        self.checks.below(f"{what}, mean NLL", abs(a - b), NLL)
        return b

    def evaluate(self):
        reference = self.evaluations("eval", "--method", "full")
        out = self.at("bf16.json")
        self.run("kvcalibrate", *self.words("eval", self.options.device, 512 if self.real else 300, 2), "--quiet", "--dtype", "bf16",
                 "--method", "full", "--out", out)
        self.checks.below("eval in bf16, mean NLL from f32", abs(self.json_of(out)["nll_mean"] - reference), BF16)

    def device_chosen(self):
        done = self.run("kvspectrum", *self.words("capture", "auto", 64, 1), "--out", self.at("auto.h5"))
        line = next((line for line in done.stderr.splitlines() if "estimate:" in line), "no estimate")
        self.checks.holds("--device auto", re.search(rf" on {self.options.device}( \(|$)", line) is not None, line)

    def capture_words(self, out, *more):
        return [*self.words("capture", self.options.device, 256, 24), "--states", "q_pre,k_pre,k_post,v", "--state-dtype", "f16", "--out", self.at(out), *more]

    def streamed(self):
        budget = self.info["memory"]["f32"]["weights"] // 2
        done = self.run("kvspectrum", *self.capture_words("streamed.h5", "--weights-budget", budget))
        self.checks.holds("--weights-budget streams layers", "layers are read from disk" in done.stderr, f"a budget of {budget} bytes")
        same = filecmp.cmp(self.at("streamed.h5"), self.at("whole.h5"), shallow=False)
        self.checks.holds("--weights-budget, capture", same, "the same bytes" if same else "other bytes")

    def killed(self):
        """Kills with SIGKILL once the journal holds a document, then runs --resume."""
        for lines in (6, 3, 2):
            for suffix in ("", ".partial", ".journal", ".lock", ".manifest.json"):
                if os.path.exists(self.at("killed.h5" + suffix)):
                    os.remove(self.at("killed.h5" + suffix))
            words = [os.path.join(self.options.bin, "kvspectrum"), *map(str, self.capture_words("killed.h5", "--quiet"))]
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until = time.monotonic() + SECONDS
            while child.poll() is None and time.monotonic() < until and self.journal_lines() < lines:
                time.sleep(0.001)
            child.send_signal(signal.SIGKILL)
            if child.wait() == -signal.SIGKILL and self.journal_lines() > 1:
                break
        else:
            raise Failed("the capture ended before it could be killed")
        committed = self.journal_lines()
        self.run("kvspectrum", *self.capture_words("killed.h5", "--quiet", "--resume"))
        self.run("kvspectrum", "verify", self.at("killed.h5"))
        same = filecmp.cmp(self.at("killed.h5"), self.at("whole.h5"), shallow=False)
        self.checks.holds("killed and resumed, capture", same, f"killed at {committed} journal lines; {'the same' if same else 'other'} bytes")

    def journal_lines(self):
        try:
            with open(self.at("killed.h5.journal"), "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def whole(self):
        self.run("kvspectrum", *self.capture_words("whole.h5", "--quiet"))
        self.checks.attempt("--weights-budget", self.streamed)
        self.checks.attempt("killed and resumed", self.killed)

    def all(self):
        self.checks.attempt("capture f32", lambda: self.captures("f32"))
        self.checks.attempt("elitekv", self.elitekv)
        self.checks.attempt("faedkv", self.faedkv)
        self.checks.attempt("eval", self.evaluate)
        if self.full:
            self.checks.attempt("capture f16", lambda: self.captures("f16"))
            self.checks.attempt("spectrum", self.spectrum)
            self.checks.attempt("--device auto", self.device_chosen)
            self.checks.attempt("whole capture", self.whole)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.checks


def check_model(options, path):
    try:
        return Model(options, path, options.scratch).all()
    except (Failed, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
        checks = Checks(os.path.basename(path))
        checks.holds("model", False, str(error))
        return checks


def main():
    a = argparse.ArgumentParser()
    a.add_argument("bin")
    a.add_argument("models", nargs="+")
    a.add_argument("--text")
    a.add_argument("--device", default="cuda")
    a.add_argument("--scratch", default="/dev/shm/kvs-gpu")
    a.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 4))
    a.add_argument("--verbose", action="store_true")
    o = a.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // o.jobs)))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for checks in pool.map(lambda path: check_model(o, path), o.models):
            for line in checks.lines:
                if o.verbose or line.startswith("FAIL"):
                    print(line)
            print(checks.summary())
            print(json.dumps({"section": "programs", "model": checks.name, "device": o.device, "checks": checks.count,
                              "failed": checks.failed, "worst": checks.worst}), flush=True)
            failed += len(checks.failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
