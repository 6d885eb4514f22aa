"""Fuzzes the ONNX importer: valid small models, broken at random, must load or be refused with one of the package's errors.

    python -m tests.onnx.fuzz --seconds 60 --seed 1 [--findings DIR] [--models DIR]

A worker mutates the `onnx` package's test models, or those of a folder, and loads, lowers and sometimes runs them.
`tests/fuzzing.py` says what a finding is.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.fuzzing import main, mutate_bytes

SIZES = (0, 1, -1, 2, 3, 7, 255, 2**16, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"))


def mutate_model(rng: random.Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with a few of its parts replaced by others that are wrong, extreme or merely different."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for _ in range(rng.choice((1, 1, 2, 3))):
        _mutate_once(rng, model)
    return model


def _mutate_attribute(rng: random.Random, attribute: onnx.AttributeProto) -> None:
    if attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(SIZES)
    elif attribute.floats:
        attribute.floats[rng.randrange(len(attribute.floats))] = rng.choice(FLOATS)
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(SIZES)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = rng.choice((b"", b"\xff\xfe", b"constant", b"NOTSET", b"linear"))
    else:
        attribute.type = rng.choice((1, 2, 3, 4, 5, 6, 7, 8))


def _mutate_once(rng: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    nodes = list(graph.node)
    node = rng.choice(nodes) if nodes else None
    names = [n for o in nodes for n in (*o.input, *o.output)]
    match rng.randrange(11):
        case 0 if node and node.attribute:
            _mutate_attribute(rng, rng.choice(list(node.attribute)))
        case 1 if node and node.attribute:
            del node.attribute[rng.randrange(len(node.attribute))]
        case 2 if node and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice((*names, "", "nobody"))
        case 3 if node and node.input:
            del node.input[rng.randrange(len(node.input))]
        case 4 if node and node.output:
            node.output[rng.randrange(len(node.output))] = rng.choice((*names, ""))
        case 5 if node:
            node.op_type = rng.choice([s.name for s in onnx.defs.get_all_schemas()])
        case 6 if graph.input or graph.output:
            tensor = rng.choice([*graph.input, *graph.output]).type.tensor_type
            tensor.elem_type = rng.randrange(27)
        case 7 if graph.input:
            shape = rng.choice(list(graph.input)).type.tensor_type.shape
            if shape.dim and rng.random() < 0.7:
                shape.dim[rng.randrange(len(shape.dim))].dim_value = rng.choice(SIZES)
            else:
                shape.dim.add().dim_value = rng.choice(SIZES)
        case 8 if graph.initializer:
            tensor = rng.choice(list(graph.initializer))
            if rng.random() < 0.5 and tensor.dims:
                tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)
            elif rng.random() < 0.5:
                tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]
            else:
                tensor.data_type = rng.randrange(27)
        case 9 if nodes:
            graph.node.add().CopyFrom(rng.choice(nodes))
        case _ if model.opset_import:
            rng.choice(list(model.opset_import)).version = rng.choice((0, 1, 6, 7, 8, 10, 13, 17, 21, 28, 99, -1))


def to_initializers(rng: random.Random, model: onnx.ModelProto, inputs: list[Any]) -> onnx.ModelProto:
    """Return the model with some of its inputs made initializers, so that more is evaluated while it loads."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for value, array in zip(list(model.graph.input), inputs, strict=False):
        if rng.random() < 0.5 and isinstance(array, (np.ndarray, onnx.TensorProto)):
            tensor = array if isinstance(array, onnx.TensorProto) else onnx.numpy_helper.from_array(array)
            model.graph.initializer.add().CopyFrom(tensor)
            model.graph.initializer[-1].name = value.name
            model.graph.input.remove(value)
    return model


def one(seed: int, corpus: list[Any], context: Any) -> str:
    """Run one mutant; return what became of it. Any exception but the package's own is a finding."""
    import webnn_wgpu as wn

    rng = random.Random(seed)
    case = rng.choice(corpus)
    model = to_initializers(rng, case.model, case.data[0][0] if case.data else [])
    if rng.random() < 0.3:
        source: Any = mutate_bytes(rng, model.SerializeToString())
    else:
        source = mutate_model(rng, model)
    try:
        with wn.load_onnx(source, context, fallback=rng.choice(("host", "error"))) as loaded:
            sizes = [[d if isinstance(d, int) else 2 for d in i.shape or (2, 2)] for i in loaded.inputs]
            if sum(int(np.prod([float(s) for s in shape])) for shape in sizes) > 1 << 20:
                return "too large to run"
            arrays = {
                i.name: np.random.default_rng(seed).integers(0, 3, shape).astype(i.dtype)
                for i, shape in zip(loaded.inputs, sizes, strict=True)
            }
            loaded.run(arrays)
            return "ran"
    except wn.WebNNError as error:
        return f"refused: {type(error).__name__}"


def corpus_of(folder: Path | None) -> list[Any]:
    """Return the models to mutate: those of a folder, or the `onnx` package's."""
    from tests.onnx.backend import Case, cases

    if folder is None:
        return cases()
    return [Case(path.stem, onnx.load(path), [], 0, 0) for path in sorted(folder.glob("*.onnx"))]


if __name__ == "__main__":
    raise SystemExit(main("tests.onnx.fuzz", "Fuzzes the ONNX importer."))
