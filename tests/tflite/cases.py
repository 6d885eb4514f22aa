"""Models of one operator with the results of TFLite's kernels, and the rules by which a result agrees with them."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.optional import TFLITE

VARIANTS = ("out", "opt", "xnn")
"""The implementations of TFLite: the expected results, kernels without delegates, XNNPACK."""

WIDE = ("GELU", "EXP", "SOFTMAX", "LOGISTIC", "TANH")
"""Operators whose results of 16 bits may be 8 steps off."""

TOLERANCES = {"POW": 1e-4, "LOCAL_RESPONSE_NORMALIZATION": 1e-4, "EXP": 2e-5, "RSQRT": 2e-5, "Mfcc": 1e-3}
"""Relative errors of operators; of others 1e-5, of LSTMs 2e-5."""

EXPLAINED = {
    "div_uint8": "TFLite's fixed-point division is off by up to 3 steps for small dividends",
    "rsqrt_int16_0": "TFLite's table has 24842 for the root of one step, where 11180 is right",
    "rsqrt_int16_1": "TFLite's table has 24842 for the root of one step, where 11180 is right",
    "fully_connected_hybrid_sym_axis_4": "2 % of the largest sum, but the activation limits the results to 1",
}
"""Cases whose results differ, and the reason."""


@dataclass(frozen=True)
class TfliteCase:
    """A model of one operator."""

    name: str
    op: str
    runs: int
    inputs: tuple[str, ...]

    def __repr__(self) -> str:
        return self.name

    def read(self, member: str) -> bytes:
        """Return the bytes of one of the case's files."""
        return _archive().read(f"{self.name}/{member}")

    def array(self, member: str) -> np.ndarray | None:
        """Return one of the case's arrays; None if there is no such file."""
        if f"{self.name}/{member}.npy" not in _members():
            return None
        return np.load(io.BytesIO(self.read(f"{member}.npy")))

    def model(self) -> bytes:
        """Return the model's file."""
        return self.read("model.tflite")

    def feeds(self) -> list[np.ndarray]:
        """Return the inputs."""
        found = [self.array(f"in_{i}") for i in range(len(self.inputs))]
        return [a for a in found if a is not None]

    def disagreement(self, run: int, index: int, result: np.ndarray) -> str:
        """Return how a result differs from that of every implementation, "" if it agrees with one."""
        found: list[str] = []
        for variant in VARIANTS:
            expected = self.array(f"{variant}_{run}_{index}")
            if expected is not None:
                found.append(self._difference(result, expected))
        return "" if "" in found else found[0]

    def _difference(self, result: np.ndarray, expected: np.ndarray) -> str:
        if result.dtype != expected.dtype or result.shape != expected.shape:
            return f"{result.dtype}{list(result.shape)} is not {expected.dtype}{list(expected.shape)}"
        if not result.size:
            return ""
        if result.dtype.kind in "iub":
            steps = {1: 1, 2: 8 if self.op in WIDE else 2}.get(result.dtype.itemsize, 0)
            steps = 0 if result.dtype.kind == "b" else steps
            off = int(np.abs(result.astype(np.int64) - expected.astype(np.int64)).max())
            return "" if off <= steps else f"off by {off} steps"
        a, b = result.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return "infinities or NaN differ"
        error, size = np.abs(a - b)[finite], np.abs(b)[finite]
        largest = float(size.max(initial=0))
        if result.dtype == np.float16:
            allowed = 2e-3 * (size + largest)
        elif "hybrid" in self.name or "blockwise" in self.name:
            allowed = np.full(size.shape, 2e-2 * largest)
        else:
            allowed = TOLERANCES.get(self.op, 2e-5 if "LSTM" in self.op else 1e-5) * (size + largest)
        return "" if (error <= allowed).all() else f"off by {error.max():.3g} of {largest:.3g}"


@cache
def _archive() -> zipfile.ZipFile:
    folder = TFLITE.folder()
    assert folder is not None
    return zipfile.ZipFile(folder / "cases" / "ops.zip")


@cache
def _members() -> frozenset[str]:
    return frozenset(_archive().namelist())


def cases() -> list[TfliteCase]:
    """Return all cases; none if the data are not there."""
    if TFLITE.folder() is None:
        return []
    listed: list[dict[str, Any]] = json.loads(_archive().read("cases.json"))["cases"]
    return [TfliteCase(c["name"], c["op"], c["runs"], tuple(c["inputs"])) for c in listed]


def folder_of(name: str) -> Path | None:
    """Return a folder of the data; None if the data are not there."""
    found = TFLITE.folder()
    return None if found is None else found / name
