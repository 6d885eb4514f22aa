"""Files are written whole, behind links, and into devices."""

from __future__ import annotations

import os
import stat
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from webnn_wgpu.core.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_a_file_that_cannot_be_completed_stays_as_it_was(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"new"
        raise OSError("the disk is full")

    file = tmp_path / "model.onnx"
    replace_file(file, b"old")
    with pytest.raises(OSError, match="full"):
        replace_file(file, broken())
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    file, link = tmp_path / "model.onnx", tmp_path / "latest.onnx"
    file.write_bytes(b"old")
    link.symlink_to(file)
    replace_file(link, [b"ne", b"w"], 0o644)
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"all of it")
    reader.join()
    assert found == [b"all of it"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
