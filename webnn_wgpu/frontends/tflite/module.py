"""A model for its programs: constants, uses of subgraphs, custom operators and refusals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from webnn_wgpu import MLContext, NotSupportedError, ml
from webnn_wgpu.api.tuning import TuningSource

from ..common.held import Array
from ..common.module import ModelModule
from ..description import Placed
from .constants import Constants
from .contents import TfliteFile
from .reading import BROKEN
from .tensors import TfliteGraph, TfliteNode, TfliteValue

if TYPE_CHECKING:
    from .call import TfliteCall

log = logging.getLogger(__name__)

DEEPEST = 8
"""The maximum depth of subgraphs that run or evaluate each other."""

CustomLowering = Callable[["TfliteCall"], Any]


class TfliteModule(ModelModule[TfliteValue, TfliteNode]):
    """A model and the meaning of its nodes.

    Args:
        file: the parsed file.
        fallback: the treatment of nodes for the host: "host" and "warn" run them there, "error" refuses them.
        custom_operators: functions that lower custom operators, by the operators' names.
        wide_float16: whether float16 values between nodes are stored as float32.
        tuning: the tuning of its graphs.
    """

    broken = BROKEN

    def __init__(
        self,
        file: TfliteFile,
        fallback: str = "warn",
        custom_operators: Mapping[str, CustomLowering] | None = None,
        wide_float16: bool = False,
        tuning: TuningSource = None,
    ) -> None:
        super().__init__(file.name, fallback, wide_float16, tuning)
        self.file = file
        self.custom_operators = dict(custom_operators or {})
        self.constants = Constants(file)
        self._reference: MLContext | None = None

    @property
    def reference(self) -> MLContext:
        """The context of numpy on which nodes with known inputs are evaluated."""
        if self._reference is None:
            self._reference = ml.create_context(backend="reference")
        return self._reference

    # values and nodes -----------------------------------------------------------------------------------------------

    def is_constant(self, value: TfliteValue) -> bool:
        """Return whether the file has the elements of a value."""
        return self.constants.has(value.record)

    def initializer(self, value: TfliteValue) -> Array:
        """Return the elements of a constant."""
        return self.constants.array(value.subgraph, value.record)

    def uses(self, node: TfliteNode) -> list[TfliteValue]:
        """Return the values that a node reads."""
        return [v for v in node.inputs if v is not None]

    def placed(self, node: TfliteNode, where: str, note: str = "") -> Placed:
        """Return the record of the place where a node runs."""
        return Placed(node.label, node.record.name, where, note)

    def graph(self, index: int, inputs: Sequence[TfliteValue] | None = None, variables: Sequence[str] = ()) -> TfliteGraph:
        """Return a new use of a subgraph.

        Args:
            index: the subgraph.
            inputs: the values that stand for its inputs. New ones by default.
            variables: the path of uses that leads to this one, a part of the keys of variable tensors.
        """
        if not 0 <= index < len(self.file.subgraphs):
            raise NotSupportedError(f"{self.name}: an operator uses subgraph {index}, which is missing")
        record = self.file.subgraphs[index]
        values = [
            TfliteValue(
                record=t,
                subgraph=index,
                variable=("tensor", *variables, str(index), str(t.index)) if t.is_variable else None,
            )
            for t in record.tensors
        ]
        for number, value in zip(record.inputs, inputs or (), strict=False):
            values[number] = value
        nodes = [
            TfliteNode(
                record=operator,
                subgraph=index,
                inputs=tuple(None if i < 0 else values[i] for i in operator.inputs),
                outputs=tuple(values[i] for i in operator.outputs),
            )
            for operator in record.operators
        ]
        return TfliteGraph(
            nodes=nodes,
            inputs=[values[i] for i in record.inputs],
            outputs=[values[i] for i in record.outputs],
            values=values,
        )

    # refusals -------------------------------------------------------------------------------------------------------

    def refusal(self, node: TfliteNode, reason: str) -> NotSupportedError:
        """Return the error that names a node, its operator and the reason why it cannot run."""
        record = node.record
        kind = "custom operator" if record.custom else "operator"
        where = f" of subgraph {node.subgraph}" if node.subgraph else ""
        return NotSupportedError(
            f"{self.name}: node {record.index}{where} ('{node.label}') cannot run: {reason}",
            operator=record.name,
            label=node.label,
            got=f"{kind} {record.name}, version {record.version}",
        )
