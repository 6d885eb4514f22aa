"""Writing of files: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".unfinished-"
"""The prefix of the names of files while they are written."""


def replace_file(file: Path, content: bytes | Iterable[bytes], mode: int = 0o600) -> None:
    """Write a file beside its path and rename it, so that it is either complete or unchanged.

    The file behind a link is replaced. Devices and pipes, such as /dev/stdout, are written as they are.

    Args:
        file: the path.
        content: the bytes, or parts of them.
        mode: the permissions of the file.

    Raises:
        OSError: the file cannot be written.
    """
    parts = [content] if isinstance(content, bytes) else content
    target = Path(os.path.realpath(file))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            stream.writelines(parts)
        return
    handle, unfinished = tempfile.mkstemp(prefix=UNFINISHED, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
        os.chmod(unfinished, mode)
        os.replace(unfinished, target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
