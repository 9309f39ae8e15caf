"""Headless Chromium over its debugging pipe: no driver, no port, no library.

The DevTools protocol is JSON, one message per zero byte; the browser reads descriptor 3 and writes 4.
"""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

from replicator.testing import wait_until

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "REPLICATOR_TEST_BROWSER"
MISSING = (
    "no Chromium was found. Debian, Ubuntu: apt install chromium; "
    f"or name a Chromium or Chrome with {VARIABLE}=/path."
)
ANSWER_SECONDS = 60.0
# Puts the pipes where the browser looks for them, and becomes the browser.
_LAUNCHER = """
import fcntl, os, sys
ours = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 50) for number in sys.argv[1:3]]
for place, number in enumerate(ours, start=3):
    os.dup2(number, place)
    os.close(number)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The browser to use, or None."""
    named = os.environ.get(VARIABLE)
    return named or next(filter(None, map(shutil.which, CANDIDATES)), None)


class Chromium:
    """One browser process; a context manager."""

    def __init__(self, program: str, *, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [
            program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}",
            "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--disable-background-networking", "--disable-extensions", "--disable-sync",
            *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank",
        ]  # fmt: skip
        self._log = (profile.parent / "browser.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _LAUNCHER, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._news = threading.Condition()
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(20)
        os.close(self._out)
        self._log.close()

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Sends a command and returns its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        with self._news:
            arrived = self._news.wait_for(lambda: number in self._answers, ANSWER_SECONDS)
            assert arrived, f"no answer to {method}"
            answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer.get('error')}"
        return answer["result"]

    def page(self) -> "Page":
        """A new page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, target)

    def _read(self) -> None:
        with os.fdopen(self._in, "rb", buffering=0) as stream:
            rest = b""
            while chunk := stream.read(1 << 16):
                *whole, rest = (rest + chunk).split(b"\0")
                for text in whole:
                    message = json.loads(text)
                    with self._news:
                        if "id" in message:
                            self._answers[message["id"]] = message
                        else:
                            self.events.append(message)
                        self._news.notify_all()


class Page:
    """One tab: what a person does with it and what it shows."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command to this page."""
        return self._browser.call(method, self._session, **params)

    def close(self) -> None:
        """Closes the tab."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def look(self, *, width: int, height: int, dark: bool = False, still: bool = False) -> None:
        """Size of the window, and what the person prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Goes to an address."""
        self.call("Page.navigate", url=url)

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; waits for it if it is a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str, *, seconds: float = 30.0) -> Any:
        """Waits until a JavaScript expression is true, and returns its value."""
        return wait_until(
            lambda: self.ask(expression),
            timeout_seconds=seconds,
            describe=lambda: f"{expression}\n{self.text()[:1500]}\n{self.complaints()}",
        )

    def text(self) -> str:
        """What can be read on the page."""
        return str(self.ask("document.body ? document.body.innerText : ''"))

    def press(self, key: str, *, times: int = 1) -> None:
        """Presses a key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        text = {"Enter": "\r"}.get(key, "")
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind, key=key, code=key, text=text if kind == "keyDown" else "",
                    windowsVirtualKeyCode=codes[key],
                )  # fmt: skip

    def shot(self, path: Path) -> None:
        """The whole page as a picture."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors of scripts, refused loads, violations of the security policy."""
        thrown = [each["exceptionDetails"] for each in self._own("Runtime.exceptionThrown")]
        logged = [each["entry"] for each in self._own("Log.entryAdded")]
        return [
            *(json.dumps(details)[:600] for details in thrown),
            *(f"{e['text']} {e.get('url', '')}" for e in logged if e["level"] == "error"),
        ]

    def asked_for(self) -> set[str]:
        """Every address the page asked for."""
        return {event["request"]["url"] for event in self._own("Network.requestWillBeSent")}

    def _own(self, method: str) -> list[dict[str, Any]]:
        return [
            event["params"] for event in list(self._browser.events)
            if event["method"] == method and event.get("sessionId") == self._session
        ]  # fmt: skip
