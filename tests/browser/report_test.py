#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report as a reader sees it. Usage: report_test.py KVSPECTRUM OUTPUTS

OUTPUTS is tests/report/outputs: one of each result. Ends with 77 if there is no Chromium.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from browser import Browser, program

HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
WIDTHS = (400, 1600)
FIGURES = ["comparison-0", "evaluations-0", "task-0-score", "task-0-full"] + [
    f"{kind}-0-{state}" for kind in ("power", "share") for state in ("k_pre", "k_post", "v")] + [
    f"share-0-{state}-without-dc" for state in ("k_pre", "k_post", "v")] + ["gain-0-k_pre", "gain-0-v"] + [
    f"synonyms-0-{state}-{group}" for state in ("k_pre", "v") for group in ("same_count", "other_count")] + [
    "retention-0-k", "retention-0-v", "retention-0-kv", "latency-0-prefill", "latency-0-decode", "scores-0-relative",
    "scores-0-kept", "budget-0", "elite-0-shares", "elite-0-head-0", "elite-0-head-1", "ablation-0-map", "ablation-0-scaled",
    "ablation-0-intervals"]

# Finds visible text with less contrast than WCAG's AA asks for.
LOW_CONTRAST = """(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [, , , alpha = 1] = channels(getComputedStyle(e).backgroundColor);
      if (alpha > 0) return getComputedStyle(e).backgroundColor;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.getClientRects().length || element.closest(".skip")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(element.ownerSVGElement ? style.fill : style.color), luminance(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`);
  }
  return low;
})()"""


def make_report(kvspectrum, outputs, folder, change=lambda name, result: None):
    """Makes report.html in `folder` from the outputs after change(name, result)."""
    results = folder / "results"
    results.mkdir()
    for path in outputs.glob("*.json"):
        result = json.loads(path.read_text())
        change(path.name, result)
        (results / path.name).write_text(json.dumps(result))
    subprocess.run([kvspectrum, "report", results, "--out", folder / "report.html", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "report.html"


def with_markup(name, result):
    """Puts markup wherever a result has a name of its own."""
    if "model" in result:
        result["model"]["name"] = HOSTILE
    if name == "comparison.json":
        result["command"] = HOSTILE
        result["configurations"][0].update(label=HOSTILE, method=HOSTILE, settings={HOSTILE: HOSTILE})
    if name == "needle.json":
        result["task"] = HOSTILE


class ReportPage(unittest.TestCase):
    kvspectrum = outputs = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        (folder / "hostile").mkdir()
        cls.page = make_report(cls.kvspectrum, cls.outputs, folder)
        cls.hostile = make_report(cls.kvspectrum, cls.outputs, folder / "hostile", with_markup)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.messages.clear()
        self.browser.requests.clear()

    def value(self, script):
        return self.browser.run(script)

    def test_logs_nothing_and_asks_for_nothing(self):
        for dark in (False, True):
            self.browser.open(self.page, dark=dark)
            self.assertEqual(self.browser.messages, [])
        self.assertEqual(set(self.browser.requests), {self.page.resolve().as_uri()})

    def test_every_figure_is_there_and_has_a_size(self):
        for width in WIDTHS:
            self.browser.open(self.page, width=width)
            for figure in FIGURES:
                shown = figure + "-narrow" if width < 700 and figure in ("comparison-0", "evaluations-0") else figure
                height = self.value(f"document.getElementById({shown!r})?.getBoundingClientRect().height ?? 0")
                self.assertGreater(height, 60, f"{shown} at {width}")

    def test_nothing_is_wider_than_the_page(self):
        for page in (self.page, self.hostile):
            for width in WIDTHS:
                self.browser.open(page, width=width)
                self.value("document.querySelectorAll('details').forEach((d) => d.open = true)")
                self.assertEqual(self.value("document.documentElement.scrollWidth"), width)

    def test_text_in_drawings_does_not_overlap(self):
        overlaps = """(() => {
          const found = [];
          for (const svg of document.querySelectorAll(".drawings svg[role=img]")) {
            const boxes = Array.from(svg.querySelectorAll("text"), (t) => [t.textContent, t.getBoundingClientRect()]);
            boxes.forEach(([a, p], n) => boxes.slice(n + 1).forEach(([b, q]) => {
              if (p.width && q.width && p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 4 && q.top < p.bottom - 4)
                found.push(`${svg.id}: ${a} | ${b}`);
            }));
          }
          return found;
        })()"""
        for width in WIDTHS:
            self.browser.open(self.page, width=width)
            self.assertEqual(self.value(overlaps), [])

    def test_markup_in_names_stays_text(self):
        self.browser.open(self.hostile)
        self.assertEqual(self.value("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.value("document.querySelectorAll('script').length"), 1)
        self.assertEqual(self.value("document.title"), "KV cache of " + HOSTILE)
        self.assertEqual(self.value("document.querySelector('h1').textContent"), HOSTILE)
        self.assertEqual(self.browser.messages, [])

    def test_tables_sort_by_keyboard(self):
        self.browser.open(self.page)

        def sorted_column(name):
            """Returns the column of the table of most cells after one press of its button, and after two."""
            header = ("Array.from(document.querySelectorAll('#comparison th'), (t) => t)"
                      f".findLast((t) => t.textContent === '{name}' && t.querySelector('button'))")
            cells = ("(() => { const h = %s, n = Array.from(h.parentElement.children).indexOf(h); return "
                     "Array.from(h.closest('table').tBodies[0].rows, (r) => r.children[n].textContent); })()" % header)
            self.value(header + ".querySelector('button').focus()")
            for order in ("ascending", "descending"):
                self.browser.press("Enter")
                self.assertEqual(self.value(header + ".ariaSort"), order)
                yield self.value(cells)

        rising = ["0.000500", "0.0150", "0.0250", "0.0400"]
        self.assertEqual(list(sorted_column("KL")), [rising, rising[::-1]])
        for cells in sorted_column("KL \u00d7 best"):  # missing values stay last
            self.assertIn("80.0", cells[0])
            self.assertEqual(set(cells[1:]), {"\u2013"})

    def test_figures_tell_values_by_keyboard(self):
        self.browser.open(self.page)
        tip = "document.getElementById('tip').textContent"
        for figure, words in (("comparison-0", "lagkv, calibrated + q8_0: 25\u00a0% of the bytes, KL divergence 0.0150, perplexity +3.0\u00a0%"),
                              ("latency-0-decode", "lagkv lag=4 sinks=2, 8 tokens: "),
                              ("task-0-score", "depth 0\u00a0%, tokens 512: 50\u00a0% of the answer")):
            self.value(f"document.getElementById('{figure}').focus()")
            self.browser.press("ArrowRight")
            self.assertTrue(self.value(tip).startswith(words), self.value(tip))
            self.browser.press("Escape")
            self.assertTrue(self.value("document.getElementById('tip').hidden"))

    def test_the_first_stop_of_the_keyboard_skips_to_the_findings(self):
        self.browser.open(self.page)
        self.browser.press("Tab")
        self.assertEqual(self.value("document.activeElement.getAttribute('href')"), "#findings")
        self.assertGreaterEqual(self.value("document.activeElement.getBoundingClientRect().left"), 0)

    def test_figures_and_tables_have_names(self):
        self.browser.open(self.page)
        self.assertEqual(self.value("""Array.from(document.querySelectorAll("svg[role=img]"))
            .filter((s) => s.getAttribute("aria-labelledby").split(" ").some((id) => !document.getElementById(id)?.textContent))
            .map((s) => s.id)"""), [])
        self.assertEqual(self.value("Array.from(document.querySelectorAll('table:not(:has(caption))')).length"), 0)
        self.assertEqual(self.value("document.querySelectorAll('th:not([scope])').length"), 0)
        ids = self.value("Array.from(document.querySelectorAll('[id]'), (e) => e.id)")
        self.assertEqual(len(ids), len(set(ids)))

    def test_text_has_the_contrast_of_aa_on_light_and_dark(self):
        grounds = set()
        for dark in (False, True):
            self.browser.open(self.page, dark=dark)
            self.value("document.querySelectorAll('details').forEach((d) => d.open = true)")
            self.assertEqual(self.value(LOW_CONTRAST), [])
            grounds.add(self.value("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(grounds), 2)


if __name__ == "__main__":
    if program() is None:
        print("skipped: found no Chromium; scripts/setup.sh development installs chromium-headless-shell")
        sys.exit(77)
    ReportPage.kvspectrum, ReportPage.outputs = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
