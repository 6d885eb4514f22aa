"""`check`: whether a graph file is valid, without a device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from webnn_wgpu import ml
from webnn_wgpu.formats.reading import ConstantArrays, read

from .building import assemble, used_names
from .dynamic import dynamic_dimensions


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A valid graph file.

    Attributes:
        name: the graph's name.
        inputs, outputs, operators, constants: numbers of them, without unused constants.
        constant_bytes: bytes of the constants.
    """

    name: str
    inputs: int
    outputs: int
    operators: int
    constants: int
    constant_bytes: int


def check(
    path: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | None = None,
    manifest: str | os.PathLike[str] | None = None,
    override_dims: Mapping[str, int] | None = None,
) -> Checked:
    """Check a `.webnn` text or its JSON form: names, operators, options, shapes, types and files of weights.

    Args:
        path: the file.
        weights: the file of weights, as for `load_webnn`.
        manifest: the manifest of a blob of weights.
        override_dims: sizes of dynamic dimensions, by name. Others get their largest size.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: a file that is wrong. `faults` are all faults that were found.
        NotSupportedError: an operator that cannot run anywhere.
    """
    document = read(path)
    sizes = {**dynamic_dimensions(document), **(override_dims or {})}
    with ml.create_context(backend="reference") as context:
        assemble(document, ConstantArrays(document, weights, manifest), context, sizes)
    used = used_names(document)
    constants = [c for c in document.constants if c.declaration.name in used]
    return Checked(
        name=document.name,
        inputs=len(document.inputs),
        outputs=len(document.outputs),
        operators=sum(1 for s in document.statements if s.operator),
        constants=len(constants),
        constant_bytes=sum(c.size_bytes for c in constants),
    )
