# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven over two pipes by the DevTools protocol. Only the browser itself is needed."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The program, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """`with Browser() as b:` one page, which is opened anew by `open`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="browser-")
        get, self.out = os.pipe()
        self.into, put = os.pipe()

        def arrange():  # Chromium reads descriptor 3 and writes descriptor 4
            a, b = os.dup(get), os.dup(put)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--hide-scrollbars", "--disable-background-networking", "--user-data-dir=" + self.folder, "about:blank"],
            preexec_fn=arrange, pass_fds=(3, 4, get, put), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(get)
        os.close(put)
        self.buffer, self.number, self.faults, self.session = b"", 0, [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        name, details = message.get("method"), message.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.faults.append(details["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif name == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.faults.append(details["entry"]["text"])
        elif name == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.faults.append(str([a.get("value") for a in details["args"]]))
        return message

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer.get("result", {})

    def open(self, url, width, height=900, theme="light"):
        """Loads a page; `faults` has what it complains of from then on."""
        self.faults = []
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.ask("Page.navigate", url=url)
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        return answer["result"].get("value")

    def picture(self, path, whole=True):
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
