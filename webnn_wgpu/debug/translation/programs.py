"""Processes that answer a line of JSON on stdin with a line of JSON on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import OperationError


class LineProgram:
    """A running process, which greets with a line of its own and then answers one question after the other.

    Attributes:
        greeting: the first line that the process wrote.
    """

    def __init__(
        self, name: str, command: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str] | None = None
    ) -> None:
        """Start the process.

        Args:
            name: the program's name in messages.
            command: the program and its arguments.
            folder: the working directory. None is the one of this process.

        Raises:
            OperationError: the process ended before it greeted.
            OSError: the program cannot be started.
        """
        self._name = name
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )
        self.greeting = self._read()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question.

        Raises:
            OperationError: the process ended.
        """
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `_read` reports the end of the process together with its last words
        return self._read()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._errors.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        self._process.communicate()
        self._errors.seek(0)
        words = self._errors.read().strip()
        self._errors.close()
        raise OperationError(f"{self._name} ended with status {self._process.returncode}", got=words[-400:])
