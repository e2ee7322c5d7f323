"""Headless Chromium over a pipe, with the standard library alone: opens a page, evaluates in it, hears what its console says."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


READY = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"


def seconds_to_open(file):
    """From navigation to the first frame after loading; the browser's own start is not part of it. And the console's problems."""
    page = Page(file)
    page.wait("document.readyState === 'complete'")
    seconds = page.evaluate(READY) / 1000
    page.close()
    return seconds, page.problems


class Page:
    """A page of a browser of its own. `problems` are errors and warnings of its console, and requests that left the file."""

    def __init__(self, file, width=1300, height=900, dark=False, timeout=90):
        self._profile = tempfile.TemporaryDirectory(prefix="opfuse-chromium-", ignore_cleanup_errors=True)
        self.timeout, self.problems, self._next, self._buffer = timeout, [], 0, b""
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--remote-debugging-pipe",
                 f"--window-size={width},{height}", f"--user-data-dir={self._profile.name}"]

        def wire():  # the browser reads descriptor 3 and writes descriptor 4
            low, high = os.dup2(to_read, 300), os.dup2(to_write, 301)
            os.dup2(low, 3)
            os.dup2(high, 4)
        self._process = subprocess.Popen([CHROMIUM, *flags, "about:blank"], preexec_fn=wire, close_fds=False,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        os.set_blocking(self._from, False)
        target = self._call("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(domain + ".enable")
        self._call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self._call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self._call("Page.navigate", {"url": pathlib.Path(file).resolve().as_uri()})

    def close(self):
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def _message(self, until):
        while b"\0" not in self._buffer:
            if time.monotonic() > until or self._process.poll() is not None:
                raise TimeoutError(f"the browser says nothing (exit {self._process.poll()})")
            try:
                self._buffer += os.read(self._from, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def _hear(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(what["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning"):
            self.problems.append(json.dumps(what["args"])[:500])
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.problems.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(("file:", "blob:", "about:")):
            self.problems.append("requested " + what["request"]["url"])

    def _call(self, method, parameters=None, session=0):
        self._next += 1
        call = {"id": self._next, "method": method, "params": parameters or {}}
        if session == 0:
            call["sessionId"] = self._session
        os.write(self._to, json.dumps(call).encode() + b"\0")
        until = time.monotonic() + self.timeout
        while (message := self._message(until)).get("id") != call["id"]:
            self._hear(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def evaluate(self, expression):
        result = self._call("Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {json.dumps(result['exceptionDetails'])[:800]}")
        return result["result"].get("value")

    def wait(self, condition):
        until = time.monotonic() + self.timeout
        while not (value := self.evaluate(condition)):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.02)
        return value

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def click_on(self, selector):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.click(*self.evaluate(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                                  " return [b.x + b.width / 2, b.y + b.height / 2]; })()"))

    def key(self, key, code=0):
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "windowsVirtualKeyCode": code, **text})
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})

    def type(self, text):
        self._call("Input.insertText", {"text": text})

    def screenshot(self, path):
        import base64
        pathlib.Path(path).write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))
