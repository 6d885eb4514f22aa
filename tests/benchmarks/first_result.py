"""A process that loads a model and runs it once: `python -m tests.benchmarks.first_result MODEL` prints what that took."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu.cli.inputs import made_up
from webnn_wgpu.frontends.onnx import Model, settle


def feeds_of(model: Model) -> dict[str, np.ndarray]:
    """Return random inputs of a model."""
    rng = np.random.default_rng(0)
    return {info.name: made_up(info, settle(info.shape, {}), rng) for info in model.inputs}


def peak_bytes() -> int:
    """Return the most memory that the process had at once."""
    status = Path("/proc/self/status")
    if status.is_file():
        # What getrusage tells on Linux includes the parent, from before its program was replaced by this one.
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    with wn.load(sys.argv[1]) as loaded:
        loaded.run(feeds_of(loaded))
    print(json.dumps({"cpu_s": time.process_time(), "peak_bytes": peak_bytes()}))
