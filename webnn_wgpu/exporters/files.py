"""Writing of files: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def replace_files(files: Mapping[Path, bytes | Sequence[bytes]]) -> list[Path]:
    """Write files under temporary names, rename them, so that each is whole or not there, and return their paths."""
    for file, content in files.items():
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name[:100]}.", delete=False) as made:
            try:
                made.writelines([content] if isinstance(content, bytes) else content)
            except BaseException:
                os.unlink(made.name)
                raise
        os.chmod(made.name, 0o644)
        os.replace(made.name, file)
    return list(files)
