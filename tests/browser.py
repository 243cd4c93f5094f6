"""A headless Chromium, driven over a pipe with the DevTools protocol."""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import time

import pytest


def find_browser():
    """The path of a Chromium, or the test is skipped."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no browser: neither chromium nor google-chrome is installed")


def read_axe(checkout):
    """The program axe-core, or the test is skipped."""
    path = checkout / ".venv/axe/node_modules/axe-core/axe.min.js"
    if not path.exists():
        pytest.skip(f"axe-core is not installed ({path}): make axe")
    return path.read_text("utf-8")


class Browser:
    """A context manager; `open` makes tabs."""

    def __init__(self, folder):
        program = find_browser()
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            # Timers of a page that nobody looks at are slowed to one a minute.
            "--disable-background-timer-throttling",
            "--disable-backgrounding-occluded-windows",
            "--disable-renderer-backgrounding",
            "--disable-features=IntensiveWakeUpThrottling",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
        ]
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        shell = f'exec "$@" 3<&{commands} 4>&{answers} {commands}<&- {answers}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", program, *options, "about:blank"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._numbers, self._buffer = itertools.count(1), b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.kill()

    def kill(self):
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()
        for descriptor in (self._read, self._write):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def send(self, method, session=None, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 180
        while time.monotonic() < end:
            answer = self._next(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]
        raise TimeoutError(method)

    def _next(self, end):
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(end - time.monotonic(), 0))[
                0
            ]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._read, 2**16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def open(self, url, width=1200, height=900):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, attached["sessionId"])
        tab.resize(width, height)
        tab.send("Page.navigate", url=url)
        return tab


_TEXT = "document.body.innerText.slice(-1500)"


class Tab:
    """One page."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def resize(self, width, height):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, script):
        """The value of an expression in the page."""
        out = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in out:
            raise RuntimeError(out["exceptionDetails"])
        return out["result"].get("value")

    def wait(self, script, seconds=120):
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):
                if self.run(script):
                    return
            time.sleep(0.05)
        raise TimeoutError(f"{script}; the page says {self.run(_TEXT)!r}")

    def faults(self, axe, scheme):
        """What axe-core finds in the page in a colour scheme, each with its first place."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])
        script = f"{axe}; axe.run().then(r => JSON.stringify(r.violations))"
        found = json.loads(self.run(script))
        return [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found]

    def press(self, *keys):
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            if key == "Enter":
                text = {"text": "\r"}
            code = {"Enter": 13, "Backspace": 8, "Escape": 27}.get(key, 0)
            common = {"key": key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", **common, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", **common)
