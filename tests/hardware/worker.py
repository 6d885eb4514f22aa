"""A process with one of RADV's devices without hardware: it compiles kernels and reports what the compiler made of them.

Its stdin has a line of JSON for each kernel, `{"wgsl": text}`; its stdout has a line for each in turn. The first line of stdout
describes the adapter. `compiler.Compiler` starts it, with the environment that brings the device about.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import wgpu

FEATURES = ("shader-f16", "shader-int64", "subgroup", "subgroup-barrier")


def main() -> None:
    """Compile the kernels on stdin."""
    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    if not adapters:
        sys.exit("the driver offers no Vulkan adapter for this family")
    adapter = adapters[0]
    features = sorted(set(FEATURES) & set(adapter.features))
    limits = {k: v for k, v in adapter.limits.items() if k.startswith(("max-compute", "max-storage-buffer", "max-buffer"))}
    device = adapter.request_device_sync(required_features=features, required_limits=limits)
    info = adapter.info
    print(json.dumps({"device": info["device"], "driver": info["description"], "features": features}), flush=True)
    for line in sys.stdin:
        print(json.dumps(compiled(device, json.loads(line)["wgsl"])), flush=True)


def compiled(device: Any, wgsl: str) -> dict[str, Any]:
    """Return the statistics and the instructions of a kernel, or `{"error": text}` where it does not compile."""
    statistics, folder = Path(os.environ["NULL_GPU_STATS"]), Path(os.environ["NULL_GPU_ISA"])
    before = len(statistics.read_text().splitlines()) if statistics.exists() else 0
    try:
        module = device.create_shader_module(code=wgsl)
        device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    except wgpu.GPUError as error:
        return {"error": str(error)}
    found: dict[str, Any] = json.loads(statistics.read_text().splitlines()[before])
    file = folder / f"{found['pipeline']:05}.txt"
    return {**found, "text": file.read_text()}


if __name__ == "__main__":
    main()
