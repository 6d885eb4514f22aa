"""`WebModel`: the content of `model.json`, a compiled graph as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ...core.data_types import byte_length

FORMAT, VERSION = "webnn-wgpu-model", 1

MODEL_FILE = "model.json"

PAD_BYTES = 32
"""Buffers of tensors and constants are padded to a multiple of this, since kernels read and write four elements at a time."""

DEFAULT_LIMITS: Mapping[str, int] = {
    "maxBufferSize": 268435456,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeWorkgroupsPerDimension": 65535,
    "maxStorageBufferBindingSize": 134217728,
    "maxStorageBuffersPerShaderStage": 8,
    "maxStorageTexturesPerShaderStage": 4,
    "maxTextureDimension2D": 8192,
    "maxUniformBufferBindingSize": 65536,
}
"""The limits that every WebGPU device has, by their names in JavaScript."""

OFFSET_ALIGNMENT = 256
"""The alignment of offsets that every WebGPU device accepts, in bytes."""

Kind: TypeAlias = Literal["input", "output", "slot", "constant"]
KINDS: tuple[Kind, ...] = ("input", "output", "slot", "constant")
TEXEL_ELEMENTS = MappingProxyType({16: "float32", 4: "int8"})
"""The elements of textures by the bytes of a texel: the formats rgba32float and rgba8sint."""
ACCESSES = ("read", "write", "texture", "sampled")
UNIFORM_TYPES = ("u32", "i32", "f32")
ELEMENT_NAMES = (
    *("float32", "float16", "half", "int32", "uint32", "int64", "uint64", "int64.pair", "uint64.pair"),
    *("int8", "uint8", "int4", "uint4", "bits8", "bits16", "bits32", "bits64", "atomic32"),
)
"""The kinds of elements of bindings."""


def padded(size_bytes: int) -> int:
    """Return the size of the buffer that holds so many bytes."""
    return -(-size_bytes // PAD_BYTES) * PAD_BYTES


@dataclass(frozen=True)
class WebTensor:
    """An input or output of the graph. An output with an alias updates the memory of that input."""

    data_type: str
    shape: tuple[int, ...]
    alias: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements, without padding."""
        return byte_length(self.data_type, math.prod(self.shape))


@dataclass(frozen=True)
class FileRange:
    """A range of a file of the folder, in bytes."""

    file: str
    offset: int
    size_bytes: int


@dataclass(frozen=True)
class WebConstant:
    """A constant in the form that kernels read: a buffer, or a texture with a width and a height."""

    place: FileRange
    texture: tuple[int, int] | None = None

    @property
    def texel_bytes(self) -> int:
        """The bytes of a texel, a key of `TEXEL_ELEMENTS`. 0 for a buffer."""
        return 0 if self.texture is None else self.place.size_bytes // math.prod(self.texture)


@dataclass(frozen=True, kw_only=True)
class WebBinding:
    """A buffer or texture of a kernel.

    Attributes:
        name: its name in the shader.
        access: "read", "write" (and read), "texture" (a read-only storage texture) or "sampled".
        element: the kind of its elements.
        quad: whether the kernel reads and writes four elements at a time.
        exact: whether the buffer is bound without padding.
    """

    name: str
    access: str
    element: str
    quad: bool
    exact: bool


@dataclass(frozen=True, kw_only=True)
class WebKernel:
    """A kernel: its name for people, the file of its source, its bindings in order, and the fields of its uniform buffer."""

    name: str
    file: str
    bindings: tuple[WebBinding, ...]
    uniforms: tuple[tuple[str, str], ...]

    @property
    def uniform_bytes(self) -> int:
        """Bytes of the uniform buffer, which is bound behind the other bindings."""
        return -(-len(self.uniforms) * 4 // 16) * 16


@dataclass(frozen=True)
class WebResource:
    """The resource of a binding: a graph input or output by name, a slot or a constant by number, or a part of one."""

    kind: Kind
    key: str | int
    offset: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class WebDispatch:
    """A dispatch.

    Attributes:
        label: its unique name.
        kernel: the number of its kernel.
        grid: the number of workgroups in x, y, z.
        bindings: the resource of each binding.
        uniform: the offset of its uniforms in the uniform data, in bytes.
        operations: its arithmetic operations, 0 if they are unknown.
        operators: the labels of the operators that it computes.
    """

    label: str
    kernel: int
    grid: tuple[int, int, int]
    bindings: tuple[WebResource, ...]
    uniform: int
    operations: int
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Requirements:
    """The requirements for a device: features by WebGPU's names, limits by JavaScript's names, and the size of its subgroups.

    Attributes:
        features: the features.
        limits: the limits beyond `DEFAULT_LIMITS`.
        alignment: the largest alignment of offsets that the device may ask for, in bytes.
        subgroup_size: the number of invocations of every subgroup, 0 for any.
        language: the features of the shader language, as `navigator.gpu.wgslLanguageFeatures` names them.
    """

    features: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    alignment: int = OFFSET_ALIGNMENT
    subgroup_size: int = 0
    language: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """The name of a device, and the ranges of files with inputs and with the outputs that the device computed of them."""

    device: str
    inputs: Mapping[str, FileRange]
    outputs: Mapping[str, FileRange]


@dataclass(frozen=True)
class WebSteps:
    """The inputs of a decoder that depend on the number of cached tokens: a row of bytes for each number, from 0 on."""

    rows: int
    tokens: str
    tables: Mapping[str, FileRange]


@dataclass(frozen=True, kw_only=True)
class WebModel:
    """A compiled graph as plain data.

    Attributes:
        name: the name of the model.
        requires: the requirements for a device.
        inputs, outputs: the graph's interface.
        files: the sizes of the files of bytes, in bytes.
        slots: the sizes of the buffers of intermediate values, in bytes.
        constants: the constants.
        uniforms: the range of the uniform data of all dispatches.
        kernels: the kernels.
        dispatches: the dispatches in order.
        sample: inputs with their outputs.
        page: the settings of the page's form.
        steps: the tables of a decoder.
    """

    name: str
    requires: Requirements
    inputs: Mapping[str, WebTensor]
    outputs: Mapping[str, WebTensor]
    files: Mapping[str, int]
    slots: tuple[int, ...]
    constants: tuple[WebConstant, ...]
    uniforms: FileRange | None
    kernels: tuple[WebKernel, ...]
    dispatches: tuple[WebDispatch, ...]
    sample: Sample | None = None
    page: Mapping[str, Any] | None = None
    steps: WebSteps | None = None

    def to_json(self) -> str:
        """Return the text of `model.json`, with a line for each tensor, constant, kernel and dispatch."""
        requires = self.requires
        record: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "requires": {
                "features": list(requires.features),
                "limits": dict(requires.limits),
                "alignment": requires.alignment,
                "subgroupSize": requires.subgroup_size,
                "languageFeatures": list(requires.language),
            },
            "inputs": {name: _tensor(tensor) for name, tensor in self.inputs.items()},
            "outputs": {name: _tensor(tensor) for name, tensor in self.outputs.items()},
            "files": dict(self.files),
            "slots": list(self.slots),
            "constants": [{**_range(c.place), **({"texture": list(c.texture)} if c.texture else {})} for c in self.constants],
            "uniforms": None if self.uniforms is None else _range(self.uniforms),
            "kernels": [
                {
                    "name": k.name,
                    "file": k.file,
                    "bindings": [
                        {"name": b.name, "access": b.access, "element": b.element}
                        | ({"quad": True} if b.quad else {})
                        | ({"exact": True} if b.exact else {})
                        for b in k.bindings
                    ],
                    "uniforms": [list(u) for u in k.uniforms],
                }
                for k in self.kernels
            ],
            "dispatches": [
                {
                    "label": d.label,
                    "kernel": d.kernel,
                    "grid": list(d.grid),
                    "bindings": [{r.kind: r.key, "offset": r.offset, "bytes": r.size_bytes} for r in d.bindings],
                    "uniform": d.uniform,
                    "operations": d.operations,
                    "operators": list(d.operators),
                }
                for d in self.dispatches
            ],
        }
        if self.sample is not None:
            ends = {
                kind: {name: _range(place) for name, place in places.items()}
                for kind, places in (("inputs", self.sample.inputs), ("outputs", self.sample.outputs))
            }
            record["sample"] = {"device": self.sample.device, **ends}
        if self.page is not None:
            record["page"] = dict(self.page)
        if self.steps is not None:
            tables = {name: _range(place) for name, place in self.steps.tables.items()}
            record["steps"] = {"rows": self.steps.rows, "tokens": self.steps.tokens, "tables": tables}
        return "{\n" + ",\n".join(f'"{name}": {_lines(value)}' for name, value in record.items()) + "\n}\n"


def _tensor(tensor: WebTensor) -> dict[str, Any]:
    record: dict[str, Any] = {"dataType": tensor.data_type, "shape": list(tensor.shape)}
    return {**record, "alias": tensor.alias} if tensor.alias else record


def _range(place: FileRange) -> dict[str, Any]:
    return {"file": place.file, "offset": place.offset, "bytes": place.size_bytes}


def _lines(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):  # pyright: ignore[reportUnknownVariableType] - JSON of any kind
        return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n]"  # pyright: ignore[reportUnknownArgumentType] - JSON of any kind
    return json.dumps(value)
