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

import wgpu

from ..core.cache import usable_folder
from ..core.errors import OperationError, OutOfMemoryError
from ..core.settings import dump_folder
from ..kernels.source_map import SourceMap, map_of_kernel, map_of_source
from ..kernels.sources import source_of
from ..kernels.spec import Binding, KernelSpec
from ..kernels.templates import template_file
from ..plan.execution_plan import PlannedDispatch
from .device import Device
from .messages import compiler_message, operators_made_at
from .modules import own_module
from .weights import TEXTURE_USAGE

logger = logging.getLogger("webnn_wgpu")


@dataclass(frozen=True)
class Pipeline:
    """A compiled kernel: its pipeline, the layout of its one bind group, and the uses that the driver has compiled it for."""

    spec: KernelSpec
    pipeline: wgpu.GPUComputePipeline
    layout: wgpu.GPUBindGroupLayout
    warm: set[Hashable] = field(default_factory=set[Hashable], compare=False)


_FEATURES = {
    "`f16` extension is not supported": "shader-f16",
    "SHADER_INT64": "shader-int64",
    r"\bSUBGROUP\b": "subgroup",
    "SUBGROUP_BARRIER": "subgroup-barrier",
}
"""Words of naga's messages -> the feature that a shader needs."""

_UNDEFINED = re.compile(r"no definition in scope for identifier: `([A-Z][A-Z0-9_]*)`")
_NOTHING_BYTES = 64
"""At least one element of any array."""

KEPT = 256
"""Pipelines that are kept though no graph may use them: many models' worth. A software driver spends up to 2 MB on each."""


class PipelineCache:
    """The pipelines of one device, which all contexts on the device share.

    The cache keeps all pipelines of live graphs, and the `KEPT` newest of the others.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._pipelines: WeakValueDictionary[KernelSpec, Pipeline] = WeakValueDictionary()
        self._newest: OrderedDict[KernelSpec, Pipeline] = OrderedDict()
        self._layouts: dict[Any, tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]] = {}
        self._nothing: list[Any] = []
        self._no_textures: dict[tuple[str, int, int], wgpu.GPUTextureView] = {}

    @classmethod
    def of(cls, device: Device) -> PipelineCache:
        """Return the cache of a device."""
        with device.lock:
            return device.shared.setdefault("pipelines", cls(device))

    def __len__(self) -> int:
        return len(self._pipelines)

    def __contains__(self, spec: KernelSpec) -> bool:
        return spec in self._pipelines

    def get(self, spec: KernelSpec, planned: PlannedDispatch | None = None, *, own: bool = False) -> Pipeline:
        """Return the pipeline of a kernel.

        Args:
            spec: the kernel.
            planned: a dispatch of it, for messages.
            own: whether a source that the kernel states is the package's own. Then all of its loops end.

        Raises:
            OperationError: the shader does not compile. The message names template, line and column, and the file with its
                source.
        """
        with self.device.lock:
            found = self._pipelines.get(spec)
            if found is None:
                found = self._pipelines[spec] = self._create(spec, planned, own=own or not spec.source)
            self._newest[spec] = found
            self._newest.move_to_end(spec)
            if len(self._newest) > KEPT:
                self._newest.popitem(last=False)
            return found

    def _create(self, spec: KernelSpec, planned: PlannedDispatch | None, *, own: bool) -> Pipeline:
        label = planned.label if planned else ""
        try:
            source = source_of(spec)
        except OperationError as error:
            made = operators_made_at("", map_of_source(""), planned)
            raise OperationError(error.rule, label=label, got=error.got, hint=made) from error.__cause__
        try:
            return self._compile(spec, source, own=own)
        except wgpu.GPUError as error:
            folder = usable_folder()
            file = _keep_source(source, spec, folder / "failed" if folder else Path(tempfile.gettempdir()))
            found = map_of_source(spec.source, "") if spec.source else map_of_kernel(spec)
            made = operators_made_at(str(error), found, planned)
            raise OperationError(
                f"{_blamed(spec)} does not compile: {compiler_message(str(error), found)}",
                label=label,
                got="" if spec.source else str(spec),
                hint=". ".join(filter(None, (_advice(spec, str(error)), f"Its source is in {file}", made))),
            ) from error

    def override(self, planned: PlannedDispatch, source: SourceMap) -> Pipeline:
        """Return a pipeline of a source that takes the bindings and uniforms of a dispatch's kernel.

        Args:
            planned: the dispatch.
            source: WGSL with the entry point `main`.

        Raises:
            OperationError: the source does not compile, or its bindings differ. The message names file, line and column.
        """
        with self.device.lock:
            try:
                return self._compile(planned.spec, source.text, own=False)
            except wgpu.GPUError as error:
                advice = _undefined(str(error), "const {} = ...;")
                raise OperationError(
                    f"the source does not compile: {compiler_message(str(error), source)}",
                    label=planned.label,
                    allowed=f"bindings and uniforms of {planned.spec}{_constants(planned.spec)}, entry point main",
                    hint=". ".join(filter(None, (advice, operators_made_at(str(error), source, planned)))),
                ) from error

    def _compile(self, spec: KernelSpec, source: str, *, own: bool) -> Pipeline:
        folder = dump_folder()
        if folder is not None:
            _write_source(source, spec, folder)
        gpu = self.device.gpu
        try:
            layout, pipeline_layout = self._layout(spec)
            label = str(spec)
            module = own_module(self.device, label, source) if own else gpu.create_shader_module(label=label, code=source)
            pipeline = gpu.create_compute_pipeline(
                label=label, layout=pipeline_layout, compute={"module": module, "entry_point": "main"}
            )
        except wgpu.GPUOutOfMemoryError as error:
            raise OutOfMemoryError("the device has no memory for a kernel", got=str(spec)) from error
        except wgpu.GPUError:
            self.device.check()
            raise
        return Pipeline(spec, pipeline, layout)

    def nothing(self, binding: int) -> Any:
        """Return an unused buffer to bind, another for each binding."""
        while len(self._nothing) <= binding:
            buffer = self.device.gpu.create_buffer(label="nothing", size=_NOTHING_BYTES, usage=wgpu.BufferUsage.STORAGE)
            self._nothing.append({"buffer": buffer, "offset": 0, "size": _NOTHING_BYTES})
        return self._nothing[binding]

    def no_texture(self, texel_format: str, width: int, height: int) -> wgpu.GPUTextureView:
        """Return an unused texture of a format and a size to bind."""
        key = texel_format, width, height
        if key not in self._no_textures:
            texture = self.device.gpu.create_texture(size=(width, height, 1), format=texel_format, usage=TEXTURE_USAGE)
            self._no_textures[key] = texture.create_view()
        return self._no_textures[key]

    def layout(self, spec: KernelSpec) -> wgpu.GPUBindGroupLayout:
        """Return the layout of the one bind group of a kernel."""
        return self._layout(spec)[0]

    def _layout(self, spec: KernelSpec) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        # wgpu 0.31 compares bound buffers with the largest expectation of any earlier kernel with this layout. So kernels share
        # a layout only if they have as many uniforms. The expectations of a caller's own kernels are unknown.
        if spec.source:
            return self._make_layout(spec)
        key = tuple((b.access, b.texel_format) for b in spec.bindings), spec.uniform_bytes
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(spec)
        return self._layouts[key]

    def _make_layout(self, spec: KernelSpec) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        items = [_entry(b) for b in spec.bindings] + [{"buffer": {"type": "uniform"}}] * bool(spec.uniforms)
        entries = [{"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, **item} for i, item in enumerate(items)]
        gpu = self.device.gpu
        layout = gpu.create_bind_group_layout(entries=entries)
        return layout, gpu.create_pipeline_layout(bind_group_layouts=[layout])


def _entry(binding: Binding) -> dict[str, Any]:
    """Return the entry of a binding in the layout of its bind group, without number and visibility."""
    match binding.access:
        case "read":
            return {"buffer": {"type": "read-only-storage"}}
        case "write":
            return {"buffer": {"type": "storage"}}
        case "texture":
            return {"storage_texture": {"access": "read-only", "format": binding.texel_format, "view_dimension": "2d"}}
        case "sampled":
            sample_type = "unfilterable-float" if binding.texel == "f32" else "sint"
            return {"texture": {"sample_type": sample_type, "view_dimension": "2d"}}


def _blamed(spec: KernelSpec) -> str:
    return "the shader" if spec.source else f"shader of template {template_file(spec)}"


def _constants(spec: KernelSpec) -> str:
    """Return the constants that stay defined for overrides of an application's own kernel, as a part of a list."""
    names = [declaration.split()[1] for declaration in spec.given if declaration.startswith("const ")]
    return f", constants {', '.join(names)}" if names else ""


def _undefined(error: str, definition: str) -> str:
    """Return a hint about a name in capitals that a source uses and nothing defines, or "".

    Args:
        error: the compiler's message.
        definition: the definition of a constant, with `{}` for its name.
    """
    undefined = _UNDEFINED.search(error)
    if undefined is None:
        return ""
    name = undefined[1]
    if re.fullmatch(r"T\d*", name):
        return f"`{name}` is the data type of an array, tensor or operand. `alias {name} = f32;` declares it for others"
    return f"`{definition.format(name)}` defines a constant"


def _advice(spec: KernelSpec, error: str) -> str:
    """Return a hint about a fault of an application's own source, or "".

    One is about a feature that the device lacks. Others are about a name in capitals that nothing defines, and about whole
    floats, such as the quotient of two sizes in Python, where the compiler expects another type.
    """
    if not spec.source:
        return ""
    if lacking := [feature for words, feature in _FEATURES.items() if re.search(words, error)]:
        return (
            f"The device lacks {' and '.join(lacking)}: its adapter has no such feature, or `required_features` did not name it"
        )
    if undefined := _undefined(error, "constants={{'{}': ...}}"):
        return undefined
    whole: list[tuple[str, str]] = re.findall(r"\bconst (\w+) = (-?\d+\.0);", spec.source)
    if not whole or not re.search(r"[Aa]bstract|concrete type|inconsistent type|expected to be|with index", error):
        return ""
    floats = ", ".join(f"`{name} = {number}`" for name, number in whole)
    return f"Pass an int for a constant that is a size or an index: {floats} {'are floats' if len(whole) > 1 else 'is a float'}"


def _keep_source(source: str, spec: KernelSpec, folder: Path) -> Path:
    """Write a shader's source to a file for its user, in `folder` if possible, and return the file."""
    try:
        return _write_source(source, spec, folder)
    except OSError:
        return _write_source(source, spec, Path(tempfile.mkdtemp(prefix="webnn_wgpu-")))


def _write_source(source: str, spec: KernelSpec, folder: Path) -> Path:
    """Write a shader's source to a file that its template and digest name, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{spec.template}-{hashlib.sha256(source.encode()).hexdigest()[:12]}.wgsl"
    file.write_text(source, encoding="utf-8")
    return file
