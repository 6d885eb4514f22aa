"""Calls of TensorFlow.js with its results and gradients, from the folder of optional data."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import webnn_wgpu.tfjs as tf
from tests.optional import TFJS

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A call of TensorFlow.js.

    Attributes:
        number: its place in the file.
        function: the name there, such as "image.resizeBilinear".
        arguments: the arguments, in which tensors are arrays.
        results: the results.
        keys: the names of the results, where there are any.
        weights: the factors of the first result, of which the gradients are.
        gradients: the gradients with respect to the float tensors.
    """

    number: int
    function: str
    arguments: Sequence[Any]
    results: Sequence[Array]
    keys: Sequence[str]
    weights: Array | None
    gradients: Sequence[Array]

    @property
    def id(self) -> str:
        """The name of the test."""
        return f"{self.number}-{self.function}"

    def call(self, arguments: Sequence[Any]) -> list[tf.Tensor]:
        """Return what the package's function makes of arguments."""
        function: Any = tf
        for part in self.function.split("."):
            function = getattr(function, snake(part))
        found = function(*arguments)
        if self.keys:
            return [getattr(found, snake(key)) for key in self.keys]
        return [found] if isinstance(found, tf.Tensor) else list(found)


@functools.cache
def cases() -> Sequence[Case]:
    """Return the cases; none where the data is absent."""
    folder = TFJS.folder()
    if folder is None:
        return ()
    found = json.loads((folder / "ops.json").read_text())["cases"]
    return [
        Case(
            number=number,
            function=each["fn"],
            arguments=[_argument(argument) for argument in each["args"]],
            results=[_argument(result) for result in each["outputs"]],
            keys=each.get("keys", []),
            weights=_argument(each["weights"]) if "weights" in each else None,
            gradients=[_argument(gradient) for gradient in each.get("gradients", [])],
        )
        for number, each in enumerate(found)
    ]


def snake(name: str) -> str:
    """Return a name in Python's spelling."""
    apart = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name.replace("NaN", "Nan"))
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", apart).lower()


def _argument(given: Any) -> Any:
    """Return a tensor of the file as an array, and other arguments as they are."""
    if isinstance(given, list):
        return [_argument(each) for each in given]
    if isinstance(given, dict) and "tensor" in given:
        tensor = given["tensor"]
        return np.array(tensor["data"], dtype=np.float64).astype(tensor["dtype"]).reshape(tensor["shape"])
    return given


def with_tensors(arguments: Sequence[Any]) -> tuple[list[Any], list[tf.Tensor]]:
    """Return arguments with tensors for arrays, and the tensors of floats."""
    floats: list[tf.Tensor] = []

    def made(given: Any) -> Any:
        if isinstance(given, np.ndarray):
            tensor = tf.tensor(given, dtype=str(given.dtype))
            if tensor.dtype == "float32":
                floats.append(tensor)
            return tensor
        if isinstance(given, list) and any(isinstance(each, np.ndarray) for each in given):
            return [made(each) for each in given]
        return given

    return [made(each) for each in arguments], floats
