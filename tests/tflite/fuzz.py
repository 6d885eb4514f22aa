"""Fuzzes the TFLite importer: small models, broken at random, must load or be refused with one of the package's errors.

    python -m tests.tflite.fuzz --seconds 60 --seed 1 [--findings DIR] [--models DIR]

A worker mutates the cases of one operator, or the models of a folder, and loads, lowers and sometimes runs them. It changes
bytes, or numbers and references of the parsed file. `tests/fuzzing.py` says what a finding is.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tests.fuzzing import main, mutate_bytes
from tests.tflite.cases import cases

SIZES = (0, 1, -1, 2, 3, 7, 127, 128, 255, 2**16, 2**31 - 1, -(2**31))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"))

MOST_ELEMENTS = 1 << 18
"""The maximum number of elements of the inputs of a mutant that is run."""

MOST_BYTES = 1 << 26
"""The maximum size of the intermediate values and results of a graph that is run."""


def _number(rng: random.Random, value: Any) -> Any:
    """Return another value of the kind of a value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return rng.choice(FLOATS)
    return rng.choice((*SIZES, value + 1, value - 1))


def _mutate_fields(rng: random.Random, record: Any) -> None:
    """Change a field of a record of the file: a number, an element of a list, or a record below it."""
    names = [name for name, value in vars(record).items() if value is not None]
    if not names:
        return
    name = rng.choice(names)
    value = getattr(record, name)
    if isinstance(value, (bool, int, float)):
        setattr(record, name, _number(rng, value))
    elif isinstance(value, bytes):
        setattr(record, name, rng.choice((b"", b"\xff\xfe", value[:1], value * 3)))
    elif isinstance(value, (list, np.ndarray)):
        _mutate_list(rng, record, name, list(value))
    else:
        _mutate_fields(rng, value)


def _mutate_list(rng: random.Random, record: Any, name: str, items: list[Any]) -> None:
    if not items or rng.random() < 0.05:
        setattr(record, name, None)
        return
    at = rng.randrange(len(items))
    if isinstance(items[at], (bool, int, float, np.generic)):
        match rng.randrange(4):
            case 0:
                del items[at]
            case 1:
                items.insert(at, items[at])
            case _:
                value = items[at]
                items[at] = _number(rng, value.item() if isinstance(value, np.generic) else value)
        if name == "data":
            items = [int(i) & 255 for i in items]
        setattr(record, name, items)
    elif rng.random() < 0.2:
        getattr(record, name).insert(at, items[rng.randrange(len(items))])
    elif rng.random() < 0.1:
        del getattr(record, name)[at]
    else:
        _mutate_fields(rng, items[at])


def mutate_model(rng: random.Random, data: bytes) -> bytes | None:
    """Return a file with some of its numbers and references changed. None if the schema cannot read or write it."""
    try:
        model = schema.ModelT.InitFromPackedBuf(data, 0)
    except struct.error:
        # A corpus may have broken files, of which only bytes can change.
        return None
    for _ in range(rng.choice((1, 1, 2, 3))):
        part = rng.choice((model, *(model.subgraphs or ()), *(model.operatorCodes or ())))
        for inner in ("tensors", "operators"):
            if getattr(part, inner, None) and rng.random() < 0.6:
                part = rng.choice(getattr(part, inner))
        _mutate_fields(rng, part)
    builder = flatbuffers.Builder(len(data) + 1024)
    try:
        builder.Finish(model.Pack(builder), b"TFL3")
    except Exception:
        # A number that does not fit its field.
        return None
    return bytes(builder.Output())


def one(seed: int, corpus: list[bytes], context: Any) -> str:
    """Run one mutant and return its verdict. Any exception but the package's own is a finding."""
    import webnn_wgpu as wn
    from webnn_wgpu.frontends.tflite import load_model

    rng = random.Random(seed)
    data = rng.choice(corpus)
    mutant = mutate_bytes(rng, data) if rng.random() < 0.4 else mutate_model(rng, data)
    if mutant is None:
        return "not written"
    try:
        with load_model(mutant, lambda: context, fallback=rng.choice(("host", "error"))) as loaded:
            shapes = [[d if isinstance(d, int) else 2 for d in i.shape or (2, 2)] for i in loaded.inputs]
            if sum(float(np.prod([float(d) for d in shape])) for shape in shapes) > MOST_ELEMENTS:
                return "too large to run"
            plans = [graph.plan for graph in loaded.graphs if graph.plan is not None]
            if any(p.unshared_bytes + sum(t.size_bytes for t in p.outputs.values()) > MOST_BYTES for p in plans):
                return "too large to run"
            arrays = {
                i.name: np.asarray(np.random.default_rng(seed).integers(0, 3, shape)).astype(i.dtype)
                for i, shape in zip(loaded.inputs, shapes, strict=True)
            }
            loaded.run(arrays)
            return "ran"
    except wn.WebNNError as error:
        return f"refused: {type(error).__name__}"


def corpus_of(folder: Path | None) -> list[bytes]:
    """Return the models to mutate: those of a folder, or the cases of one operator."""
    if folder is None:
        return [case.model() for case in cases()]
    return [path.read_bytes() for path in sorted(folder.glob("*.tflite"))]


if __name__ == "__main__":
    raise SystemExit(main("tests.tflite.fuzz", "Fuzzes the TFLite importer."))
