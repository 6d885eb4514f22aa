from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from webnn_wgpu.core import cache

USERS_FOLDER = cache.cache_folder
"""As it is outside of tests, which have a folder of their own."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_what_is_kept_is_found(folder: Path) -> None:
    assert cache.read("a/b.txt") is None
    cache.write("a/b.txt", "first\nsecond é")
    assert cache.read("a/b.txt") == "first\nsecond é"
    cache.write("a/b.txt", "")
    assert cache.read("a/b.txt") == ""
    assert [path.name for path in (folder / "a").iterdir()] == ["b.txt"]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:5], lambda data: b"", lambda data: data + b"\xff"]
)
def test_a_damaged_file_counts_as_none_with_one_warning(
    folder: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    cache.write("kept", "some text")
    file = folder / "kept"
    file.write_bytes(damage(file.read_bytes()))
    with caplog.at_level(logging.WARNING, "webnn_wgpu"):
        assert cache.read("kept") is None
        assert cache.read("kept") is None
    assert [record.getMessage() for record in caplog.records] == [f"{file} is damaged and will be made anew"]
    cache.write("kept", "some text")
    assert cache.read("kept") == "some text"


def test_caches_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("kept", "before")
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")
    assert cache.read("kept") is None
    cache.write("other", "text")
    cache.prune("", 0)
    monkeypatch.delenv("WEBNN_WGPU_CACHE")
    assert cache.read("kept") == "before"
    assert cache.read("other") is None


def test_a_place_that_cannot_be_written(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "a").write_text("a file where a folder is needed", encoding="utf-8")
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        cache.write("a/b", "text")
        cache.prune("a", 0)
    assert cache.read("a/b") is None
    assert "could not be written" in caplog.text


def test_what_cannot_be_touched_is_read_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(path)

    cache.write("kept", "text")
    os.utime(folder / "kept", (0, 1e9))
    monkeypatch.setattr(os, "utime", refuse)
    assert cache.read("kept") == "text"


@pytest.mark.parametrize("place", [RuntimeError("no home"), "~/.cache/webnn_wgpu"])
def test_without_a_home_nothing_is_kept(place: RuntimeError | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def user_cache_dir(_name: str) -> str:
        if isinstance(place, RuntimeError):
            raise place
        return place

    monkeypatch.setattr(cache, "cache_folder", USERS_FOLDER)
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_cache_dir", user_cache_dir)
    assert cache.cache_folder() is None
    cache.write("kept", "text")
    cache.prune("", 0)
    assert cache.read("kept") is None
    assert not list(tmp_path.iterdir())


def test_the_files_used_last_stay(folder: Path) -> None:
    for i, name in enumerate(("old", "middle", "new")):
        cache.write(f"kernels/{name}", "x" * 100)
        os.utime(folder / "kernels" / name, (0, 1e9 + i))
    assert cache.read("kernels/old") == "x" * 100  # which is a use
    abandoned = folder / "kernels" / ".unfinished-1"
    abandoned.write_bytes(b"half")
    cache.prune("kernels", 280)
    assert {path.name for path in (folder / "kernels").iterdir()} == {"old", "new", ".unfinished-1"}
    os.utime(abandoned, (0, time.time() - 4000))
    cache.prune("kernels", 10**6)
    assert {path.name for path in (folder / "kernels").iterdir()} == {"old", "new"}


WRITER = """
import sys
from collections.abc import Callable
from pathlib import Path
from webnn_wgpu.core import cache
cache.cache_folder = lambda: Path(sys.argv[1])
print("begun", flush=True)
for i in range(10**9):
    cache.write("kept", str(i % 10) * 300_000)
"""


@pytest.mark.slow
def test_killing_writers_leaves_a_cache_of_whole_files(folder: Path) -> None:
    seen: set[str] = set()
    for number in range(2):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(0.02 * number)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
        found = cache.read("kept")
        if found is not None:
            assert len(found) == 300_000
            seen.update(found)
            assert len(set(found)) == 1
    assert seen
    assert not cache._damaged & {folder / "kept"}
    cache.write("kept", "and on")
    assert cache.read("kept") == "and on"
