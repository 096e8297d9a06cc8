#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the results of gpu-test.sh with the targets, and both with the ceilings of the GPU.

Usage: gpu_report.py REPORT.json RESULTS.jsonl ...   (tables on stdout; later results replace earlier ones of their kind)

Also writes gemm_table.txt next to the report: the fastest algorithm of each product whose fastest is not cuBLASLt's
first proposal. A program reads it with KVS_GEMM_TABLE; src/kernels/cuda/gemm_table.h holds the built-in table.
"""
import json
import os
import sys

GEOMETRIES = ("llama2-7b", "llama3-8b", "qwen2.5-7b")
REQUIRED = GEOMETRIES[:2]  # targets name these
WORTH = 1.02  # a proposal that is faster by less than the spread of the times does not replace the first


def newest(results):
    """{model: {section: result}}"""
    by = {}
    for result in results:
        by.setdefault(result.get("model", ""), {})[result["section"]] = result
    return by


class Report:
    def __init__(self):
        self.rows = []

    def line(self, what, aim, needed, compute, text="{:.2f}"):
        """compute() returns (value, whether it meets the target). It is called if all results that it needs exist."""
        if any(result is None for result in needed):
            found, state = "", "unmeasured"
        else:
            value, met = compute()
            found, state = text.format(value), "met" if met else "NOT MET"
        self.rows.append({"what": what, "aim": aim, "found": found, "state": state})

    def at_most(self, what, bound, needed, compute, text="{:.2f}"):
        self.line(what, "<= " + format(bound, "g"), needed, lambda: (compute(), compute() <= bound), text)

    def at_least(self, what, bound, needed, compute):
        self.line(what, ">= " + format(bound, "g"), needed, lambda: (compute(), compute() >= bound))


def ceilings(by):
    """Returns the highest rates in any run: TFLOP/s of bf16 products of random numbers, GB/s of copies (read and
    written)."""
    results = [result for sections in by.values() for result in sections.values()]
    highest = lambda *keys: max((result[key] for result in results for key in keys if key in result), default=None)
    return {"gemm": highest("peak_tflops", "gemm_tflops"), "copy": highest("copy_gb_per_second", "torch_copy_gb_per_second")}


def correctness(report, by):
    tests, checked = by.get("", {}).get("tests"), by.get("", {}).get("sanitize")
    smoke = by.get("", {}).get("smoke")
    report.line("smoke: pieces that are wrong", "none", [smoke], lambda: (", ".join(smoke["failed"]) or f"none of {len(smoke['seconds'])}", not smoke["failed"]), "{}")
    report.line("operations against the CPU: tests failed", "0 of all", [tests],
                lambda: (f"{tests['failed']} of {tests['tests']}" + (f", {tests['not_run']} not run" if tests["not_run"] else ""), tests["failed"] + tests["not_run"] == 0), "{}")
    report.line("compute-sanitizer on a part of them: tools that found something", "none", [checked],
                lambda: (" ".join(t for t, s in checked["tools"].items() if s != 0) or "none of " + " ".join(checked["tools"]), not any(checked["tools"].values())), "{}")
    real = next((s["agreement"] for m, s in by.items() if "agreement" in s and m.endswith(".gguf")), None)
    for key, bound in (("nll", 2e-3), ("spectrum", 1e-3), ("delta", 2e-3)):
        names = {"nll": "NLL of a token", "spectrum": "power of a bin, relative", "delta": "FAEDKV's change of perplexity"}
        report.at_most(f"SmolLM2, CPU and CUDA, f32: {names[key]}", bound, [real], lambda key=key: real[key], "{:.2e}")
    report.line("SmolLM2: heads whose RoPElite picks (p = 2) differ", "0", [real], lambda: (f"{real['picks_differ']} of {real['heads']}", real["picks_differ"] == 0), "{}")
    report.line("SmolLM2: layers streamed through the device, NLL from that of layers in memory", "0", [real], lambda: (real["streamed"], real["streamed"] == 0), "{:g}")
    runs = {m: s["programs"] for m, s in by.items() if "programs" in s}
    for title, some in (("SmolLM2", [r for m, r in runs.items() if m == "SmolLM2"]), ("tiny models of nine architectures", [r for m, r in runs.items() if m != "SmolLM2"])):
        failed, checks = sum(len(r["failed"]) for r in some), sum(r["checks"] for r in some)
        report.line(f"both programs on both devices, {title}: checks failed", "0 of all", some or [None], lambda f=failed, c=checks: (f"{f} of {c}", f == 0), "{}")


def speeds(report, name, sections, peak):
    get = sections.get
    prefill, torch = get("prefill"), get("torch_prefill")
    report.at_least(f"{name}: prefill, of Transformers' tokens/s", 1.2, [prefill, torch], lambda: prefill["tokens_per_second"] / torch["tokens_per_second"])
    report.at_least(f"{name}: prefill, of the measured bf16 product's peak", 0.55, [prefill, peak], lambda: prefill["tflops"] / peak)
    report.at_most(f"{name}: mean NLL, from Transformers' in bf16", 0.02, [prefill, torch], lambda: abs(prefill["nll_mean"] - torch["nll_mean"]), "{:.4f}")
    products, gemm = (prefill or {}).get("products"), get("gemm")
    report.line(f"{name}: products that cuBLASLt has no algorithm for", "0", [products], lambda: (f"{products['unplanned']} of {products['all']}", products["unplanned"] == 0), "{}")
    tried = [shape for shape in (gemm or {}).get("shapes", ()) if shape.get("proposals_tflops")]
    report.line(f"{name}: proposed algorithms with other bits for exact operands", "0", [tried or None],
                lambda: (f"{sum(s['disagree'] for s in tried)} of {sum(len(s['proposals_tflops']) for s in tried)}", not any(s["disagree"] for s in tried)), "{}")
    capture = get("capture")
    report.at_most(f"{name}: capture, of the slower of 1.3 forward passes and parallel pwrite", 1, [capture],
                   lambda: capture["seconds"] / max(1.3 * capture["forward_seconds"], capture["parallel_pwrite_seconds"]))
    elite = get("ropelite")
    report.at_most(f"{name}: RoPElite p = 2 with its forward pass, of one forward pass", 1.5, [elite], lambda: elite["seconds"] / elite["forward_seconds"])
    ours, loop = get("ablation"), get("torch_ablation")
    report.at_least(f"{name}: FAEDKV 32 x 22, hook loop's time over ours (both timed on a part)", 2, [ours, loop],
                    lambda: loop["seconds_scaled_to_all"] / ours["seconds_scaled_to_all"])
    jlrd, dct = get("jlrd"), get("dct")
    report.at_most(f"{name}: J-LRD of all layers, seconds (timed on {jlrd['layers_timed'] if jlrd else 'some'})", 60, [jlrd], lambda: jlrd["seconds_scaled_to_all"], "{:.1f}")
    report.at_least(f"{name}: batched DCT and inverse, of copy bandwidth", 0.6, [dct], lambda: dct["gb_per_second"] / dct["copy_gb_per_second"])


def figures(name, sections, top):
    """Returns rows for docs/results/performance.md: measurement, ours, Transformers or ceiling, command."""
    get, rows = sections.get, []
    if prefill := get("prefill"):
        torch = get("torch_prefill")
        ratio = f"{torch['tokens_per_second']:,.0f} tokens/s" if torch else ""
        share = f"{prefill['tflops']:.0f} of {top['gemm']:.0f} TFLOP/s" if top["gemm"] else ""
        rows.append((f"{name} prefill, {prefill['tokens']:,} tokens, {prefill['dtype']}", f"{prefill['tokens_per_second']:,.0f} tokens/s", ratio, share))
    for kernel, label in (("own", "own kernel"), ("cudnn", "cuDNN")):
        if "seconds" in (attention := (get("attention") or {}).get(kernel, {})):
            rows.append((f"{name} attention of a layer, {label}", f"{attention['seconds'] * 1e3:.2f} ms (first call {attention['seconds_first']:.2f} s)", "", f"{attention['tflops']:.0f} TFLOP/s"))
    if capture := get("capture"):
        rows.append((f"{name} capture, {capture['bytes'] / 1e9:.2f} GB a document", f"{capture['seconds']:.3f} s (first {capture['seconds_first_document']:.3f} s; end {capture['finish_seconds']:.2f} s)", "",
                     f"forward {capture['forward_seconds']:.3f} s; parallel pwrite {capture['parallel_pwrite_seconds']:.3f} s"))
    if elite := get("ropelite"):
        rows.append((f"{name} RoPElite p = 2, all heads", f"{elite['seconds']:.3f} s (picks {elite['of_which_picks']:.3f} s)", "", f"forward {elite['forward_seconds']:.3f} s"))
    if ablation := get("ablation"):
        loop = get("torch_ablation")
        rows.append((f"{name} FAEDKV in place, a variant of {ablation['tokens']:,} tokens", f"{ablation['seconds_per_variant'] * 1e3:.2f} ms", f"{loop['seconds_per_variant'] * 1e3:.2f} ms" if loop else "", ""))
    if jlrd := get("jlrd"):
        rows.append((f"{name} J-LRD, rank {jlrd['rank']}", f"{jlrd['seconds_scaled_to_all']:.1f} s (scaled)", "", ""))
    if dct := get("dct"):
        rows.append((f"{name} DCT and inverse, 256 heads", f"{dct['gb_per_second']:,.0f} GB/s", "", f"copy {dct['copy_gb_per_second']:,.0f} GB/s"))
    return rows


def products(name, gemm):
    """Returns lines of cuBLASLt's proposals, and the lines of the table for those that pay."""
    lines, table = [], []
    for shape in gemm["shapes"]:
        if rates := shape.get("proposals_tflops"):
            first, best = rates[0], max(rates)
            lines.append(f"{name} {shape['what']:9} {shape['rows']} x {shape['columns']} from {shape['inner']}: first proposal {first:.4g} TFLOP/s, "
                         f"the best of {len(rates)} {best:.4g}, {best / first:.2f} times that")
            if best > WORTH * first and not shape["disagree"]:
                table.append(f"{shape['fastest_entry']}  # {shape['what']}: {best:.4g} TFLOP/s, first proposal {first:.4g}")
    return lines, table


def profile(name, ours, theirs):
    """Returns a table of a layer's operations, ours and Transformers'; either may be None."""
    layer = lambda side: {what: time / side["layers"] * 1e6 for what, time in side["operations"].items() if what not in ("embedding", "head")} if side else {}
    own, other = layer(ours), layer(theirs)
    text = lambda value: f"{value:,.0f}" if value else ""
    lines = [f"| {name}, a layer of {(ours or theirs)['tokens']:,} tokens, µs | kvspectrum | Transformers | of theirs |", "| --- | --- | --- | --- |"]
    rows = [(what, own.get(what), other.get(what)) for what in sorted(own or other, key=own.get if own else other.get, reverse=True)]
    for what, one, two in (*rows, ("a layer", sum(own.values()), sum(other.values()))):
        lines.append(f"| {what} | {text(one)} | {text(two)} | {f'{one / two:.2f}' if one and two else ''} |")
    return lines


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: gpu_report.py REPORT.json RESULTS.jsonl ...")
    results = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            results += [json.loads(line) for line in file if line.startswith("{")]
    by = newest(results)
    top, report = ceilings(by), Report()
    correctness(report, by)
    for name in GEOMETRIES:
        if name in REQUIRED or name in by:
            speeds(report, name, by.get(name, {}), top["gemm"])
    for name, sections in by.items():  # a trial's
        if name not in GEOMETRIES and "prefill" in sections:
            speeds(report, name, sections, top["gemm"])
    machine = by.get("", {}).get("machine", {})
    print(f"\n{machine.get('gpu', 'unknown machine')}, commit {machine.get('commit', 'unknown')}")
    if machine.get("device") == "cpu":
        print("A TRIAL ON THE CPU: the lines show that the steps work, not what a GPU does.")
    for row in report.rows:
        print(f"{row['state']:10} {row['what']:79} {row['found']:>12}   {row['aim']}")
    number = lambda value, unit: f"{value:,.0f} {unit}" if value else "unmeasured"
    print(f"\nceilings, measured: bf16 product {number(top['gemm'], 'TFLOP/s')} on random numbers, copy {number(top['copy'], 'GB/s')} (read and written)")
    print("\n| what | kvspectrum | PyTorch + Transformers | ceiling |\n| --- | --- | --- | --- |")
    for name, sections in by.items():
        for cells in figures(name, sections, top):
            print("| " + " | ".join(cells) + " |")
    table = [f"# {machine.get('gpu', 'unknown machine')}, commit {machine.get('commit', 'unknown')}"]
    for name, sections in by.items():
        if "profile" in sections or "torch_profile" in sections:
            print("\n" + "\n".join(profile(name, sections.get("profile"), sections.get("torch_profile"))))
        lines, entries = products(name, sections["gemm"]) if "gemm" in sections else ([], [])
        table += entries
        if lines:
            print("\n" + "\n".join(lines))
    with open(os.path.join(os.path.dirname(sys.argv[1]), "gemm_table.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(table) + "\n")
    times = [f"{r['name']} {r['seconds']} s" for r in results if r["section"] == "step"]
    print("\nsteps: " + ", ".join(times))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"rows": report.rows, "ceilings": top, "results": results}, file, indent=1)
        file.write("\n")
    count = lambda state: sum(row["state"] == state for row in report.rows)
    print(f"{count('met')} lines met, {count('NOT MET')} not met, {count('unmeasured')} unmeasured; all numbers: {sys.argv[1]}")


if __name__ == "__main__":
    main()
