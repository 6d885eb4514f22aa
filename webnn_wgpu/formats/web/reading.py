"""Reads a folder of a compiled graph. Folders come from strangers: everything is checked before anything is allocated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np

from ...core.data_types import DATA_TYPES, MAX_DIMENSION, MAX_RANK, Array
from ...core.errors import quoted
from ...core.names import is_unicode
from ..document import FileError, Location
from .model import (
    ACCESSES,
    ELEMENT_NAMES,
    FORMAT,
    KINDS,
    MODEL_FILE,
    TEXEL_ELEMENTS,
    UNIFORM_TYPES,
    VERSION,
    FileRange,
    Kind,
    Requirements,
    Sample,
    WebBinding,
    WebConstant,
    WebDispatch,
    WebKernel,
    WebModel,
    WebResource,
    WebSteps,
    WebTensor,
    padded,
)

MOST_BYTES = 2**53
"""Sizes and offsets are below this: JavaScript has no larger integers."""

MOST_MODEL_BYTES = 64 * 1024 * 1024
"""The maximum size of `model.json`, and of a kernel's source. Those of the largest models have a tenth of it."""

MOST_NAME = 200
"""Characters of a file's name are fewer than this. Systems allow 255 bytes."""


class _Reader:
    """A value of a JSON file with its place, for messages."""

    def __init__(self, value: Any, location: Location) -> None:
        self.value, self.location = value, location

    def fault(self, rule: str, allowed: str = "") -> FileError:
        return FileError(self.location, rule, got=quoted(self.value), allowed=allowed)

    def object(self) -> dict[str, Any]:
        value: object = self.value
        if not isinstance(value, dict):
            raise self.fault("the value must be an object")
        return cast("dict[str, Any]", value)

    def member(self, name: str) -> _Reader:
        members = self.object()
        if name not in members:
            raise FileError(self.location, f"the member '{name}' is missing")
        return _Reader(members[name], self.location.at(name))

    def optional(self, name: str) -> _Reader | None:
        return self.member(name) if self.object().get(name) is not None else None

    def members(self) -> dict[str, _Reader]:
        for name in self.object():
            if not is_unicode(name):
                raise FileError(self.location, "a name must be a string of Unicode characters", got=quoted(name))
        return {name: self.member(name) for name in self.object()}

    def items(self) -> list[_Reader]:
        value: object = self.value
        if not isinstance(value, list):
            raise self.fault("the value must be a list")
        return [_Reader(item, self.location.at(i)) for i, item in enumerate(cast("list[Any]", value))]

    def text(self) -> str:
        if not isinstance(self.value, str) or not is_unicode(self.value):
            raise self.fault("the value must be a string of Unicode characters")
        return self.value

    def name(self) -> str:
        if not self.text():
            raise self.fault("the name must not be empty")
        return self.text()

    def one_of(self, allowed: tuple[str, ...] | Mapping[str, object]) -> str:
        if self.text() not in allowed:
            raise self.fault("unknown value", ", ".join(allowed))
        return self.text()

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.fault("the value must be true or false")
        return self.value

    def number(self, least: int = 0, most: int = MOST_BYTES) -> int:
        if type(self.value) is not int or not least <= self.value <= most:
            raise self.fault("the number is out of range", f"an integer from {least} to {most}")
        return self.value

    def index(self, of: tuple[Any, ...] | list[Any], what: str) -> int:
        if type(self.value) is not int or not 0 <= self.value < len(of):
            raise self.fault(f"there is no such {what}", f"0 to {len(of) - 1}" if of else f"the file has no {what}")
        return self.value


def read_web_model(folder: str | os.PathLike[str]) -> WebModel:
    """Read and check the `model.json` of a folder, and the sizes of its files.

    Raises:
        FileNotFoundError: the folder has no `model.json`.
        FileError: the folder is wrong. The message names the file and the place in it.
    """
    path = Path(folder) / MODEL_FILE
    root = Location(str(path))
    if not path.is_file():
        message = f"the folder {folder} has no {MODEL_FILE}: `webnn-wgpu export` writes one. A model file is given by its path"
        raise FileNotFoundError(message)
    if path.stat().st_size > MOST_MODEL_BYTES:
        raise FileError(root, "the file is too large", got=f"{path.stat().st_size} bytes", allowed=f"{MOST_MODEL_BYTES} bytes")
    try:
        content = json.loads(path.read_bytes().decode(), parse_constant=lambda name: _no_number(root, name))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileError(root, f"the file is no JSON: {error}") from None
    except RecursionError:
        raise FileError(root, "the file is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise FileError(root, f"the file has a number that is too long: {error}") from None
    reader = _Reader(content, root)
    if reader.object().get("format") != FORMAT:
        raise FileError(root, "the file is no compiled graph", got=quoted(content.get("format")), allowed=f"format {FORMAT}")
    if content.get("version") != VERSION:
        raise FileError(root.at("version"), "the version is unknown", got=quoted(content.get("version")), allowed=str(VERSION))
    files = {name: size.number() for name, size in reader.member("files").members().items()}
    for name, size in files.items():
        _check_file(_inside(Path(folder), name, root.at("files")), size, root.at("files").at(name))
    return _model(reader, files, Path(folder))


def _no_number(root: Location, name: str) -> None:
    raise FileError(root, f"the file has the number {name}, which JSON does not have")


def _inside(folder: Path, name: str, location: Location) -> Path:
    """Return the path of a file of the folder."""
    parts = PurePosixPath(name).parts
    if not 0 < len(name) < MOST_NAME or "\\" in name or "\0" in name or ":" in name or name.startswith("/") or ".." in parts:
        raise FileError(location, "the file must be in the folder", got=quoted(name), allowed="a relative path without '..'")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):  # a symbolic link
        raise FileError(location, "the file must be in the folder", got=f"{quoted(name)}, which is a link out of it")
    return path


def _check_file(path: Path, size_bytes: int, location: Location) -> None:
    if not path.is_file():
        raise FileError(location, "the file is missing", got=quoted(str(path)))
    if path.stat().st_size != size_bytes:
        raise FileError(
            location, "the file has another size", got=f"{path.stat().st_size} bytes", allowed=f"{size_bytes} bytes"
        )


def _model(reader: _Reader, files: Mapping[str, int], folder: Path) -> WebModel:
    inputs = {name: _tensor(each) for name, each in reader.member("inputs").members().items()}
    outputs = {name: _tensor(each, inputs) for name, each in reader.member("outputs").members().items()}
    if not outputs:
        raise reader.member("outputs").fault("the graph must have an output")
    place = _range_of(files)
    slots = tuple(each.number(4) for each in reader.member("slots").items())
    constants = tuple(_constant(each, place) for each in reader.member("constants").items())
    uniforms = reader.optional("uniforms")
    uniform_range = None if uniforms is None else place(uniforms)
    kernels = tuple(_kernel(each, folder) for each in reader.member("kernels").items())
    sizes: dict[tuple[Kind, str | int], int] = {("input", name): tensor.size_bytes for name, tensor in inputs.items()}
    sizes |= {("output", name): tensor.size_bytes for name, tensor in outputs.items()}
    sizes |= {("slot", i): size for i, size in enumerate(slots)}
    sizes |= {("constant", i): constant.place.size_bytes for i, constant in enumerate(constants)}
    checks = _DispatchChecks(kernels, constants, sizes, uniform_range, {n: t.alias for n, t in outputs.items() if t.alias})
    dispatches = tuple(checks.dispatch(each) for each in reader.member("dispatches").items())
    if not dispatches:
        raise reader.member("dispatches").fault("the graph must have a dispatch")
    labels = {d.label for d in dispatches}
    if len(labels) < len(dispatches):
        raise FileError(reader.location.at("dispatches"), "two dispatches have the same label")
    return WebModel(
        name=reader.member("name").text(),
        requires=_requirements(reader.member("requires")),
        inputs=inputs,
        outputs=outputs,
        files=files,
        slots=slots,
        constants=constants,
        uniforms=uniform_range,
        kernels=kernels,
        dispatches=dispatches,
        sample=_sample(reader.optional("sample"), inputs, outputs, place),
        page=None if (page := reader.optional("page")) is None else page.object(),
        steps=_steps(reader.optional("steps"), inputs, place),
    )


def _requirements(reader: _Reader) -> Requirements:
    limits = {name: each.number() for name, each in reader.member("limits").members().items()}
    return Requirements(
        features=tuple(each.name() for each in reader.member("features").items()),
        limits=limits,
        alignment=reader.member("alignment").number(4, 4096),
        subgroup_size=reader.member("subgroupSize").number(0, 128),
        language=tuple(each.name() for each in reader.member("languageFeatures").items()),
    )


def _tensor(reader: _Reader, inputs: Mapping[str, WebTensor] | None = None) -> WebTensor:
    data_type = reader.member("dataType").one_of(DATA_TYPES)
    sizes = reader.member("shape").items()
    if len(sizes) > MAX_RANK:
        raise reader.member("shape").fault("the rank is too high", f"up to {MAX_RANK}")
    tensor = WebTensor(data_type, tuple(size.number(1, MAX_DIMENSION) for size in sizes))
    if tensor.size_bytes >= MOST_BYTES:
        raise reader.fault("the tensor is too large")
    alias = None if inputs is None else reader.optional("alias")
    if alias is None:
        return tensor
    source = (inputs or {}).get(alias.text())
    if source != tensor:
        raise alias.fault("the alias must be an input of the same type and shape")
    return WebTensor(tensor.data_type, tensor.shape, alias.text())


def _range_of(files: Mapping[str, int]) -> Callable[[_Reader], FileRange]:
    def place(reader: _Reader) -> FileRange:
        file = reader.member("file").one_of(files)
        found = FileRange(file, reader.member("offset").number(), reader.member("bytes").number(1))
        if found.offset + found.size_bytes > files[file]:
            raise reader.fault("the range must be within its file", f"{files[file]} bytes of {file}")
        return found

    return place


def _constant(reader: _Reader, place: Callable[[_Reader], FileRange]) -> WebConstant:
    found = place(reader)
    sides = reader.optional("texture")
    if sides is None:
        return WebConstant(found)
    numbers = [side.number(1, 65536) for side in sides.items()]
    if len(numbers) != 2 or found.size_bytes not in (numbers[0] * numbers[1] * size for size in TEXEL_ELEMENTS):
        raise sides.fault("a texture must have a width and a height, and 16 or 4 bytes for each texel")
    return WebConstant(found, (numbers[0], numbers[1]))


def _kernel(reader: _Reader, folder: Path) -> WebKernel:
    file = reader.member("file")
    path = _inside(folder, file.text(), file.location)
    if not path.is_file():
        raise file.fault("the file is missing")
    if path.stat().st_size > MOST_MODEL_BYTES:
        raise file.fault("the file is too large")
    return WebKernel(
        name=reader.member("name").name(),
        file=file.text(),
        bindings=tuple(_binding(each) for each in reader.member("bindings").items()),
        uniforms=tuple(_uniform(each) for each in reader.member("uniforms").items()),
    )


def _binding(reader: _Reader) -> WebBinding:
    quad, exact = reader.optional("quad"), reader.optional("exact")
    return WebBinding(
        name=reader.member("name").name(),
        access=reader.member("access").one_of(ACCESSES),
        element=reader.member("element").one_of(ELEMENT_NAMES),
        quad=quad is not None and quad.flag(),
        exact=exact is not None and exact.flag(),
    )


def _uniform(reader: _Reader) -> tuple[str, str]:
    pair = reader.items()
    if len(pair) != 2:
        raise reader.fault("a uniform must have a name and a type")
    return pair[0].name(), pair[1].one_of(UNIFORM_TYPES)


def _sample(
    reader: _Reader | None,
    inputs: Mapping[str, WebTensor],
    outputs: Mapping[str, WebTensor],
    place: Callable[[_Reader], FileRange],
) -> Sample | None:
    if reader is None:
        return None

    def ends(kind: str, tensors: Mapping[str, WebTensor]) -> dict[str, FileRange]:
        found = {name: place(each) for name, each in reader.member(kind).members().items()}
        for name, tensor in tensors.items():
            if name not in found or found[name].size_bytes != tensor.size_bytes:
                raise reader.member(kind).fault(f"'{name}' must have {tensor.size_bytes} bytes")
        return found

    return Sample(reader.member("device").text(), ends("inputs", inputs), ends("outputs", outputs))


def _steps(reader: _Reader | None, inputs: Mapping[str, WebTensor], place: Callable[[_Reader], FileRange]) -> WebSteps | None:
    if reader is None:
        return None
    rows = reader.member("rows").number(1)
    tables: dict[str, FileRange] = {}
    for name, each in reader.member("tables").members().items():
        if name not in inputs:
            raise each.fault("a table must be of an input", ", ".join(inputs))
        tables[name] = place(each)
        if tables[name].size_bytes != rows * inputs[name].size_bytes:
            raise each.fault("the table must have a row for each token", f"{rows * inputs[name].size_bytes} bytes")
    return WebSteps(rows, reader.member("tokens").one_of(inputs), tables)


class _DispatchChecks:
    """Reads dispatches, and checks them against all that they refer to."""

    def __init__(
        self,
        kernels: tuple[WebKernel, ...],
        constants: tuple[WebConstant, ...],
        sizes: Mapping[tuple[Kind, str | int], int],
        uniforms: FileRange | None,
        aliases: Mapping[str, str],
    ) -> None:
        self.kernels, self.constants, self.sizes, self.uniforms, self.aliases = kernels, constants, sizes, uniforms, aliases

    def dispatch(self, reader: _Reader) -> WebDispatch:
        number = reader.member("kernel").index(self.kernels, "kernel")
        kernel = self.kernels[number]
        given = reader.member("bindings")
        if len(given.items()) != len(kernel.bindings):
            raise given.fault("the dispatch must bind what its kernel binds", f"{len(kernel.bindings)} resources")
        bound = tuple(self.resource(each, b) for each, b in zip(given.items(), kernel.bindings, strict=True))
        written: set[tuple[str, str | int]] = set()
        read: set[tuple[str, str | int]] = set()
        for resource, binding in zip(bound, kernel.bindings, strict=True):
            alias = self.aliases.get(str(resource.key)) if resource.kind == "output" else None
            memory = (resource.kind, resource.key) if alias is None else ("input", alias)
            if binding.access == "write" and memory in written:
                raise given.fault("a buffer must not be written through two bindings of a dispatch")
            (written if binding.access == "write" else read).add(memory)
        if written & read:
            raise given.fault("a buffer must not be read and written in one dispatch")
        grid = [size.number(1, 2**32 - 1) for size in reader.member("grid").items()]
        if len(grid) != 3:
            raise reader.member("grid").fault("a grid must have three sizes")
        uniform = reader.member("uniform")
        offset, room = uniform.number(), 0 if self.uniforms is None else self.uniforms.size_bytes
        if kernel.uniforms and offset + kernel.uniform_bytes > room:
            raise uniform.fault("the uniforms must be within the uniform data", f"{room} bytes")
        return WebDispatch(
            label=reader.member("label").name(),
            kernel=number,
            grid=(grid[0], grid[1], grid[2]),
            bindings=bound,
            uniform=offset,
            operations=reader.member("operations").number(0, 2**63),
            operators=tuple(each.text() for each in reader.member("operators").items()),
        )

    def resource(self, reader: _Reader, binding: WebBinding) -> WebResource:
        kinds: list[Kind] = [kind for kind in KINDS if kind in reader.object()]
        if len(kinds) != 1:
            raise reader.fault("a binding must have one resource", ", ".join(KINDS))
        kind = kinds[0]
        key = reader.member(kind)
        of_name = kind in ("input", "output")
        found: str | int = key.text() if of_name else key.number()
        if (kind, found) not in self.sizes:
            raise key.fault(f"there is no such {kind}")
        resource = WebResource(kind, found, reader.member("offset").number(), reader.member("bytes").number(4))
        texel_bytes = self.constants[int(found)].texel_bytes if kind == "constant" else 0
        is_texture = texel_bytes > 0
        if is_texture != (binding.access in ("texture", "sampled")):
            raise reader.fault(
                f"the kernel binds '{binding.name}' as {binding.access}", "textures as textures, buffers as buffers"
            )
        if is_texture and TEXEL_ELEMENTS[texel_bytes] != binding.element:
            raise reader.fault(f"the kernel binds '{binding.name}' as {binding.element}", TEXEL_ELEMENTS[texel_bytes])
        room = padded(self.sizes[kind, found])
        if not is_texture and (resource.size_bytes % 4 or resource.offset + resource.size_bytes > room):
            raise reader.fault("the binding must be within its buffer, in whole words", f"{room} bytes")
        if binding.access == "write" and (kind == "constant" or (kind == "input" and found not in self.aliases.values())):
            raise reader.fault(f"the kernel must not write to '{found}'", "slots, outputs, and inputs that are aliases")
        return resource


def mapped(folder: str | os.PathLike[str], model: WebModel) -> Callable[[FileRange], Array]:
    """Return a function from a range of a file to its bytes, in a memory map."""
    maps: dict[str, Array] = {}

    def read(place: FileRange) -> Array:
        if place.file not in maps:
            path = _inside(Path(folder), place.file, Location(str(Path(folder) / MODEL_FILE), "files"))
            _check_file(path, model.files[place.file], Location(str(path)))
            maps[place.file] = np.memmap(path, np.uint8, "r")
        return maps[place.file][place.offset : place.offset + place.size_bytes]

    return read


def kernel_source(folder: str | os.PathLike[str], kernel: WebKernel) -> str:
    """Return the WGSL of a kernel."""
    path = Path(folder) / kernel.file
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise FileError(Location(str(path)), f"the file is no UTF-8 text, at byte {error.start}") from None
