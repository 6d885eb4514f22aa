"""Chromium without a window, driven through its debugging protocol over a pipe, and a server for its pages."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # containers seldom allow one
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan,WebMachineLearningNeuralNetwork",
    "--remote-debugging-pipe",
)


def program() -> str | None:
    """Return the browser that CHROMIUM names, or the first of the search path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


_START = "import os, sys; a, b, *c = sys.argv[1:]; os.dup2(int(a), 3); os.dup2(int(b), 4); os.execv(c[0], c)"
"""A program that starts another one with two file descriptors as 3 and 4."""


class PageError(Exception):
    """An exception within a page, or a browser that does not answer."""


class Chromium:
    """A browser process with one page."""

    def __init__(self, path: str, *, options: tuple[str, ...] = ()) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        # The browser reads file descriptor 3 and writes 4. Numbers from 10 on do not collide with them.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, to_write)]
        os.close(to_read)
        os.close(to_write)
        command = [path, *OPTIONS, *options, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _START, *map(str, ends), *command],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in ends:
            os.close(end)
        self._received = bytearray()
        self._number = 0
        self.log: list[str] = []
        """What pages wrote to the console, and their exceptions."""
        target = next(t for t in self._send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")

    def _send(self, method: str, timeout: float = 60, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            answer = self._receive(end, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _receive(self, end: float, method: str) -> Any:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                raise PageError(f"the browser {'does not answer' if not ready else 'has ended'}: {method}; {self.log[-5:]}")
            self._received += data
        message, _, rest = bytes(self._received).partition(b"\0")
        self._received = bytearray(rest)
        return json.loads(message)

    def _note(self, event: Any) -> None:
        params = event.get("params", {})
        if event["method"] == "Runtime.consoleAPICalled":
            self.log.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif event["method"] == "Runtime.exceptionThrown":
            self.log.append(_described(params["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded":
            self.log.append(params["entry"]["text"])

    def open(self, address: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self._send("Page.navigate", url=address)
        self.wait(f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'")

    def evaluate(self, expression: str, timeout: float = 120) -> Any:
        """Return the value of an expression, or of the promise that it is, as JSON.

        Raises:
            PageError: the expression throws, or takes longer than the timeout in seconds.
        """
        options = {"awaitPromise": True, "returnByValue": True}
        found = self._send("Runtime.evaluate", timeout, expression=expression, **options)
        if "exceptionDetails" in found:
            raise PageError(_described(found["exceptionDetails"]))
        return found["result"].get("value")

    def wait(self, expression: str, timeout: float = 120) -> Any:
        """Return the value of an expression once it is true."""
        end = time.monotonic() + timeout
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise PageError(f"not true within {timeout} s: {expression}; {self.log[-5:]}")
            time.sleep(0.05)
        return value

    def picture(self, width: int = 1000, height: int = 800, *, dark: bool = False) -> bytes:
        """Return a PNG of the page."""
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._send("Emulation.setEmulatedMedia", features=scheme)
        return base64.b64decode(self._send("Page.captureScreenshot", captureBeyondViewport=False)["data"])

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._profile.cleanup()

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _described(details: Any) -> str:
    exception = details.get("exception", {})
    return str(exception.get("description") or exception.get("value") or details["text"])


class _Handler(SimpleHTTPRequestHandler):
    """Serves files of a folder, and contents that a test has put there."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, contents: Mapping[str, bytes], **kwargs: Any) -> None:
        self._contents = contents
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        content = self._contents.get(self.path)
        if content is None:
            super().do_GET()
            return
        self.send_response(200)
        kinds = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript"}
        self.send_header("Content-Type", kinds.get(Path(self.path).suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server:
    """An HTTP server on localhost, which browsers take for a secure origin.

    Attributes:
        folder: the folder that it serves.
        contents: contents by path, such as "/cases.json", besides the files of the folder.
        address: the server's address.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents: dict[str, bytes] = {}
        handler = partial(_Handler, directory=str(folder), contents=self.contents)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
