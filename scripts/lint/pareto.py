#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws figures/pareto.svg, bytes against KL divergence, from the first table of docs/results/compare.md.

Usage: pareto.py [--check]   with --check: exits with 1 if the figure is not that of the table
"""
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURE = ROOT / "figures/pareto.svg"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 470, 70, 150, 20, 50
SHARES, LOSSES = (8.5, 85), (3e-4, 6)  # ranges of the axes: % of the full cache's bytes, nats a token
COLOURS = {"transform": "#c02942", "H2O": "#1f77b4", "streaming": "#2a9d4a", "storage types": "#222222"}
GREY = "#9a9a9a"
TICKS = {"x": (10, 15, 20, 30, 40, 50, 75), "y": (0.001, 0.01, 0.1, 1)}


def points():
    """Returns {method: [(share in %, KL)]}. Storage types alone are single points: {name: [point]}."""
    found = {}
    for line in (ROOT / "docs/results/compare.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 6 or not re.fullmatch(r"[\d.]+ %", cells[0]):
            if found:
                break
            continue
        budget = float(cells[0].split()[0])
        for entry in [f"{cells[1]} {cells[3]}", *cells[5].split(", ")]:
            match = re.match(r"(.+?)(?: \(([\d.]+) %\))? (\d[\d.]*)(?: \(|$)", entry)
            name = re.sub(r" \+ .*| alone| calibrated|`", "", match[1])
            found.setdefault(name, []).append((float(match[2] or budget), float(match[3])))
    return found


def x_of(share):
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(SHARES[1] / share) / math.log(SHARES[1] / SHARES[0])


def y_of(loss):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(loss / LOSSES[0]) / math.log(LOSSES[1] / LOSSES[0])


def text(x, y, words, anchor="start", colour="#222222", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{more}>{words}</text>'


def axes():
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for share in TICKS["x"]:
        yield f'<path d="M{x_of(share):.1f} {TOP}V{bottom}" stroke="#e6e6e6"/>'
        yield text(x_of(share), bottom + 18, f"{share} %", "middle")
    for loss in TICKS["y"]:
        yield f'<path d="M{LEFT} {y_of(loss):.1f}H{right}" stroke="#e6e6e6"/>'
        yield text(LEFT - 8, y_of(loss) + 4, f"{loss:g}", "end")
    yield text((LEFT + right) / 2, HEIGHT - 10, "bytes of the cache, relative to 16 bits", "middle")
    middle = (TOP + bottom) / 2
    yield text(18, middle, "KL divergence, nats a token", "middle", more=f' transform="rotate(-90 18 {middle:.1f})"')


def spread(wanted, gap):
    """Moves ascending positions apart until neighbours have the distance `gap`."""
    places = list(wanted)
    for _ in range(200):
        for n in range(len(places) - 1):
            short = gap - (places[n + 1] - places[n])
            if short > 0:
                places[n], places[n + 1] = places[n] - short / 2, places[n + 1] + short / 2
    return places


def curves(methods):
    for name, line in methods.items():
        colour = COLOURS.get(name, GREY)
        path = "L".join(f"{x_of(share):.1f} {y_of(loss):.1f}" for share, loss in line)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{2.5 if name in COLOURS else 1.2}"/>'
        for share, loss in line:
            yield f'<circle cx="{x_of(share):.1f}" cy="{y_of(loss):.1f}" r="3" fill="{colour}"/>'
    ends = sorted((y_of(line[-1][1]), name) for name, line in methods.items())
    for place, (y, name) in zip(spread([y for y, _ in ends], 15), ends):
        x, colour = x_of(methods[name][-1][0]), COLOURS.get(name, "#666666")
        if methods[name][-1][0] > 10:  # ends inside
            yield text(x + 6, y - 6, name, colour=colour)
            continue
        yield f'<path d="M{x + 4:.1f} {y:.1f}L{WIDTH - RIGHT + 12} {place:.1f}" stroke="{GREY}" stroke-width="0.5"/>'
        yield text(WIDTH - RIGHT + 16, place + 4, name, colour=colour)


def marks(types):
    for name, [(share, loss)] in types.items():
        x, y = x_of(share), y_of(loss)
        below = name in ("q4_0", "q5_0", "KIVI 4 bits", "q8_0")
        yield f'<path d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z" fill="{COLOURS["storage types"]}"/>'
        yield text(x, y + 18 if below else y - 9, name, "middle", more=' font-size="11"')


def drawing():
    found = points()
    types = {name: line for name, line in found.items() if len(line) == 1}
    methods = {name: line for name, line in found.items() if len(line) > 1}
    grey_first = dict(sorted(methods.items(), key=lambda item: item[0] in COLOURS))
    body = [*axes(), *curves(grey_first), *marks(types)]
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="13">')
    title = "<title>KL divergence against bytes, for each method with its best storage type</title>"
    return "\n".join([head, title, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>", ""])


def main():
    if sys.argv[1:] != ["--check"]:
        FIGURE.write_text(drawing(), encoding="utf-8")
        return 0
    if FIGURE.read_text(encoding="utf-8") == drawing():
        return 0
    print("figures/pareto.svg: found another figure than that of docs/results/compare.md; scripts/lint/pareto.py draws it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
