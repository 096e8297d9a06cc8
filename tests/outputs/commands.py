# SPDX-License-Identifier: Apache-2.0
"""The commands whose outputs are compared: every command of both programs, every method, storage type, task and format.

Paths are relative to a side's folder; inputs.py writes ../inputs. `steps()` yields the commands in an order in which
each finds the outputs that it reads, in the spelling of the oldest compared build (renames.py has the newer).
"""
import dataclasses

TINY = ["--model", "../inputs/model"]
TOKENS = ["--tokens-file", "../inputs/tokens.jsonl", "--window", "48"]
ALONE = ["--threads", "1", "--quiet"]
ON_TOKENS = TINY + TOKENS + ALONE
RAYS = TINY + ["--text", "../inputs/rays.txt", "--window", "128"] + ALONE

STORES = ["none", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "fp8", "fp8_e5m2", "nvfp4",
          "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "turboquant_k8v4", "turboquant_4bit_nc",
          "turboquant_k3v4_nc",
          "turboquant_3bit_nc", "quarot4"]

METHODS = {
    "full": "",
    "full_mixed": "full store_k=q8_0 store_v=q4_0 rotate=off",
    "full_layers": "full store=q8_0,q4_0,f16,none layout=hf",
    "full_fp8": "full store=fp8",
    "full_scales": "full store=fp8 scale_k=0.5 scale_v=2 layers=0,2",
    "full_skip": "full store=turboquant_4bit_nc store_skip_layers=1",
    "streaming": "streaming cache_size=16 sinks=2",
    "streaming_q8_0": "streaming cache_size=16 sinks=2 store=q8_0",
    "dropping": "dropping cache_size=16 sinks=2 gamma=0.5",
    "dropping_post": "dropping cache_size=16 sinks=2 gamma=0.25 rope=post store=q4_0",
    "freqkv": "freqkv cache_size=16 sinks=2 gamma=0.5",
    "freqkv_layers": "freqkv cache_size=16,20,24,28 sinks=2 gamma=0.5,0.5,0.25,0.25 recent=4",
    "freqkv_high": "freqkv cache_size=16 sinks=2 band=high rescale=off",
    "freqkv_post": "freqkv cache_size=16 sinks=2 rope=post iterate=off",
    "freqkv_q8_0": "freqkv cache_size=16 sinks=2 store=q8_0",
    "faedkv": "faedkv prefix=32 sinks=2 recent=6 chunks=4 kept=0-1",
    "faedkv_apart": "faedkv prefix=32 sinks=2 recent=6 chunks=4 kept=0 kept_v=0-2 age=on",
    "faedkv_pre": "faedkv prefix=32 sinks=2 recent=6 chunks=4 kept=0-1 key_space=k_pre",
    "faedkv_literal": "faedkv prefix=32 sinks=2 recent=6 chunks=4 kept=0-1 update=literal age=on",
    "lagkv": "lagkv sinks=2 lag=8 ratio=0.25",
    "lagkv_local": "lagkv sinks=2 lag=8 ratio=0.25 variant=local value_weight=0.5",
    "lagkv_l2": "lagkv sinks=2 lag=8 ratio=0.25 variant=l2 store=q8_0",
    "lagkv_whole": "lagkv sinks=2 lag=8 ratio=0.25 prefix=32 prefill=whole",
    "h2o": "h2o cache_size=16 recent=8",
    "h2o_q4_0": "h2o cache_size=16 recent=8 store=q4_0",
    "tova": "tova cache_size=16",
    "tova_q8_0": "tova cache_size=16 store=q8_0",
    "snapkv": "snapkv prefix=32 cache_size=16 window=4 kernel=3",
    "snapkv_q8_0": "snapkv prefix=32 cache_size=16 window=4 store=q8_0",
    "l2norm": "l2norm prefix=32 ratio=0.25 skip_layers=0",
    "kivi": "kivi bits=2 group=16 residual=16",
    "kivi_4": "kivi bits=4 group=16 residual=16",
    "gqa": "gqa heads=1",
    "gqa_q8_0": "gqa heads=1 store=q8_0",
}

NOISE_TASKS = ["passkey", "needle", "ruler-niah-single-1", "ruler-niah-multikey-2", "ruler-niah-multikey-3", "ruler-vt",
               "ruler-cwe", "ruler-fwe"]
TEXT_TASKS = ["ruler-niah-single-2", "ruler-niah-single-3", "ruler-niah-multikey-1", "ruler-niah-multivalue",
              "ruler-niah-multiquery"]


@dataclasses.dataclass
class Step:
    """A run of a command. Its outputs are below the folder `name`."""
    name: str
    program: str
    words: list
    left_out: tuple = ()  # keys that differ from run to run, in addition to those of renames.py

    def needs(self):
        """The folders of other steps that its arguments name."""
        firsts = {word.split("/")[0] for word in self.words if "/" in word}
        return firsts - {"", "..", self.name, *STORES}


def spectrum(name, command, *more, on=ON_TOKENS):
    return Step(name, "kvspectrum", [command, *on, *more])


def calibrate(name, command, *more, on=ON_TOKENS):
    return Step(name, "kvcalibrate", [command, *on, *more])


def evaluate(name, *how, on=ON_TOKENS):
    return calibrate("eval_" + name, "eval", *how, "--out", f"eval_{name}/eval.json", on=on)


def settings(text, name):
    """Returns the options of a row of METHODS."""
    method, *values = (text or name).split()
    return ["--method", method, *(["--set", *values] if values else [])]


def analyses():
    yield Step("info", "kvspectrum", ["info", "../inputs/model", "--json"])
    yield Step("info_window", "kvspectrum", ["info", "../inputs/model", "--window", "4096", "--json"])
    yield spectrum("capture", "capture", "--states", "q_pre,k_pre,k_post,v", "--out", "capture/c.h5", "--json")
    yield spectrum("capture_bf16", "capture", "--states", "k_pre,v", "--layers", "1,3", "--store", "bf16", "--out",
                   "capture_bf16/c.h5")
    yield spectrum("capture_split", "capture", "--split", "2", "--out", "capture_split/c.h5", "--json")
    yield Step("merge", "kvspectrum", ["merge", "capture_split/c-00001-of-00002.h5", "capture_split/c-00002-of-00002.h5",
                                       "--out", "merge/c.h5", "--quiet", "--json"])
    yield Step("verify", "kvspectrum", ["verify", "capture/c.h5", "--json"])
    yield spectrum("spectrum", "spectrum", "--out-dir", "spectrum", "--json")
    yield spectrum("spectrum_dft", "spectrum", "--transform", "dft", "--sinks", "2", "--layers", "0,2", "--out-dir",
                   "spectrum_dft")
    yield Step("spectrum_capture", "kvspectrum", ["spectrum", "--capture", "capture/c.h5", "--gain", "off", "--out-dir",
                                                  "spectrum_capture", *ALONE])
    yield Step("spectrum_recomputed", "kvspectrum", ["spectrum", "--capture", "merge/c.h5", "--gain", "on", "--out-dir",
                                                     "spectrum_recomputed", *ALONE])
    yield spectrum("scores", "scores", "--lag", "8", "--sinks", "4", "--out", "scores/o.json", "--json")
    yield spectrum("scores_local", "scores", "--lag", "8", "--sinks", "4", "--variant", "local", "--ratio", "0.5",
                   "--document", "1", "--layers", "1", "--out", "scores_local/o.json")
    yield spectrum("perturb", "perturb", "--wordnet", "../inputs/wordnet", "--share", "0.05", "--seed", "3", "--out",
                   "perturb/o.json", "--json", on=RAYS)
    yield spectrum("retain", "retain", "--keep", "0.75,0.5", "--prefix", "32", "--out", "retain/o.json", "--json")
    yield spectrum("retain_in_place", "retain", "--keep", "0.5", "--protocol", "in-place", "--transform", "dct", "--key-space", "k_post", "--layers", "0,1", "--out", "retain_in_place/o.json")


def ablations():
    grid = ["--chunks", "4", "--sinks", "2", "--recent", "3"]
    yield calibrate("faedkv", "faedkv", *grid, "--out", "faedkv/o.json", "--json")
    yield calibrate("faedkv_in_place", "faedkv", "--chunks", "4", "--sinks", "0", "--recent", "0", "--protocol", "in-place",
                    "--transform", "dct", "--spectrum", "full", "--key-space", "k_pre", "--layers", "1-2", "--out",
                    "faedkv_in_place/o.json")
    yield calibrate("faedkv_race", "faedkv", *grid, "--passes", "90", "--sweep", "2,3", "--seed", "5", "--out",
                    "faedkv_race/o.json")
    yield calibrate("faedkv_budget", "faedkv", "--budget", "75%", "--by-layer", "1", "--held-windows", "2:", "--windows",
                    "0:2", "--out", "faedkv_budget/o.json", "--json")
    yield spectrum("retain_chunks", "retain", "--config", "faedkv/o.json", "--prefix", "32", "--out",
                   "retain_chunks/o.json")


def elite():
    out = ["--elite", "2"]
    factors = [*out, "--disjoint", "on", "--rank", "32"]
    yield calibrate("elitekv", "elitekv", *out, "--out", "elitekv/o.json", "--json")
    yield calibrate("elitekv_rank", "elitekv", *factors, "--out", "elitekv_rank/o.json", "--json")
    yield calibrate("elitekv_separate", "elitekv", *factors, "--factorization", "separate", "--split", "sqrt", "--outputs",
                    "fitted", "--out", "elitekv_separate/o.json")
    yield calibrate("elitekv_plain", "elitekv", *factors, "--whiten", "off", "--queries", "model", "--out",
                    "elitekv_plain/o.json")
    yield calibrate("elitekv_norm", "elitekv", *out, "--norm", "1", "--granularity", "query-head", "--out",
                    "elitekv_norm/o.json")
    for baseline in ("uniform", "contribution", "high", "low"):
        yield calibrate("elitekv_" + baseline, "elitekv", *out, "--baseline", baseline, "--out",
                        f"elitekv_{baseline}/o.json")
    yield calibrate("elitekv_capture", "elitekv", *out, "--capture", "capture/c.h5", "--out", "elitekv_capture/o.json",
                    on=ALONE)
    yield calibrate("elitekv_ratio", "elitekv", "--ratio", "0.25", "--rank-step", "16", "--held-out", "2",
                    "--factorization", "any", "--out", "elitekv_ratio/o.json", "--json")
    yield calibrate("elitekv_layers", "elitekv", "--ratio", "0.25", "--by-layer", "1", "--rank-step", "16", "--held-out",
                    "2", "--out", "elitekv_layers/o.json")


def budgets():
    held = ["--held-windows", "2:", "--windows", "0:2"]
    for method in ("freqkv", "lagkv"):
        yield calibrate(method + "_budget", method, "--budget", "60%", *held, "--out", f"{method}_budget/o.json", "--json")
        yield calibrate(method + "_layers", method, "--budget", "60%", *held, "--by-layer", "1", "--set", "store=q8_0",
                        "--seed", "2", "--out", f"{method}_layers/o.json")
    yield calibrate("freqkv_bytes", "freqkv", "--budget", "800B a token", *held, "--out", "freqkv_bytes/o.json")
    yield calibrate("store", "store", "--fp8-scale", "max", "--out", "store/o.json", "--json")
    yield calibrate("store_best", "store", "--types", "fp8/nvfp4", "--out", "store_best/o.json", "--json")
    yield calibrate("store_head", "store", "--fp8-scale", "ema", "--per", "head", "--out", "store_head/o.json")
    yield calibrate("store_pair", "store", "--fp8-scale", "max", "--per", "pair", "--out", "store_pair/o.json")
    yield calibrate("store_engine", "store", "--engine", "ik_llama.cpp", "--budget", "40%", *held, "--by-layer", "1",
                    "--out", "store_engine/o.json", "--json")
    yield calibrate("store_budget", "store", "--budget", "40%", *held, "--by-layer", "1", "--out", "store_budget/o.json",
                    "--json")
    coder = ["--budget", "50%", "--sinks", "1", "--recent", "2"]
    yield calibrate("transform", "transform", *coder, "--out", "transform/o.json", "--json")
    yield calibrate("transform_head", "transform", "--budget", "60%", "--rows", "head", "--out", "transform_head/o.json")
    yield calibrate("kvtc", "kvtc", *coder, "--block", "4", "--out", "kvtc/o.json", "--json")
    yield calibrate("triattention", "triattention", "--set", "cache_size=16", "interval=4", "--out",
                    "triattention/o.json", "--json")
    yield calibrate("oscar", "oscar", "--sinks", "1", "--recent", "4", "--out", "oscar/o.json", "--json")
    yield calibrate("transform_costs", "transform", "--budget", "30%", "--costs", "transform/o.json", "--outliers", "0.02",
                    "--length", "64", "--out", "transform_costs/o.json")


def evaluations():
    for name, text in METHODS.items():
        yield evaluate(name, *settings(text, name), "--save-config", f"eval_{name}/saved.json")
    for store in STORES[1:]:
        yield evaluate("store_" + store, "--method", "full", "--set", "store=" + store)
    for name in ("faedkv", "faedkv_budget", "elitekv_rank", "elitekv_separate", "elitekv_ratio", "elitekv_layers",
                 "freqkv_budget", "freqkv_layers", "lagkv_budget", "lagkv_layers", "store", "store_head", "store_budget",
                 "transform", "transform_head", "transform_costs", "kvtc", "triattention", "oscar"):
        prefix = ["--set", "prefix=32"] if name.startswith("faedkv") else []
        yield evaluate("of_" + name, "--config", name + "/o.json", *prefix)
    yield evaluate("of_elitekv_q8_0", "--config", "elitekv_rank/o.json", "--set", "store=q8_0")
    yield evaluate("of_triattention_q8_0", "--config", "triattention/o.json", "--set", "store=q8_0", "recent=4")
    yield evaluate("of_saved", "--config", "eval_freqkv_layers/saved.json", "--set", "recent=2")
    yield evaluate("stride", *settings(METHODS["lagkv"], ""), "--stride", "24")
    yield evaluate("decode", *settings(METHODS["h2o"], ""), "--decode", "8", "--against", "none")
    yield evaluate("bf16", *settings(METHODS["kivi"], ""), "--dtype", "bf16", "--documents", "4")
    yield evaluate("bos", *settings(METHODS["streaming"], ""), "--bos", "on")
    yield evaluate("text", *settings(METHODS["freqkv"], ""), "--windows", "1:3", on=RAYS)
    yield evaluate("trace", *settings(METHODS["streaming"], ""), "--trace", "24", "--trace-out",
                   "eval_trace/t.traces.json")
    yield calibrate("eval_printed", "eval", *settings(METHODS["snapkv"], ""), "--json")


def questions():
    ask = ["--answer-tokens", "4", "--lengths", "2000"]
    on = TINY + ALONE
    full, lagkv = settings("", "full"), settings(METHODS["lagkv"], "")
    for task in NOISE_TASKS + TEXT_TASKS:
        text = ["--text", "../inputs/other.txt"] if task in TEXT_TASKS else []
        depths = ["--depths", "0,100"] if task in ("passkey", "needle") else []
        yield evaluate("task_" + task, "--task", task, *ask, *depths, *text, *lagkv, on=on)
    yield evaluate("task_full", "--task", "needle", *ask, "--samples", "2", "--seed", "4", *full, on=on)
    yield evaluate("task_whole", "--task", "passkey", *ask, "--prefill", "context", *lagkv, on=on)
    yield evaluate("task_snapkv", "--task", "ruler-vt", *ask, "--method", "snapkv", "--set", "cache_size=80", "window=4",
                   on=on)
    yield evaluate("task_file", "--task", "../inputs/questions.jsonl", "--answer-tokens", "4", *lagkv, on=on)
    yield evaluate("task_transform", "--task", "needle", *ask, "--depths", "50", "--config", "transform/o.json", on=on)


def comparisons():
    plain = ["--budgets", "75%,50%,25%", "--decode", "0"]
    every = ["--methods", "full,streaming,dropping,freqkv,lagkv,h2o,snapkv,l2norm,faedkv,kivi"]
    yield calibrate("compare", "compare", *plain, *every, "--full", "--best-dir", "compare/best", "--out", "compare/o.json",
                    "--json")
    yield calibrate("compare_race", "compare", *plain, *every, "--prefix", "24", "--losses", "2%,50%", "--compose", "none",
                    "--stores", "q8_0/q4_0,quarot4", "--config", "elitekv_rank/o.json", "--out", "compare_race/o.json")
    text = ["--calibration-text", "../inputs/other.txt", "--calibration-window", "64", "--calibration-documents", "4"]
    yield calibrate("compare_calibrated", "compare", "--budgets", "50%", "--decode", "0", *text, "--full", "--methods",
                    "full,streaming,freqkv,lagkv,faedkv,elitekv,transform,transform-head,kvtc,triattention", "--stores", "q4_0", "--best-dir",
                    "compare_calibrated/best", "--out", "compare_calibrated/o.json")
    yield calibrate("compare_task", "compare", *plain, "--task", "needle", "--lengths", "600", "--depths", "50",
                    "--answer-tokens", "4", "--methods", "full,streaming,lagkv,snapkv", "--stores", "q4_0", "--compose",
                    "q8_0", "--out", "compare_task/o.json")
    yield calibrate("recommend", "recommend", "--engine", "vllm", "--context", "96", "--text", "../inputs/rays.txt",
                    "--max-kl", "5", "--out-dir", "recommend/safe", on=TINY + ALONE)


def others():
    yield calibrate("generate", "generate", "--prompt", "all the rays", "--tokens", "24", "--json", "--method", "freqkv",
                    "--set", "cache_size=16", on=TINY + ALONE)
    yield calibrate("generate_config", "generate", "--prompt", "ice is", "--tokens", "24", "--json", "--config",
                    "elitekv_rank/o.json", on=TINY + ALONE)
    yield calibrate("latency", "latency", "--lengths", "16,32", "--decode", "2", "--repeats", "1", "--cache",
                    "streaming cache_size=8", "lagkv sinks=2 lag=8", "--config", "elitekv_rank/o.json", "--out",
                    "latency/o.json", "--json")
    yield calibrate("latency_printed", "latency", "--lengths", "8", "--decode", "1", "--repeats", "1", "--json")
    for model in ("llama2-7b", "llama2-13b", "llama3-8b", "qwen2.5-7b", "smollm2-135m"):
        yield Step("cost_" + model, "kvcalibrate", ["cost", "--geometry", model, "--json"])
    yield Step("cost_model", "kvcalibrate", ["cost", *TINY, "--tokens", "64,128", "--cache-size", "32", "--lag", "8",
                                             "--json"])
    for name in ("elitekv_rank/o.json", "transform/o.json", "faedkv/o.json", "lagkv_layers/o.json",
                 "eval_full_scales/saved.json"):
        yield Step("validate_" + name.split("/")[0], "kvcalibrate", ["validate", name, "--json"])


def export(name, to, config, out, *more, model=TINY):
    return Step("export_" + name, "kvcalibrate", ["export", "--to", to, "--config", config, *model, "--out",
                                                  f"export_{name}/{out}", "--quiet", "--json", *more])


def exports():
    elitekv = "elitekv_rank/o.json"
    yield export("elitekv", "elitekv", elitekv, "m")
    yield export("elitekv_ranks", "elitekv-rank", elitekv, "m.pkl")
    yield export("mha2mla", "mha2mla-rank", elitekv, "m.pt")
    yield export("triattention", "triattention", "triattention/o.json", "m.pt")
    yield export("youtu", "hf-youtu", elitekv, "m", "--dtype", "bf16")
    yield export("deepseek", "hf-deepseek", elitekv, "m")
    yield export("gguf", "gguf-deepseek2", elitekv, "m.gguf", "--dtype", "bf16")
    yield export("fitted", "elitekv", "elitekv_separate/o.json", "m")
    yield export("vllm", "vllm-fp8", "store/o.json", "m")
    yield export("overlay", "vllm-fp8", "store/o.json", "m", "--overlay")
    # It changes the folder of a model, which both builds read at the same time: tests/cli/overlay_test.cpp runs it.
    yield Step("overlay", "kvcalibrate", ["overlay", "undo", "--model", "export_overlay/m", "--help"])
    # It reads a file of llama.cpp: tests/cli/slots_test.cpp runs it.
    yield Step("slots", "kvcalibrate", ["slots", "pack", "--help"])
    # Its output describes the machine at one moment: tests/cli/shell_test.cpp runs it.
    yield Step("doctor", "kvspectrum", ["doctor", "--help"])
    yield export("sglang", "sglang-scales", "store_pair/o.json", "m.json", "--tensor-parallel", "2")
    yield export("kivi", "hf-generation", "eval_kivi_4/saved.json", "m.json")
    yield export("fp8", "hf-generation", "eval_full_fp8/saved.json", "m.json")
    yield export("map", "modelopt-map", "eval_full_fp8/saved.json", "m")
    yield export("vllm_flags", "vllm-flags", "eval_full_fp8/saved.json", "m.yaml")


def reports():
    """Makes one page of all results in the folder; its findings as JSON."""
    folders = ["spectrum", "scores", "perturb", "retain", "faedkv", "elitekv_rank", "eval_full", "eval_lagkv",
               "eval_task_needle", "compare", "latency"]
    yield Step("report", "kvspectrum", ["report", *(folder + "/" for folder in folders), "--out", "report/r.html",
                                        "--quiet", "--json"], left_out=("bytes",))


def real_model(path):
    """Runs on a GGUF file of a real model, which has a tokenizer and blocks of codes."""
    model = ["--model", path]
    on = model + ["--text", "../inputs/other.txt", "--window", "64", "--documents", "2"] + ALONE
    yield Step("real_info", "kvspectrum", ["info", path, "--json"])
    yield spectrum("real_scores", "scores", "--lag", "8", "--sinks", "4", "--out", "real_scores/o.json", on=on)
    yield calibrate("real_eval", "eval", "--method", "full", "--set", "store=q8_0", "--save-config", "real_eval/saved.json",
                    "--out", "real_eval/eval.json", on=on)
    yield calibrate("real_elitekv", "elitekv", "--elite", "2", "--disjoint", "on", "--out", "real_elitekv/o.json", on=on)
    yield export("llama_cpp", "llama-cpp", "real_eval/saved.json", "m.ini", model=model)


def steps(real=None):
    """@param real  path of a real model's GGUF file, or None"""
    for group in (analyses, ablations, elite, budgets, evaluations, questions, comparisons, others, exports, reports):
        yield from group()
    if real:
        yield from real_model(real)
