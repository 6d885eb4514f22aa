"""Other runtimes beside the package: a program that any Python with numpy runs, whatever else is installed there.

python peers.py                                            print the names of the runtimes that this Python has
python peers.py RUNTIME MODEL.onnx INPUTS.npz OUTPUTS.npz SECONDS    run a model and print its times as JSON

It imports nothing of this repository, because runtimes of the same name need environments of their own.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[dict[str, Any]], dict[str, Any]]


def _onnxruntime(path: str, provider: str) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, [provider])
    if provider not in session.get_providers():
        raise RuntimeError(f"{provider} was not taken: no adapter")
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(None, feeds), strict=True))


def _torch(path: str) -> Run:
    import onnx
    import onnx2torch
    import torch

    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    model = onnx.load(path)
    inputs, outputs = [i.name for i in model.graph.input], [o.name for o in model.graph.output]
    module = onnx2torch.convert(model).eval().to(device)

    def run(feeds: dict[str, Any]) -> dict[str, Any]:
        with torch.inference_mode():
            found = module(*[torch.from_numpy(feeds[name]).to(device) for name in inputs if name in feeds])
        found = found if isinstance(found, tuple | list) else (found,)
        return {name: each.cpu().numpy() for name, each in zip(outputs, found, strict=True)}

    return run


def _providers() -> list[str]:
    if not importlib.util.find_spec("onnxruntime"):
        return []
    import onnxruntime

    return list(onnxruntime.get_available_providers())


RUNTIMES: dict[str, tuple[Callable[[], bool], Callable[[str], Run]]] = {
    "onnxruntime CPU": (
        lambda: "CPUExecutionProvider" in _providers(),
        lambda path: _onnxruntime(path, "CPUExecutionProvider"),
    ),
    "onnxruntime WebGPU": (
        lambda: "WebGpuExecutionProvider" in _providers(),
        lambda path: _onnxruntime(path, "WebGpuExecutionProvider"),
    ),
    "PyTorch": (
        lambda: bool(importlib.util.find_spec("torch") and importlib.util.find_spec("onnx2torch")),
        _torch,
    ),
}
"""The runtimes by name: whether this Python has it, and what loads a model."""


def main(arguments: list[str]) -> None:
    """Run the command line."""
    if not arguments:
        print(json.dumps([name for name, (is_there, _) in RUNTIMES.items() if is_there()]))
        return
    runtime, model, inputs, outputs, seconds = arguments
    feeds = dict(np.load(inputs))
    begin = time.perf_counter()
    run = RUNTIMES[runtime][1](model)
    results = run(feeds)
    first = time.perf_counter() - begin
    walls: list[float] = []
    end = time.perf_counter() + float(seconds)
    while len(walls) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run(feeds)
        walls.append((time.perf_counter() - start) * 1e3)
    np.savez(outputs, **results)
    print(json.dumps({"first_ms": first * 1e3, "wall_ms": float(np.median(walls))}))


if __name__ == "__main__":
    main(sys.argv[1:])
