#!/usr/bin/env python3
"""Sets the lines that gpu_speed, gpu_agreement and transformers_gpu.py print beside what is aimed at.

Usage: gpu_report.py RESULTS.jsonl REPORT.json      (the table goes to stdout)
"""
import json
import sys


def rows_of(results, model):
    """(what, found, aimed at, holds); a speed whose measurements are missing does not hold."""
    by = {r["section"]: r for r in results if r.get("model") == model}
    peak = max((r.get("peak_tflops", r.get("tflops", 0)) for r in results if r["section"] in ("gemm", "torch_gemm")), default=0)
    get = lambda section, key: by[section][key]
    rows = []

    def row(what, needs, compute, aim, holds, text="{:.2f}"):
        if all(n in by for n in needs):
            value = compute()
            rows.append((what, text.format(value), aim, bool(holds(value))))
        elif "agreement" not in by and "machine" not in by:
            rows.append((what, "unmeasured", aim, False))

    row("prefill, of Transformers' tokens/s", ["prefill", "torch_prefill"],
        lambda: get("prefill", "tokens_per_second") / get("torch_prefill", "tokens_per_second"), ">= 1.2", lambda v: v >= 1.2)
    if peak:
        row("prefill, of the measured GEMM peak", ["prefill"], lambda: get("prefill", "tflops") / peak, ">= 0.55", lambda v: v >= 0.55)
    row("mean NLL, from Transformers'", ["prefill", "torch_prefill"],
        lambda: abs(get("prefill", "nll_mean") - get("torch_prefill", "nll_mean")), "<= 0.02 (bf16)", lambda v: v <= 0.02, "{:.4f}")
    row("capture in f16, of max(1.3 forward, parallel pwrite)", ["capture"],
        lambda: get("capture", "seconds") / max(1.3 * get("capture", "forward_seconds"), get("capture", "parallel_pwrite_seconds")),
        "<= 1", lambda v: v <= 1)
    row("RoPElite p = 2 with its forward, of one forward", ["ropelite"],
        lambda: get("ropelite", "seconds") / get("ropelite", "forward_seconds"), "<= 1.5", lambda v: v <= 1.5)
    row("FAEDKV ablation, hook loop / ours (both scaled from a part)", ["ablation", "torch_ablation"],
        lambda: get("torch_ablation", "seconds_scaled_to_all") / get("ablation", "seconds_scaled_to_all"), ">= 2", lambda v: v >= 2)
    row("J-LRD of all layers, seconds (scaled from a part)", ["jlrd"], lambda: get("jlrd", "seconds_scaled_to_all"), "<= 60", lambda v: v <= 60, "{:.1f}")
    row("batched DCT, of copy bandwidth", ["dct"], lambda: get("dct", "gb_per_second") / get("dct", "copy_gb_per_second"), ">= 0.6", lambda v: v >= 0.6)
    if "agreement" in by:
        r = by["agreement"]
        for key, aim in (("nll", 2e-3), ("spectrum", 1e-3), ("delta", 2e-3), ("streamed", 0)):
            rows.append((f"CPU and CUDA in f32: {key}" if key != "streamed" else "streamed layers, NLL from that of layers in memory", f"{r[key]:.2e}", f"<= {aim:g}", r[key] <= aim))
        rows.append(("CPU and CUDA in f32: heads whose picks differ", str(r["picks_differ"]), f"0 of {r['heads']}", r["picks_differ"] == 0))
    return rows


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        results = [json.loads(line) for line in file if line.startswith("{")]
    report, missed = [], 0
    for model in dict.fromkeys(r["model"] for r in results):
        rows = rows_of(results, model)
        if not rows:
            continue
        print(f"\n{model}")
        for what, found, aim, holds in rows:
            print(f"  {'ok  ' if holds else 'MISS'} {what:62} {found:>10}   {aim}")
            report.append({"model": model, "what": what, "found": found, "aim": aim, "holds": holds})
            missed += not holds
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump({"rows": report, "results": results}, file, indent=1)
        file.write("\n")
    print(f"\n{len(report) - missed} of {len(report)} lines hold; all numbers: {sys.argv[2]}")


if __name__ == "__main__":
    main()
