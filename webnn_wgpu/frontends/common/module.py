"""`ModelModule`: the meaning of a model's values and nodes, for its programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import ClassVar, Generic

from webnn_wgpu import NotSupportedError, OutOfMemoryError, WebNNError
from webnn_wgpu.api.tuning import TuningSource

from ..description import Placed, beyond_host
from .calls import OnHost
from .held import Array
from .stages import NodeT, ValueNeeded, ValueT

FALLBACKS = ("warn", "host", "error")
_ALLOW_HOST = "--fallback host or fallback='host' lets the host run it"


class ModelModule(ABC, Generic[ValueT, NodeT]):
    """A model and the meaning of its nodes.

    Args:
        name: the name of the model in messages.
        fallback: the treatment of nodes for the host: "host" and "warn" run them there, "error" refuses them.
        wide_float16: whether float16 values between nodes are stored as float32.
        tuning: the tuning of its graphs.

    Attributes:
        broken: the errors that nodes of broken files cause.
    """

    broken: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, name: str, fallback: str, wide_float16: bool, tuning: TuningSource) -> None:
        self.name, self.fallback = name, fallback
        self.wide_float16, self.tuning = wide_float16, tuning

    @abstractmethod
    def is_constant(self, value: ValueT) -> bool:
        """Return whether the file has the elements of a value."""

    @abstractmethod
    def initializer(self, value: ValueT) -> Array:
        """Return the elements of a constant.

        Raises:
            NotSupportedError: its data type is not supported, or its bytes do not match its shape.
        """

    @abstractmethod
    def uses(self, node: NodeT) -> Iterable[ValueT]:
        """Return the values that a node reads, with those that its inner graphs read."""

    @abstractmethod
    def placed(self, node: NodeT, where: str, note: str = "") -> Placed:
        """Return the record of the place where a node runs."""

    @abstractmethod
    def refusal(self, node: NodeT, reason: str) -> NotSupportedError:
        """Return the error that names a node, its operator and the reason why it cannot run."""

    @contextmanager
    def at(self, node: NodeT, activity: str) -> Generator[None]:
        """Give errors in a block the node's name. The activity is the current work, such as "lowering"."""
        try:
            yield
        except (OnHost, ValueNeeded, NotSupportedError, OutOfMemoryError):
            raise
        except WebNNError as error:
            raise self.refusal(node, f"{activity} failed: {error}") from error
        except self.broken as error:
            raise self.refusal(node, f"{activity} failed: {type(error).__name__}: {error}") from error

    def host_obstacle(self, node: NodeT) -> str:
        """Return the reason why the host cannot evaluate a node that was left to it, or "" if it can."""
        del node
        return ""

    def refuse_host(self, node: NodeT, reason: str) -> None:
        """Refuse a node for the host if the model must run on the device alone.

        Raises:
            NotSupportedError: the fallback to the host is disabled.
        """
        if self.fallback == "error":
            if obstacle := self.host_obstacle(node):
                raise self.refusal(node, beyond_host(reason, obstacle))
            refused = self.refusal(node, f"the device cannot run it: {reason}")
            raise NotSupportedError(refused.rule, operator=refused.operator, label=refused.label, hint=_ALLOW_HOST)


@contextmanager
def writing_file() -> Generator[None]:
    """Give the refusals of nodes for the host the remedy of a file, which can have no such nodes."""
    try:
        yield
    except NotSupportedError as error:
        if error.hint != _ALLOW_HOST:
            raise
        hint = "A file has nodes of the device alone: cut the model before this node"
        raise NotSupportedError(error.rule, operator=error.operator, label=error.label, hint=hint) from error
