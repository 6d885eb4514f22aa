"""Runs programs of tests in processes of their own.

Most of the time of a small program is the import of the package. On Linux a server imports it once, and each program runs in a
copy of the server's process: one that has imported the package, has opened no device, and ends as any program does.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from typing import IO, Any

ROOT = Path(__file__).parents[1]


class Programs:
    """Runs programs. The server, if there is one, starts with the first."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(self, arguments: Sequence[str | Path], *, folder: Path = ROOT, timeout: float = 300) -> CompletedProcess[str]:
        """Run a program that finds the repository, and return its status and what it wrote.

        Args:
            arguments: what follows `python` on a command line: a file, -m and a module, or -c and code, with their arguments.
            folder: the working directory.
            timeout: after how many seconds the program is killed.

        Raises:
            TimeoutExpired: the program was killed.
        """
        command = [str(argument) for argument in arguments]
        if sys.platform != "linux":
            paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            return subprocess.run(
                [sys.executable, "-X", "faulthandler", *command],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        with tempfile.TemporaryDirectory() as written:
            out, err = Path(written, "out"), Path(written, "err")
            self._send({"command": command, "folder": str(folder), "out": str(out), "err": str(err)})
            pid = self._receive(timeout)
            assert pid is not None
            status = self._receive(timeout)
            if status is None:
                os.kill(pid, signal.SIGKILL)
                self._receive(timeout)
                raise TimeoutExpired(command, timeout)
            code = os.waitstatus_to_exitcode(status)
            return CompletedProcess(command, code, out.read_text("utf-8"), err.read_text("utf-8"))

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            for pipe in (self._server.stdin, self._server.stdout):
                assert pipe is not None
                pipe.close()
            self._server.wait()

    def _send(self, request: dict[str, Any]) -> None:
        if self._server is None:
            command = [sys.executable, "-X", "faulthandler", "-m", "tests.programs"]
            self._server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(json.dumps(request), file=_open(self._server.stdin), flush=True)

    def _receive(self, timeout: float) -> int | None:
        """Return the next number of the server, or None if there is none in time."""
        assert self._server is not None
        pipe = _open(self._server.stdout)
        ready, _, _ = select.select([pipe], [], [], timeout)
        return int(pipe.readline()) if ready else None


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def serve() -> None:
    """Run a program for each line of standard input. Write the program's process, and its status once it has ended."""
    import webnn_wgpu  # noqa: F401 - what all programs import

    answers = os.fdopen(os.dup(1), "w")
    # `readline` reads no further: what it has buffered would be lost in copies of the process.
    while line := sys.stdin.readline():
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            answers.close()
            return be(request)
        print(pid, file=answers, flush=True)
        print(os.waitpid(pid, 0)[1], file=answers, flush=True)
    return None


def be(request: dict[str, Any]) -> None:
    """Run a program in this process."""
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.chdir(request["folder"])
    kind, *others = request["command"]
    if kind == "-c":
        code, *arguments = others
        sys.argv[:] = ["-c", *arguments]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv[:] = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = request["command"]
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    serve()
