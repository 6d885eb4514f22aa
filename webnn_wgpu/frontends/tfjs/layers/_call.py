"""The interface of layers to the model that they are a part of, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from webnn_wgpu import MLGraphBuilder, MLOperand, NotSupportedError

from ...common.calls import OperatorCall
from ...common.held import Array
from ..contents import fields


@dataclass(frozen=True)
class Flow:
    """A tensor between layers, and where its steps count, [batch, steps] of uint8."""

    operand: MLOperand
    mask: MLOperand | None = None


class Training(Protocol):
    """The side effects of layers while a model is trained."""

    def key(self) -> MLOperand:
        """Return a key of random numbers that no other layer has, uint32 [2], other in each step."""
        ...

    def update(self, path: str, value: MLOperand) -> None:
        """Give a weight that no gradient changes a new value after the step."""
        ...


class LayerScope(Protocol):
    """The graph that layers are added to."""

    @property
    def builder(self) -> MLGraphBuilder:
        """The builder of the graph."""
        ...

    @property
    def training(self) -> Training | None:
        """The training. None if the model only predicts."""
        ...

    def weight(self, path: str) -> MLOperand | None:
        """Return a weight by the name that the layer gives it, or None if the model has none."""
        ...

    def constant(self, array: Array) -> MLOperand:
        """Return a constant."""
        ...

    def refusal(self, kind: str, label: str, reason: str) -> NotSupportedError:
        """Return the error of a layer that cannot run."""
        ...


class LayerCall(OperatorCall):
    """A layer with its inputs, and the builder that receives its operators.

    Attributes:
        scope: the graph.
        kind: the class of the layer.
        config: its configuration.
        path: the name that its weights begin with.
        inputs: its inputs.
    """

    def __init__(
        self, scope: LayerScope, kind: str, config: Mapping[str, Any], path: str, inputs: Sequence[Flow], label: str
    ) -> None:
        super().__init__(scope.builder, label)
        self.scope, self.kind, self.config, self.path, self.inputs = scope, kind, config, path, inputs

    @property
    def x(self) -> MLOperand:
        """The first input."""
        return self.inputs[0].operand if self.inputs else self.fail("it has no input")

    @property
    def mask(self) -> MLOperand | None:
        """The mask of the first input."""
        return self.inputs[0].mask if self.inputs else None

    @property
    def training(self) -> Training | None:
        """The training. None if the model only predicts."""
        return self.scope.training

    def stored(self, array: Array) -> MLOperand:
        """Return the constant operand of an array of a held data type."""
        return self.scope.constant(array)

    def fail(self, reason: str) -> NoReturn:
        """Raise the error of a layer that no backend can run.

        Raises:
            NotSupportedError: always. The message names the layer, its class and the reason.
        """
        raise self.scope.refusal(self.kind, self.label, reason)

    # weights --------------------------------------------------------------------------------------------------------

    def optional_weight(self, name: str, shape: Sequence[int] | None = None) -> MLOperand | None:
        """Return a weight, or None if the model has none of the name.

        Raises:
            NotSupportedError: the weight has another shape.
        """
        found = self.scope.weight(f"{self.path}/{name}")
        if found is not None and shape is not None and tuple(found.shape) != tuple(shape):
            self.fail(f"weight '{self.path}/{name}' has the shape {list(found.shape)}, not {list(shape)}")
        return found

    def weight(self, name: str, shape: Sequence[int] | None = None) -> MLOperand:
        """Return a weight that the layer must have.

        Raises:
            NotSupportedError: the model has no such weight, or one of another shape.
        """
        found = self.optional_weight(name, shape)
        return self.fail(f"the model has no weight '{self.path}/{name}'") if found is None else found

    # configuration --------------------------------------------------------------------------------------------------

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an entry of the configuration that is true or false."""
        value = self.config.get(name)
        return default if value is None else bool(value)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number of the configuration."""
        value = self.config.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            self.fail(f"{name} is {value!r}, which must be a number")
        return float(value)

    def integer(self, name: str, default: int | None = None, least: int = 1) -> int:
        """Return a whole number of the configuration."""
        value = self.config.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(f"{name} is {value!r}, which must be a whole number of at least {least}")
        return value

    def integers(self, name: str, count: int, default: int | None = None, least: int = 1) -> list[int]:
        """Return whole numbers of the configuration. A single one stands for all of them."""
        value = self.config.get(name)
        value = default if value is None else value
        values: list[Any] = list(value) if isinstance(value, list | tuple) else [value] * count  # pyright: ignore[reportUnknownArgumentType]
        if len(values) == 1:
            values *= count
        if len(values) != count or not all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in values):
            self.fail(f"{name} is {value!r}, which must be {count} whole numbers of at least {least}")
        return values

    def choice(self, name: str, default: str, *others: str) -> str:
        """Return a word of the configuration, in snake case."""
        value = self.config.get(name)
        words = (default, *others)
        found = default if value is None else value
        found = (
            {"channelsFirst": "channels_first", "channelsLast": "channels_last"}.get(found, found)
            if isinstance(found, str)
            else found
        )
        return found if found in words else self.fail(f"{name} is {value!r}; allowed: {', '.join(words)}")

    def channels_first(self) -> bool:
        """Return whether the channels come before the spatial dimensions."""
        return self.choice("data_format", "channels_last", "channels_first") == "channels_first"

    def axes_of(self, value: Any, rank: int) -> list[int]:
        """Return axes counted from the front, from one number or a list."""
        values: list[Any] = list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]
        if not values or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            self.fail(f"axes {value!r}")
        return sorted(set(self.axes(values, rank)))

    # operands -------------------------------------------------------------------------------------------------------

    def last(self, operand: MLOperand) -> MLOperand:
        """Return an operand with its channels moved from the second to the last dimension."""
        rank = len(operand.shape)
        return self.transpose(operand, [0, *range(2, rank), 1])

    def first(self, operand: MLOperand) -> MLOperand:
        """Return an operand with its channels moved from the last to the second dimension."""
        rank = len(operand.shape)
        return self.transpose(operand, [0, rank - 1, *range(1, rank - 1)])

    def ranked(self, *ranks: int) -> MLOperand:
        """Return the first input, which must have one of some ranks."""
        x = self.x
        if len(x.shape) not in ranks:
            self.fail(f"an input of shape {list(x.shape)}, which must have {' or '.join(map(str, ranks))} dimensions")
        return x

    def ones(self, shape: Sequence[int]) -> MLOperand:
        """Return a tensor of ones."""
        return self.build.expand(self.constant(1.0, "float32"), list(shape)) if shape else self.constant(1.0, "float32")

    def zeros(self, shape: Sequence[int]) -> MLOperand:
        """Return a tensor of zeros."""
        return self.build.expand(self.constant(0.0, "float32"), list(shape))

    def dropped(self, x: MLOperand, rate: float, shape: Sequence[int | None] | None = None) -> MLOperand:
        """Return an operand of which a share is 0, and the others are scaled up. Without training it stays as it is.

        Args:
            x: the operand.
            rate: the share.
            shape: the sizes of the mask: 1 drops whole dimensions. None is the operand's size.
        """
        if self.training is None or not 0 < rate < 1:
            return x
        if shape is None:
            return self.build.ext.dropout(x, self.training.key(), rate)
        sizes = [own if d is None else d for d, own in zip(shape, x.shape, strict=True)]
        return self.build.mul(x, self.build.ext.dropout(self.ones(sizes), self.training.key(), rate))

    # other layers ---------------------------------------------------------------------------------------------------

    def inner(self, entry: Any, inputs: Sequence[Flow], path: str) -> LayerCall:
        """Return a call of a layer that this one is made of.

        Args:
            entry: its class and configuration, as the file has them.
            inputs: its inputs.
            path: the name that its weights begin with.
        """
        content = fields(entry)
        kind, config = content.get("class_name"), fields(content.get("config"))
        if not isinstance(kind, str) or not isinstance(content.get("config"), dict):
            self.fail("the layer inside it has no class and configuration")
        return LayerCall(self.scope, kind, config, path, inputs, f"{self.label}/{config.get('name', kind)}")

    def results(self) -> list[Flow]:
        """Return the results of the layer."""
        found = LAYERS.get(self.kind)
        if found is None:
            self.fail("TensorFlow.js has no layer of this class, or a layer of one's own")
        results = found.compute(self)
        flows = [Flow(results)] if isinstance(results, MLOperand) else [f if isinstance(f, Flow) else Flow(f) for f in results]
        if found.masks and self.mask is not None:
            flows = [Flow(f.operand, self.mask if f.mask is None else f.mask) for f in flows]
        return flows


Compute = Callable[[LayerCall], "MLOperand | Sequence[MLOperand | Flow]"]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The function of a class of layers.

    Attributes:
        compute: adds the layer to a graph.
        masks: whether the result has the mask of the input.
    """

    compute: Compute
    masks: bool = False


LAYERS: dict[str, Layer] = {}
"""The layers by class."""


def layer(*kinds: str, masks: bool = False) -> Callable[[Compute], Compute]:
    """Register the function of classes of layers."""

    def register(compute: Compute) -> Compute:
        for kind in kinds:
            assert kind not in LAYERS, f"{kind} is registered twice"
            LAYERS[kind] = Layer(compute=compute, masks=masks)
        return compute

    return register
