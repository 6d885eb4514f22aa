"""A model lowered for two numbers of cached rows. Differences show the values that depend on the number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir

from webnn_wgpu import MLContext, NotSupportedError

from ..common.held import Shape
from ..common.stages import Feed, ValueNeeded
from .lowering import OnnxLowering, OnnxStage
from .module import OnnxModule
from .tensors import OnnxTensor


@dataclass(frozen=True)
class Probe:
    """A lowering for caches of `rows` rows, which provides shapes and known elements."""

    rows: int
    lowering: OnnxLowering

    @classmethod
    def of(
        cls,
        module: OnnxModule,
        context: MLContext,
        nodes: Sequence[onnx_ir.Node],
        outputs: Sequence[onnx_ir.Value],
        feeds: Mapping[onnx_ir.Value, Feed],
        rows: int,
    ) -> Probe:
        """Lower a model without compiling it.

        Raises:
            NotSupportedError: a node needs the host, or elements of the model's inputs.
        """
        lowering = OnnxLowering(module, context, feeds, {}, ())
        lower_whole(lowering, nodes, outputs)
        return cls(rows, lowering)

    def __getitem__(self, value: onnx_ir.Value) -> OnnxTensor:
        tensor = self.lowering.found(value)
        assert tensor is not None, value.name
        return tensor


@dataclass(frozen=True)
class Probes:
    """Two probes: with few rows, and with all rows except those of one run."""

    few: Probe
    full: Probe

    def found(self, value: onnx_ir.Value) -> bool:
        """Return whether a value has a producer."""
        return self.few.lowering.found(value) is not None

    def growing_axes(self, value: onnx_ir.Value) -> list[int]:
        """Return the dimensions of a value that depend on the number of rows."""
        pairs = zip(self.few[value].shape, self.full[value].shape, strict=True)
        return [i for i, (a, b) in enumerate(pairs) if a != b]

    def grows(self, value: onnx_ir.Value) -> bool:
        """Whether a value's shape depends on the number of rows."""
        return bool(self.growing_axes(value))

    def differs(self, value: onnx_ir.Value) -> bool:
        """Return whether a value's shape, or its known elements, depend on the number of rows."""
        few, full = self.few[value], self.full[value]
        if few.shape != full.shape or (few.array is None) != (full.array is None):
            return True
        return few.array is not None and full.array is not None and few.array.tobytes() != full.array.tobytes()

    def fixed(self, value: onnx_ir.Value) -> bool:
        """Whether a value is known and does not depend on the number of rows."""
        return self.full[value].array is not None and not self.differs(value)

    def shape(self, value: onnx_ir.Value, rows: int) -> Shape:
        """Return a value's shape for any number of rows."""
        step = self.full.rows - self.few.rows
        pairs = zip(self.few[value].shape, self.full[value].shape, strict=True)
        return tuple(a + (b - a) * (rows - self.few.rows) // step for a, b in pairs)


def lower_whole(lowering: OnnxLowering, nodes: Sequence[onnx_ir.Node], outputs: Sequence[onnx_ir.Value]) -> OnnxStage:
    """Lower nodes to one graph that is valid for all elements of its inputs.

    Raises:
        NotSupportedError: a node needs the host, or elements of its inputs.
    """
    module = lowering.module
    try:
        lowered = lowering.run(nodes, outputs)
    except ValueNeeded as wait:
        raise refusal(module, f"a shape or an option depends on the elements of '{wait.values[0].name}'") from None
    for placed in (p for p in lowered.placed if p.where == "host"):
        raise refusal(module, f"node '{placed.name}' ({placed.op}) needs the host: {placed.note}")
    for value in lowered.guards:
        raise refusal(module, f"a shape or an option depends on the elements of '{value.name}'")
    for node in lowered.rest:
        raise module.refusal(node, "it needs elements that the device computes; the model's caches cannot stay there")
    return lowered


def refusal(module: OnnxModule, reason: str) -> NotSupportedError:
    """Return the error of a model whose caches cannot stay on the device."""
    return NotSupportedError(f"{module.name}: {reason}; its caches cannot stay on the device", operator="load")
