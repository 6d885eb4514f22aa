"""Data of others that tests use where it is there. A run says at its end what was not; tests of it do not exist then."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class OptionalData:
    """A folder of data.

    Attributes:
        what: for people.
        path: where it lies in the folder of all optional data.
    """

    what: str
    path: str

    def folder(self) -> Path | None:
        """Return the folder; None where it is absent."""
        found = shared_folder() / self.path
        return found if found.is_dir() else None


CONFORMANCE = OptionalData("conformance cases of web-platform-tests, webnn-baseline and webnn-polyfill", "conformance")

GRAPH_FILES = OptionalData("graph files as other programs write them", "formats/samples")

TFLITE = OptionalData("TFLite cases, files and models of others", "tflite")

TFJS = OptionalData("calls and models of TensorFlow.js, with its results", "tfjs")

ALL = (CONFORMANCE, GRAPH_FILES, TFLITE, TFJS)


def shared_folder() -> Path:
    """Return the folder of all optional data, whether it is there or not."""
    return Path(os.environ.get("WEBNN_WGPU_SHARED") or REPOSITORY.parent / "shared")


def absent() -> str:
    """Return one line about the data that is absent; "" where all is there."""
    names = [each.what for each in ALL if each.folder() is None]
    where = "WEBNN_WGPU_SHARED names their folder, ../shared by default"
    return f"not tested, since it is not there: {'; '.join(names)} ({where})" if names else ""
