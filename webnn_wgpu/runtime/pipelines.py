"""Compute pipelines, one per `KernelSpec` and device."""

from __future__ import annotations

import hashlib
import logging
import re
import tempfile
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import platformdirs
import wgpu

from ..core.errors import DeviceLostError, OperationError
from ..core.settings import cache_enabled
from ..kernels.spec import KernelSpec
from ..kernels.templates import render
from .device import Device

logger = logging.getLogger("webnn_wgpu")


@dataclass(frozen=True)
class Pipeline:
    """A compiled kernel: its pipeline, the layout of its one bind group, and what the driver has compiled it for."""

    spec: KernelSpec
    pipeline: wgpu.GPUComputePipeline
    layout: wgpu.GPUBindGroupLayout
    warm: set[Hashable] = field(default_factory=set[Hashable], compare=False)


_NOTHING_BYTES = 64
"""At least one element of any array."""

KEPT = 256
"""Pipelines that are kept though no graph may use them: many models' worth. A software driver spends up to 2 MB on each."""


class PipelineCache:
    """The pipelines of one device; contexts on the same device share them.

    Those that live graphs use are all found, of the others the `KEPT` newest.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._pipelines: WeakValueDictionary[KernelSpec, Pipeline] = WeakValueDictionary()
        self._newest: OrderedDict[KernelSpec, Pipeline] = OrderedDict()
        self._layouts: dict[Any, tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]] = {}
        self._nothing: list[Any] = []

    @classmethod
    def of(cls, device: Device) -> PipelineCache:
        """Return the cache of a device."""
        with device.lock:
            return device.shared.setdefault("pipelines", cls(device))

    def __len__(self) -> int:
        return len(self._pipelines)

    def __contains__(self, spec: KernelSpec) -> bool:
        return spec in self._pipelines

    def get(self, spec: KernelSpec) -> Pipeline:
        """Return the pipeline of a kernel.

        Raises:
            OperationError: the shader does not compile; the message names template, line and the file with its source.
        """
        with self.device.lock:
            found = self._pipelines.get(spec)
            if found is None:
                found = self._pipelines[spec] = self._create(spec)
            self._newest[spec] = found
            self._newest.move_to_end(spec)
            if len(self._newest) > KEPT:
                self._newest.popitem(last=False)
            return found

    def _create(self, spec: KernelSpec) -> Pipeline:
        gpu = self.device.gpu
        source = render(spec)
        layout, pipeline_layout = self._layout(spec)
        try:
            module = gpu.create_shader_module(label=str(spec), code=source)
            pipeline = gpu.create_compute_pipeline(
                label=str(spec), layout=pipeline_layout, compute={"module": module, "entry_point": "main"}
            )
        except wgpu.GPUError as error:
            if self.device.lost:
                raise DeviceLostError("the device is lost", got=str(spec)) from error
            file = _keep_source(source, spec)
            raise OperationError(
                f"{_blamed(spec)} does not compile: {compiler_message(str(error), spec.source)}",
                got=str(spec),
                hint=f"Its source is in {file}",
            ) from error
        return Pipeline(spec, pipeline, layout)

    def nothing(self, binding: int) -> Any:
        """Return a buffer, another for each binding, to bind where nothing is read or written."""
        while len(self._nothing) <= binding:
            buffer = self.device.gpu.create_buffer(label="nothing", size=_NOTHING_BYTES, usage=wgpu.BufferUsage.STORAGE)
            self._nothing.append({"buffer": buffer, "offset": 0, "size": _NOTHING_BYTES})
        return self._nothing[binding]

    def _layout(self, spec: KernelSpec) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        key = (tuple(b.access for b in spec.bindings), bool(spec.uniforms))
        if key not in self._layouts:
            kinds: dict[str, dict[str, Any]] = {
                "read": {"buffer": {"type": "read-only-storage"}},
                "write": {"buffer": {"type": "storage"}},
                "texture": {"storage_texture": {"access": "read-only", "format": "rgba32float", "view_dimension": "2d"}},
            }
            items = [kinds[b.access] for b in spec.bindings] + [{"buffer": {"type": "uniform"}}] * bool(spec.uniforms)
            entries = [{"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, **item} for i, item in enumerate(items)]
            gpu = self.device.gpu
            layout = gpu.create_bind_group_layout(entries=entries)
            self._layouts[key] = (layout, gpu.create_pipeline_layout(bind_group_layouts=[layout]))
        return self._layouts[key]


def _blamed(spec: KernelSpec) -> str:
    return "the shader" if spec.source else f"shader of template ops/{spec.template}.wgsl.j2"


def compiler_message(text: str, source: str) -> str:
    """Return what wgpu says of a program's own shader in one line: what is wrong, where, and how that line reads."""
    if not source:
        return text
    wrong, place = re.search(r"(?:parsing|validation) error: (.*)", text), re.search(r"wgsl:(\d+):(\d+)", text)
    if place is None:
        lines = [line.strip() for line in text.splitlines()]
        return " ".join(line for line in lines if line and not re.match(r"Validation Error$|Caused by:$|In wgpu\w+$", line))
    line = source.splitlines()[int(place[1]) - 1].strip()
    return f"line {place[1]}, column {place[2]}: {wrong[1] if wrong else text} in '{line}'"


def _keep_source(source: str, spec: KernelSpec) -> Path:
    """Write a shader's source where its user can look at it, and return the file."""
    folder = Path(platformdirs.user_cache_dir("webnn_wgpu")) / "failed" if cache_enabled() else Path(tempfile.gettempdir())
    name = f"{spec.template}-{hashlib.sha256(source.encode()).hexdigest()[:12]}.wgsl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="webnn_wgpu-"))
        (folder / name).write_text(source, encoding="utf-8")
    return folder / name
