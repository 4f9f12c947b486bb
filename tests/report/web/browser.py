"""Chromium without a window, driven over two pipes: the DevTools protocol, a JSON text after another."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe")
_MOVE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads commands from descriptor 3 and answers on descriptor 4."""


class Tab:
    """One tab. `complaints`: what the page wrote to the console, and what the browser refused."""

    def __init__(self, out: int, back: int) -> None:
        self._out, self._back = out, back
        self._rest, self._count, self._session = b"", 0, ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The answer to a command; what is told meanwhile is kept."""
        number = self._send(method, **parameters)
        while True:
            told = self._next()
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]

    def _send(self, method: str, **parameters: Any) -> int:
        """Sends a command, and returns its number."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        with os.fdopen(os.dup(self._out), "wb") as pipe:  # all of it: one write may take a part
            pipe.write(json.dumps(message).encode() + b"\0")
        return self._count

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            read = os.read(self._back, 1 << 20)
            assert read, "the browser ended"
            self._rest += read
        text, self._rest = self._rest.split(b"\0", 1)
        told = json.loads(text)
        match told.get("method"):
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                self.complaints.append(json.dumps(told["params"])[:500])
            case "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"a dialog: {told['params']['message']}")
                self._send("Page.handleJavaScriptDialog", accept=True)  # until then the page stands still
        return told

    def open(self, page: Path | str, width: int = 1000, *, dark: bool = False) -> None:
        """Shows a file or an address, and returns when it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression or promise, which our policy for the page does not bind."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Returns when an expression is true: a page hears of events a little later. Fails after 20 s."""
        for _ in range(400):
            if self.ask(expression):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}")

    def press(self, key: str) -> None:
        """Presses a key, as a person without a mouse does."""
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Tab": 9}[key]
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text
            )

    def type(self, text: str) -> None:
        """Writes a text where the focus is."""
        self.call("Input.insertText", text=text)

    def show_print(self, *, dark: bool) -> None:
        """Shows the page as it is printed on A4, at the width that is left between the margins."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False
        )

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """A fresh browser with one tab; it ends with the block."""
    assert PROGRAM is not None
    theirs, out = os.pipe()
    back, answers = os.pipe()
    command = (sys.executable, "-c", _MOVE, str(theirs), str(answers))
    command += (PROGRAM, *_FLAGS, f"--user-data-dir={profile}")
    browser = subprocess.Popen(
        command, pass_fds=(theirs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    os.close(answers)
    try:
        yield Tab(out, back)
    finally:
        browser.terminate()
        browser.wait(30)
        os.close(out)
        os.close(back)
