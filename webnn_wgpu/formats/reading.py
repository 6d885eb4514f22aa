"""Reads a graph file, and finds the arrays of its constants."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from ..core.data_types import Array
from .constants import from_bytes, from_number, from_stored
from .document import Constant, Document, FileError, InlineBytes, Location, ScalarFill
from .graph_json import parse_json
from .text import parse_text
from .weights import WeightsFile, candidates, open_weights


def read(path: str | os.PathLike[str]) -> Document:
    """Read a graph file, as text or as JSON: JSON begins with a brace.

    Raises:
        FileError: a file that is wrong. The message names the place.
        FileNotFoundError: no such file.
    """
    file = os.fspath(path)
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(Location(file), f"the file is no UTF-8 text, at byte {error.start}") from None
    return (parse_json if text.lstrip().startswith("{") else parse_text)(text, file)


class ConstantArrays:
    """The arrays of a document's constants. The file of weights is opened when a constant needs it.

    Args:
        document: the document.
        weights: the file of weights. By default it is searched beside the graph file.
        manifest: the manifest of a blob of weights. By default it is searched too.
    """

    def __init__(
        self,
        document: Document,
        weights: str | os.PathLike[str] | None = None,
        manifest: str | os.PathLike[str] | None = None,
    ) -> None:
        self.graph = Path(document.location.file)
        self.explicit = weights
        self.manifest = None if manifest is None else self._beside(manifest)

    def _beside(self, path: str | os.PathLike[str]) -> Path:
        """Return a path as it is given, or beside the graph file if it is relative and only there."""
        given, beside = Path(path), self.graph.parent / path
        return beside if not given.is_absolute() and not given.exists() and beside.exists() else given

    @cached_property
    def weights(self) -> WeightsFile | None:
        """The file of weights, or None where none is found."""
        if self.explicit is not None:
            return open_weights(self._beside(self.explicit), self.graph, self.manifest)
        path = next((p for p in candidates(self.graph) if p.exists()), None)
        return None if path is None else open_weights(path, self.graph, self.manifest)

    def array(self, constant: Constant) -> Array:
        """Return a constant's array.

        Raises:
            FileError: content of another size, type or shape than declared, or no tensor of the constant's key.
        """
        declaration, init = constant.declaration, constant.init
        if isinstance(init, ScalarFill):
            return from_number(declaration, constant.shape, init.value)
        if isinstance(init, InlineBytes):
            return from_bytes(declaration, constant.shape, init.data)
        if self.weights is None:
            names = ", ".join(p.name for p in candidates(self.graph))
            raise FileError(
                declaration.location,
                f"there is no file of weights for constant '{declaration.name}'",
                hint=f"Looked for {names}.",
            )
        tensor = self.weights.find(init.key)
        if tensor is None:
            raise FileError(
                declaration.location,
                f"no tensor '{init.key}' for constant '{declaration.name}'",
                got=f"{len(self.weights.tensors)} tensors in {self.weights.location}",
            )
        return from_stored(declaration, constant.shape, tensor, self.weights.location)
