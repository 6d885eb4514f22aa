"""A model for its programs: constants, graphs of control flow, and refusals."""

from __future__ import annotations

from webnn_wgpu import MLContext, NotSupportedError, ml
from webnn_wgpu.api.tuning import TuningSource

from ..common.held import Array
from ..common.module import ModelModule
from ..description import Placed
from .contents import BROKEN, TfjsFile
from .tensors import TfjsNode, TfjsValue


class TfjsModule(ModelModule[TfjsValue, TfjsNode]):
    """A model and the meaning of its nodes.

    Args:
        file: the file.
        constants: the names of the weights, by the values that they are.
        fallback: the treatment of nodes for the host: "host" and "warn" run them there, "error" refuses them.
        wide_float16: whether float16 values between nodes are stored as float32.
        tuning: the tuning of its graphs.
    """

    broken = BROKEN

    def __init__(
        self,
        file: TfjsFile,
        constants: dict[TfjsValue, str],
        fallback: str = "warn",
        wide_float16: bool = False,
        tuning: TuningSource = None,
    ) -> None:
        super().__init__(file.name, fallback, wide_float16, tuning)
        self.file, self.constants = file, constants
        self._arrays: dict[str, Array] = {}
        self._reference: MLContext | None = None
        self._short = {_shortened(name): name for name in file.weights}

    @property
    def reference(self) -> MLContext:
        """The context of numpy on which nodes with known inputs are evaluated."""
        if self._reference is None:
            self._reference = ml.create_context(backend="reference")
        return self._reference

    # values and nodes -----------------------------------------------------------------------------------------------

    def is_constant(self, value: TfjsValue) -> bool:
        """Return whether the file has the elements of a value."""
        return value in self.constants

    def initializer(self, value: TfjsValue) -> Array:
        """Return the elements of a constant."""
        return self.weight(self.constants[value])

    def weight(self, name: str) -> Array:
        """Return the elements of a weight."""
        if name not in self._arrays:
            self._arrays[name] = self.file.array(name)
        return self._arrays[name]

    def weight_name(self, path: str) -> str | None:
        """Return the name of a layer's weight in the file, None if it has none.

        Keras names the cell of a recurrent layer too: "lstm/lstm_cell/kernel". TensorFlow.js leaves the last name but one out.
        """
        return path if path in self.file.weights else self._short.get(path)

    def uses(self, node: TfjsNode) -> list[TfjsValue]:
        """Return the values that a node reads, with those that its graphs read from the graph around."""
        found = dict.fromkeys(node.inputs)
        for graph in node.graphs.values():
            inside = set(graph.inputs)
            for inner in graph.nodes:
                found.update({v: None for v in self.uses(inner) if v not in inside})
                inside.update(inner.outputs)
            found.update({v: None for v in graph.outputs if v not in inside})
        return list(found)

    def placed(self, node: TfjsNode, where: str, note: str = "") -> Placed:
        """Return the record of the place where a node runs."""
        return Placed(node.name, node.op, where, note)

    # refusals -------------------------------------------------------------------------------------------------------

    def refusal(self, node: TfjsNode, reason: str) -> NotSupportedError:
        """Return the error that names a node, its operator and the reason why it cannot run."""
        return self.refusal_of(node.op, node.name, reason, "node" if node.path is None else "layer")

    def refusal_of(self, op: str, name: str, reason: str, kind: str) -> NotSupportedError:
        """Return the error of a node, or of a layer within a layer."""
        return NotSupportedError(f"{self.name}: {kind} '{name}' cannot run: {reason}", operator=op, label=name)


def _shortened(name: str) -> str:
    """Return the name of a weight without the last name but one.

    Example:
        >>> _shortened("bidirectional/forward_lstm/lstm_cell_1/kernel")
        'bidirectional/forward_lstm/kernel'
    """
    parts = name.split("/")
    return "/".join([*parts[:-2], parts[-1]])
