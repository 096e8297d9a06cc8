# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium by its DevTools protocol over a pipe; needs only Python's library."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def program():
    """Returns the first browser that is installed, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page. `messages` keeps its log, and `requests` every request that it makes."""

    def __init__(self):
        self.messages, self.requests, self._number, self._buffer = [], [], 0, b""
        self._profile = tempfile.TemporaryDirectory()
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()

        def give_pipes():  # the browser reads commands from 3 and writes answers to 4
            commands, answers = os.dup(read_commands), os.dup(write_answers)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--no-first-run", f"--user-data-dir={self._profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=give_pipes,
            close_fds=False)
        os.close(read_commands)
        os.close(write_answers)
        self._session = None
        target = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def close(self):
        try:
            self.send("Browser.close")
        finally:
            self._process.wait(20)
            os.close(self._commands)
            os.close(self._answers)
            self._profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self):
        while b"\0" not in self._buffer:
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.messages.append(event["params"])
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])

    def open(self, path, width=1600, height=1000, dark=False):
        """Loads a file at a width in CSS pixels and waits until it is loaded."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Page.navigate", url=path.resolve().as_uri())
        while self.run("document.readyState") != "complete" or self.run("location.href") == "about:blank":
            pass

    def run(self, script):
        """Returns the value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")

    def press(self, key):
        """Presses and releases a key, as from a keyboard."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key],
                      **(text if kind == "keyDown" else {}))

    def picture(self, path, selector=None, scale=1, height=None):
        """Returns a PNG of the page, or of an element."""
        box = self.run(f"(() => {{ const b = ({f'document.querySelector({selector!r})' if selector else 'document.body'})"
                       ".getBoundingClientRect(); return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, "
                       "height: b.height}; })()")
        clip = dict(box, scale=scale)
        if height:
            clip["height"] = height
        image = self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(image["data"]))
