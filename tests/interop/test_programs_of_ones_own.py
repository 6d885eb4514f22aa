"""What the examples promise: nothing goes over the host, nothing is created per frame, and one submit is a frame."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.runtime.counting import HOST_COPIES, counted, created

if TYPE_CHECKING:
    from pathlib import Path


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
