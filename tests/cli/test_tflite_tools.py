"""TFLite's tools: their flags and the lines that they print."""

from __future__ import annotations

import re
import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from examples.models import tflite_classifier
from tests.tflite.cases import folder_of
from tests.tflite.models import Graph, Op, Tensor, model
from webnn_wgpu.cli.app import app
from webnn_wgpu.cli.tflite.benchmark_model import timed_runs
from webnn_wgpu.cli.tflite.detections import Box, Detected, GroundTruthError, average_precision, ground_truth
from webnn_wgpu.cli.tflite.pictures import central, resized
from webnn_wgpu.frontends.tflite.module import TfliteModule
from webnn_wgpu.frontends.tflite.partitions import partitions_of
from webnn_wgpu.frontends.tflite.reading import read

DATA = model(
    Graph(
        tensors=[Tensor(name="x", shape=[1, 3], signature=[-1, 3]), Tensor(name="y", shape=[1, 3])],
        ops=[Op(name="NEG", inputs=[0], outputs=[1])],
        inputs=[0],
        outputs=[1],
    )
)
NUMBER = r"-?[\d.e+-]+"


def call(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == exit_code, result.output
    return result.output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "model.tflite").write_bytes(DATA)
    return tmp_path / "model.tflite"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, color in (("a", (220, 20, 20)), ("b", (20, 20, 220)), ("c", (20, 220, 20))):
        Image.new("RGB", (40, 30), color).save(folder / f"{name}.png")
    (tmp_path / "classes.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "truths.txt").write_text("red\nblue\nred\n")
    return folder


def test_benchmark_model_prints_tflites_line(path: Path, tmp_path: Path) -> None:
    values, outputs = tmp_path / "x.bin", tmp_path / "y.bin"
    values.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    text = call(
        "benchmark_model", f"--graph={path}", "--use_webnn=true", "--num_runs=2", "--min_secs=0", "--use_gpu=true",
        "--input_layer=x", "--input_layer_shape=2,3", f"--input_layer_value_files=x:{values}", f"--output_filepath={outputs}",
        "--enable_op_profiling", "--op_profiling_output_mode=csv",
    )  # fmt: skip
    assert re.search(
        rf"^Inference timings in us: Init: {NUMBER}, First inference: {NUMBER}, Warmup \(avg\): {NUMBER}, "
        rf"Inference \(avg\): {NUMBER}$",
        text,
        re.MULTILINE,
    )
    assert np.array_equal(np.fromfile(outputs, np.float32), -np.arange(6))
    assert "node type,start,first,avg ms,%,cdf%,times called,name" in text


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--input_layer=x", "1 names have 0 shapes"),
        ("--input_layer_value_range=x,1", "not of the form name,low,high"),
        ("--input_layer_value_files=x:missing", "names no input and file"),
        ("--enable_op_profiling", "add --use_webnn"),
        ("--webnn_device_preference=3", "not in the range"),
    ],
)
def test_wrong_flags_of_benchmark_model_are_refused(flag: str, message: str, path: Path) -> None:
    assert message in call("benchmark_model", f"--graph={path}", flag, exit_code=2)


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="the reference runs on ai-edge-litert")
def test_inference_diff_compares_with_tflites_kernels(path: Path, tmp_path: Path) -> None:
    text = call(
        "inference_diff", f"--model_file={path}", "--num_runs=2", "--use_webnn", f"--output_file_path={tmp_path / 'lines.txt'}"
    )
    lines = text.splitlines()[-4:]
    assert lines[0] == "Num evaluation runs: 2"
    assert re.fullmatch(rf"Test run latency: avg={NUMBER}\(us\), std_dev={NUMBER}\(us\)", lines[2])
    assert lines[3] == "OutputDiff[0]: avg_error=0, std_dev=0"
    assert (tmp_path / "lines.txt").read_text().splitlines() == lines


def test_label_image_names_the_class(pictures: Path) -> None:
    labels = pictures.parent / "classes.txt"
    flags = ("-i", pictures / "b.png", "-l", labels, "-b", 0, "-s", 255, "-r", 2, "--use_webnn")
    lines = call("label_image", "-m", tflite_classifier(), *flags).splitlines()
    first = next(i for i, line in enumerate(lines) if re.fullmatch(r"average time: [\d.]+ ms", line))
    assert re.fullmatch(rf"{NUMBER}: 2 blue", lines[first + 1])


def test_evaluate_counts_right_classes(pictures: Path) -> None:
    common = (
        "evaluate", "imagenet_image_classification", f"--model_file={tflite_classifier()}",
        f"--ground_truth_images_path={pictures}", f"--model_output_labels={pictures.parent / 'classes.txt'}", "--use_webnn",
    )  # fmt: skip
    truths = pictures.parent / "truths.txt"
    text = call(*common, f"--ground_truth_labels={truths}", "--num_images=2")
    assert "Num evaluation runs: 2" in text
    assert "Top-3 Accuracy: 1\n" in text
    denied = pictures.parent / "denied.txt"
    denied.write_text("1\n2\n")
    text = call(*common, f"--ground_truth_labels={truths}", f"--denylist_file_path={denied}")
    assert "Top-1 Accuracy: 0\n" in text
    truths.write_text("red\n")
    assert "3 pictures have 1 labels" in call(*common, f"--ground_truth_labels={truths}", exit_code=1)


def field(number: int, value: int | float | str | bytes) -> bytes:
    """Return a field of a serialized message."""
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def truth(name: str, *objects: tuple[int, Box]) -> bytes:
    """Return a picture of a serialized ObjectDetectionGroundTruth."""
    parts = [field(2, name)]
    for label, box in objects:
        sides = (box.top, box.bottom, box.left, box.right)
        corners = b"".join(field(n, float(side)) for n, side in enumerate(sides, 1))
        parts.append(field(1, field(1, label) + field(2, corners)))
    return field(1, b"".join(parts))


def detector() -> bytes:
    """Return a model that finds the same two objects in every picture."""
    boxes = np.float32([[[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0], [0, 0, 0, 0]]])
    tensors = [
        Tensor(name="picture", shape=[1, 4, 4, 3]),
        Tensor(name="turned", shape=[1, 4, 4, 3]),
        Tensor(name="boxes", shape=[1, 3, 4], data=boxes),
        Tensor(name="classes", shape=[1, 3], data=np.float32([[0, 1, 0]])),
        Tensor(name="scores", shape=[1, 3], data=np.float32([[0.9, 0.8, 0]])),
        Tensor(name="count", shape=[1], data=np.float32([2])),
    ]
    return model(Graph(tensors=tensors, ops=[Op(name="NEG", inputs=[0], outputs=[1])], inputs=[0], outputs=[2, 3, 4, 5]))


def test_evaluate_measures_detectors(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "detector.tflite").write_bytes(detector())
    (tmp_path / "labels.txt").write_text("background\ncat\ndog\n")
    cat, dog = Box(0, 0.5, 0, 0.5), Box(0.5, 1, 0.5, 0.85)
    found = [truth(f"{name}.png", (1, cat), (2, dog)) for name in "abc"]
    (tmp_path / "truth.pb").write_bytes(b"".join(found))
    common = (
        "evaluate", "coco_object_detection", f"--model_file={tmp_path / 'detector.tflite'}", "--use_webnn",
        f"--model_output_labels={tmp_path / 'labels.txt'}", f"--ground_truth_images_path={pictures}",
    )  # fmt: skip
    output = tmp_path / "lines.txt"
    text = call(*common, f"--ground_truth_proto={tmp_path / 'truth.pb'}", "--debug_mode", f"--output_file_path={output}")
    # The box of the dog overlaps 0.7 of the union: it counts up to that threshold.
    assert "Num evaluation runs: 3\n" in text
    assert "Average Precision [IOU Threshold=0.65]: 1\n" in text
    assert "Average Precision [IOU Threshold=0.75]: 0.5\n" in text
    assert re.search(r"^Overall mAP: 0\.[67]", text, re.MULTILINE)
    assert text.count("normalized_top: 0.5\n") == 3
    assert output.read_text() == text[-len(output.read_text()) :]
    assert "Overall mAP" not in call(*common)
    (tmp_path / "truth.pb").write_bytes(found[0][:-3])
    assert "no serialized ObjectDetectionGroundTruth" in call(
        *common, f"--ground_truth_proto={tmp_path / 'truth.pb'}", exit_code=1
    )
    (tmp_path / "labels.txt").write_text("background\ncat\n")
    assert "class 2 is beyond the 2 labels" in call(*common, exit_code=1)


def test_average_precision_counts_each_true_object_once() -> None:
    one, other = Box(0, 1, 0, 1), Box(2, 3, 2, 3)
    twice = [[Detected(0, one, 0.9), Detected(0, one, 0.8)]]
    assert average_precision([[one]], twice, 0.5) == 1
    # Half of the recall has the precision 1, the other none.
    assert average_precision([[one, other]], twice, 0.5) == pytest.approx(51 / 101)
    # A wrong object of a higher score halves the precision.
    assert average_precision([[one]], [[Detected(0, other, 0.9), Detected(0, one, 0.8)]], 0.5) == pytest.approx(0.5)
    assert average_precision([[]], twice, 0.5) == 0


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x7f", b"\x0b\x00", b"\x08\x01", b"\x0a\x02\x12\x01"])
def test_broken_ground_truth_is_refused(data: bytes) -> None:
    with pytest.raises(GroundTruthError):
        ground_truth(data)


def test_benchmark_model_runs_a_signature_at_a_rate(tmp_path: Path) -> None:
    path = folder_of("files") / "two_signatures.tflite" if folder_of("files") else None
    if path is None:
        pytest.skip("the files of the digest are not there")
    key = next(iter(read(path).signatures)).key
    text = call(
        "benchmark_model", f"--graph={path}", "--use_webnn", f"--signature_to_run_for={key}", "--num_runs=2", "--min_secs=0",
        "--report_peak_memory_footprint", "--enable_op_profiling",
    )  # fmt: skip
    assert "Inference timings in us" in text
    assert re.search(r"^Overall peak memory footprint \(MB\): [1-9]", text, re.MULTILINE)
    refused = call("benchmark_model", f"--graph={path}", "--use_webnn", "--signature_to_run_for=none", exit_code=2)
    assert f"the model has {key}" in refused


def test_runs_at_a_rate_catch_up_with_a_late_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    durations = iter([0.01, 0.25, 0.01, 0.01])
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.sleep", sleep)
    timed_runs(lambda: now.__setitem__(0, now[0] + next(durations)), 4, 0, 100, 0.5, rate=10)
    # The second run lasts until 0.35, so that two runs follow at once. The wait behind the fourth is until 0.4.
    assert slept == pytest.approx([0.09, 0.03])


def cut() -> bytes:
    """Return a model whose nodes 1 and 3 the host runs."""
    tensors = [
        Tensor(name="x", shape=[4]),
        Tensor(name="n", shape=[4]),
        Tensor(name="w", shape=[4, 1], dtype="int64", signature=[-1, 1]),
        Tensor(name="m", shape=[4]),
        Tensor(name="v", shape=[4, 1], dtype="int64", signature=[-1, 1]),
    ]
    ops = [
        Op(name="NEG", inputs=[0], outputs=[1]),
        Op(name="WHERE", inputs=[1], outputs=[2]),
        Op(name="ABS", inputs=[1], outputs=[3]),
        Op(name="WHERE", inputs=[3], outputs=[4]),
    ]
    return model(Graph(tensors=tensors, ops=ops, inputs=[0], outputs=[2, 4]))


def test_check_lists_partitions(tmp_path: Path) -> None:
    (tmp_path / "cut.tflite").write_bytes(cut())
    text = call("check", tmp_path / "cut.tflite", "--fallback", "host")
    assert re.search(r"Partitions\n.*\b0 +2 nodes: 0, 2\n", text)


def test_partitions_end_at_nodes_of_the_host() -> None:
    graph = TfliteModule(read(cut())).graph(0)
    neg, first, absolute, _ = graph.nodes
    assert partitions_of(graph.nodes, [first, graph.nodes[3]]) == ((0, 2),)
    assert partitions_of(graph.nodes, [neg]) == ((1, 2, 3),)
    assert partitions_of(graph.nodes, [absolute]) == ((0, 1), (3,))
    assert partitions_of(graph.nodes, graph.nodes) == ()


def test_pictures_are_cropped_and_scaled_as_tflite_does() -> None:
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
    assert central(pixels, 0.5)[:, :, 0].tolist() == pixels[2:6, 2:6, 0].tolist()
    assert resized(pixels, 4, 4)[:, :, 0].tolist() == pixels[::2, ::2, 0].tolist()
    assert resized(pixels, 8, 16)[0, :4, 0].tolist() == [0, 0.5, 1, 1.5]
