"""Files of all kinds: those that run, and those that are refused with the reason."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.tflite.cases import cases, folder_of
from tests.tflite.models import Graph, Op, Tensor, model, single
from webnn_wgpu.frontends.tflite import load_model
from webnn_wgpu.frontends.tflite.reading import read

FILES = folder_of("files")
REAL = folder_of("real")

REFUSED = {
    "bad_constant_size": "has 192 bytes, but float32",
    "bad_empty": "it has 0 bytes",
    "bad_not_a_model": "not b'TFL3'",
    "bad_offset": "buffer 1 has bytes 768 to 960",
    "bad_operator_code": "the operator is not known",
    "bad_operator_version": "versions up to 5 are supported",
    "bad_tensor_index": "refers to tensor 77 of 4",
    "bad_truncated": "a record lies outside the file",
    "bad_unknown_custom": "custom_operators can give it a function",
    "audio_preprocessor_float": "SignalWindow",
    "blockwise_quantized": "no operator computes 'quantized_tensor'",
    "custom_sinh": "Sinh",
    "multi_add_flex": "it is an operator of TensorFlow",
    "sparse_tensor": "FakeOp",
    "string_input_model": "has the type string",
    "test_model_broken": "not b'TFL3'",
}
"""Files that are refused, and a part of the message."""

SLOW = ("conformer", "deeplabv3_mnv2_dm05_pascal_quant")
"""Models whose kernels take more than 3 seconds to compile on a software adapter."""


def files(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*.tflite")) if folder is not None else []


def feeds_of(loaded: wn.TfliteModel) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for info in loaded.inputs:
        shape = [d if isinstance(d, int) else 1 for d in info.shape or ()]
        found[info.name] = np.ones(shape, info.dtype)
    return found


@pytest.mark.parametrize("path", files(FILES), ids=lambda path: path.stem)
def test_a_file_runs_or_is_refused_with_the_reason(path: Path, context: wn.MLContext) -> None:
    if path.stem in REFUSED:
        with pytest.raises(wn.NotSupportedError, match=path.stem) as caught:
            wn.load(path, context)
        assert REFUSED[path.stem] in str(caught.value)
        return
    with wn.load(path, context) as loaded:
        assert isinstance(loaded, wn.TfliteModel)
        results = loaded.run(feeds_of(loaded))
    assert results
    assert all(np.isfinite(np.asarray(r, np.float64)).all() for r in results.values())


@pytest.mark.parametrize("path", [p for p in files(REAL) if p.stem in REFUSED], ids=lambda path: path.stem)
def test_a_model_of_others_is_refused_with_the_reason(path: Path) -> None:
    with wn.ml.create_context(backend="reference") as reference, pytest.raises(wn.NotSupportedError) as caught:
        wn.load(path, reference)
    assert REFUSED[path.stem] in str(caught.value)


@pytest.mark.parametrize("path", [p for p in files(REAL) if p.stem not in REFUSED], ids=lambda path: path.stem)
def test_a_model_of_others_is_planned_wholly_for_the_device(path: Path, context: wn.MLContext) -> None:
    from webnn_wgpu.frontends.tflite import analyze

    found = analyze(path, context)
    assert not found.problem
    on_host = [placed.op for placed in found.placement.on("host")]
    assert on_host == (["WHILE"] if path.stem == "nested_while" else [])


def test_packed_labels_are_read(context: wn.MLContext) -> None:
    if FILES is None:
        pytest.skip("no TFLite files in ../shared")
    with wn.load(FILES / "packed_labels.tflite", context) as loaded:
        assert isinstance(loaded, wn.TfliteModel)
        names, labels = loaded.packed_files, loaded.labels()
    assert len(names) == 1
    assert len(labels) == 8


def test_each_signature_runs(context: wn.MLContext) -> None:
    if FILES is None:
        pytest.skip("no TFLite files in ../shared")
    results: dict[str, np.ndarray] = {}
    for key in ("up", "down"):
        with wn.load(FILES / "two_signatures.tflite", context, signature=key) as loaded:
            results[key] = next(iter(loaded.run(feeds_of(loaded)).values()))  # pyright: ignore[reportArgumentType]
    assert not np.array_equal(results["up"], results["down"])
    with pytest.raises(wn.NotSupportedError, match="allowed: up, down"):
        wn.load(FILES / "two_signatures.tflite", context, signature="left")


def test_a_picture_shows_a_military_uniform(context: wn.MLContext) -> None:
    if REAL is None:
        pytest.skip("no TFLite models in ../shared")
    from PIL import Image

    picture = Image.open(REAL / "grace_hopper.bmp").convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    labels = (REAL / "imagenet_labels.txt").read_text().splitlines()
    with wn.load(REAL / "mobilenet_v2_1.0_224_quant.tflite", context) as loaded:
        scores = next(iter(loaded.run({loaded.inputs[0].name: np.asarray(picture)[None]}).values()))
    assert "military uniform" in labels[int(scores.argmax())]


# written here -----------------------------------------------------------------------------------------------------------


def pair(**changes: object) -> list[Tensor]:
    return [Tensor(name="x", shape=[2, 3]), Tensor(name="y", shape=[2, 3], **changes)]  # pyright: ignore[reportArgumentType]


def test_a_constant_needs_as_many_bytes_as_its_shape(context: wn.MLContext) -> None:
    tensors = [Tensor(name="x", shape=[3]), Tensor(name="c", shape=[3], data=b"1234"), Tensor(name="y", shape=[3])]
    with pytest.raises(wn.NotSupportedError, match=r"tensor 1 \('c'\) has 4 bytes, but float32\[3\] takes 12"):
        load_model(single("ADD", tensors, 1), lambda: context)


def test_an_operator_on_strings_is_refused(context: wn.MLContext) -> None:
    tensors = [Tensor(name="x", shape=[3]), Tensor(name="c", shape=[3], dtype="string"), Tensor(name="y", shape=[3])]
    with pytest.raises(wn.NotSupportedError, match=r"tensor 1 \('c'\) has the type string"):
        load_model(single("ADD", tensors, 1), lambda: context)


def test_a_huge_shape_allocates_nothing() -> None:
    huge = [Tensor(name="x", shape=[2**30, 2**30]), Tensor(name="y", shape=[2**30, 2**30])]
    with wn.ml.create_context() as context, pytest.raises(wn.WebNNError):
        load_model(single("ABS", huge, 1), lambda: context)


@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_a_huge_picture_allocates_nothing(name: str, context: wn.MLContext) -> None:
    tensors = [
        Tensor(name="x", shape=[1, 2, 2, 1]),
        Tensor(name="size", shape=[2], dtype="int32", data=np.int32([2**30, 2])),
        Tensor(name="y", shape=[1, 2**30, 2, 1]),
    ]
    with pytest.raises(wn.NotSupportedError, match=r"the size \[1073741824, 2\] must be a height and a width, at most 8388608"):
        load_model(single(name, tensors, 1), lambda: context)


@pytest.mark.parametrize("dims", [[], [0, 0], [0, 1, 2], [7]])
def test_a_gather_into_dimensions_that_slices_do_not_have_is_refused(dims: list[int], context: wn.MLContext) -> None:
    import flatbuffers

    schema = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="LiteRT's package has classes that write models")
    case = next((each for each in cases() if each.name == "stablehlo_gather"), None)
    if case is None:
        pytest.skip("the cases of shared/tflite are not there")
    found = schema.ModelT.InitFromPackedBuf(case.model())
    (node,) = found.subgraphs[0].operators
    node.builtinOptions2.offsetDims = dims
    builder = flatbuffers.Builder()
    builder.Finish(found.Pack(builder), b"TFL3")
    with pytest.raises(wn.NotSupportedError, match="of the result for slices of rank"):
        load_model(bytes(builder.Output()), lambda: context)


def test_an_unknown_fallback_is_refused(context: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError, match="unknown fallback"):
        load_model(single("ABS", pair(), 1), lambda: context, fallback="maybe")


def test_a_subgraph_that_uses_itself_is_refused(context: wn.MLContext) -> None:
    import tflite

    def options(b: object) -> int:
        tflite.CallOptionsStart(b)
        tflite.CallOptionsAddSubgraph(b, 0)
        return tflite.CallOptionsEnd(b)

    data = single("CALL", pair(), 1, options=options, options_type=tflite.BuiltinOptions.CallOptions)
    with pytest.raises(wn.NotSupportedError, match="subgraphs"):
        load_model(data, lambda: context)


def test_damaged_files_are_refused_or_run() -> None:
    data = model(
        Graph(
            tensors=[
                Tensor(name="x", shape=[2, 4], signature=[-1, 4]),
                Tensor(name="w", shape=[3, 4], data=np.ones(12)),
                Tensor(name="b", shape=[3], data=np.ones(3)),
                Tensor(name="h", shape=[2, 3]),
                Tensor(name="y", shape=[2, 3]),
            ],
            ops=[Op(name="FULLY_CONNECTED", inputs=[0, 1, 2], outputs=[3]), Op(name="SOFTMAX", inputs=[3], outputs=[4])],
            inputs=[0],
            outputs=[4],
        )
    )
    generator = random.Random(5)
    outcomes = {"refused": 0, "ran": 0}
    with wn.ml.create_context(backend="reference") as reference:
        for turn in range(120):
            damaged = bytearray(data)
            if turn % 5 == 0:
                del damaged[generator.randrange(len(damaged)) :]
            for _ in range(generator.choice((1, 1, 2, 8))):
                if damaged:
                    damaged[generator.randrange(len(damaged))] = generator.choice((0, 1, 127, 255, generator.randrange(256)))
            try:
                read(bytes(damaged))
                with load_model(bytes(damaged), lambda: reference) as loaded:
                    loaded.run(feeds_of(loaded))
                outcomes["ran"] += 1
            except wn.WebNNError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 10
