#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every chart that the tests of results draw, as other programs read it. Usage: svg_files.py KVS_RESULTS_TEST

Each file is XML by expat's measure, has numbers alone in its geometry and lies inside its view box. Where rsvg-convert is
there, it makes a picture of each.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+(\.\d+)?")
GEOMETRY = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")


def problems(path):
    root = tree.parse(path).getroot()
    if root.tag != SVG + "svg":
        yield f"found {root.tag}, expected svg"
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter():
        if element.get("class") or element.get("style") or element.tag == SVG + "style":
            yield f"{element.tag} has a style that its file does not hold"
        for name in GEOMETRY:
            value = element.get(name)
            if value is not None and value != "100%" and not NUMBER.fullmatch(value):
                yield f"{element.tag} {name}: found {value}"
        if element.tag == SVG + "text" and element.get("x"):
            x, y = float(element.get("x")), float(element.get("y"))
            if not (0 <= x <= width and 0 <= y <= height):
                yield f"'{element.text}' lies at {x}, {y} of {width} x {height}"


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "--gtest_brief=1"], check=True, env={**os.environ, "KVS_CHARTS": folder},
                       stdout=subprocess.DEVNULL)
        files = sorted(pathlib.Path(folder).glob("*.svg"))
        for path in files:
            for problem in problems(path):
                print(f"{path.name}: {problem}")
                bad += 1
            if shutil.which("rsvg-convert"):
                subprocess.run(["rsvg-convert", path], check=True, stdout=subprocess.DEVNULL)
    if len(files) < 20:
        print(f"found {len(files)} charts, expected at least 20")
        bad += 1
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
