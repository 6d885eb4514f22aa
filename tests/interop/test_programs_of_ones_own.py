"""What the examples promise: nothing goes over the host, nothing is created per frame, and one submit is a frame."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from tests.runtime.counting import HOST_COPIES, counted, created

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def example(repository: Path, name: str) -> Any:
    """Load an example as a module: everything is set up, nothing has run."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", repository / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_buffers_in_and_out_without_a_copy(repository: Path) -> None:
    program = example(repository, "own_buffers")
    with counted() as calls:
        for _ in range(5):
            program.run()
    assert {name: calls[name] for name in HOST_COPIES} == dict.fromkeys(HOST_COPIES, 0)
    assert calls["wgpuQueueSubmit"] == 10
    with counted() as calls:
        result = np.frombuffer(program.device.queue.read_buffer(program.target), np.float32)
    assert calls["wgpuBufferGetMappedRange"] == 1  # the counter does count
    y, x = np.mgrid[:16, :16]
    image = np.pad(np.sin(x) * np.cos(y), 1)
    wanted = sum(image[i : i + 16, j : j + 16] for i in range(3) for j in range(3)) / 9
    np.testing.assert_allclose(result.reshape(16, 16), wanted, atol=1e-5)


def test_one_submit_per_frame(repository: Path) -> None:
    program = example(repository, "frame_loop")
    program.frame()
    with counted() as calls:
        for _ in range(10):
            program.frame()
    assert calls["wgpuQueueSubmit"] == 10
    assert created(calls) == {}
    assert {name: calls[name] for name in HOST_COPIES} == dict.fromkeys(HOST_COPIES, 0)


def test_texture_in_texture_out_and_the_picture_saved(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["texture_in_out.py", str(tmp_path / "detail.png")])
    program = example(repository, "texture_in_out")
    painting = np.uint8(program.painting * 255)[:, 128:, :3]
    planes = [
        np.asarray(Image.fromarray(np.float32(painting[..., c] / 255)).resize((128, 128), Image.Resampling.BILINEAR))
        for c in range(3)
    ]
    detail = mean(np.mean([np.abs(plane - mean(plane, 7)) for plane in planes], axis=0), 5)
    np.testing.assert_allclose(program.context.read_tensor(program.answer)[0, 0], detail, atol=1e-5)
    saved = np.asarray(Image.open(tmp_path / "detail.png"))
    assert saved.shape == (256, 256, 3)
    # What is rich in detail is bright in this colormap.
    brightness = saved.mean(axis=-1)[::2, ::2]
    assert np.corrcoef(brightness.reshape(-1), detail.reshape(-1))[0, 1] > 0.9


def mean(plane: Any, size: int) -> Any:
    """The mean of a window around each element, of those that there are."""
    half = size // 2
    padded, ones = np.pad(plane, half), np.pad(np.ones_like(plane), half)
    height, width = plane.shape
    windows = [(slice(i, i + height), slice(j, j + width)) for i in range(size) for j in range(size)]
    return sum(padded[w] for w in windows) / sum(ones[w] for w in windows)
