"""Examples of all commands, which `--help` shows."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = {
    "": (
        "webnn-wgpu doctor                                # is all well?",
        "webnn-wgpu run model.onnx -i photo.jpg",
        "webnn-wgpu profile model.onnx --top 10",
        "webnn-wgpu diff model.onnx --bisect              # the first wrong kernel",
    ),
    "bench": (
        "webnn-wgpu bench model.onnx -r 100",
        "webnn-wgpu bench model.onnx -f batch=8 --json after.json",
        "webnn-wgpu bench --compare before.json after.json",
        "webnn-wgpu bench --suite --json suite.json       # built-in models, a file to send",
    ),
    "benchmark_model": (
        "webnn-wgpu benchmark_model --graph=model.tflite --use_webnn",
        "webnn-wgpu benchmark_model --graph=model.tflite --use_webnn --enable_op_profiling=true",
    ),
    "check": (
        "webnn-wgpu check model.onnx",
        "webnn-wgpu check model.onnx --all --fallback host",
        "webnn-wgpu check model.json                      # a TensorFlow.js model",
    ),
    "convert": (
        "webnn-wgpu convert model.onnx model.webnn",
        "webnn-wgpu convert model.onnx page.mjs --weights safetensors",
        "webnn-wgpu convert graph.webnn - --to py         # print a program",
        "webnn-wgpu convert model.json model.onnx         # from TensorFlow.js",
    ),
    "demo": (
        "webnn-wgpu demo",
        'webnn-wgpu demo "A cat sleeps." "The kitten naps." "Stocks fell."',
    ),
    "diff": (
        "webnn-wgpu diff model.onnx --against onnxruntime",
        "webnn-wgpu diff model.onnx --bisect --repro wrong",
    ),
    "doctor": (
        "webnn-wgpu doctor",
        "webnn-wgpu doctor --json",
    ),
    "evaluate": (
        "webnn-wgpu evaluate imagenet_image_classification --model_file=model.tflite --ground_truth_images_path=tensors "
        "--ground_truth_labels=classes.txt --model_output_labels=classes.txt --use_webnn",
    ),
    "evaluate imagenet_image_classification": (
        "webnn-wgpu evaluate imagenet_image_classification --model_file=model.tflite --ground_truth_images_path=tensors "
        "--ground_truth_labels=classes.txt --model_output_labels=classes.txt --use_webnn",
    ),
    "evaluate coco_object_detection": (
        "webnn-wgpu evaluate coco_object_detection --model_file=model.tflite --ground_truth_images_path=tensors "
        "--model_output_labels=classes.txt --use_webnn",
    ),
    "export": (
        "webnn-wgpu export model.onnx --to web -o page",
        "webnn-wgpu export model.onnx -o page --record webgpu-f16 -i photo.jpg",
        "webnn-wgpu export model.onnx -o page --kv-cache 128",
    ),
    "inference_diff": ("webnn-wgpu inference_diff --model_file=model.tflite --num_runs=10 --use_webnn",),
    "info": (
        "webnn-wgpu info model.onnx",
        "webnn-wgpu info model.onnx -f sequence=256 --passes",
    ),
    "interpret": (
        "webnn-wgpu interpret model.onnx --kernel softmax_12",
        "webnn-wgpu interpret model.onnx --kernel softmax_12 --break 40",
    ),
    "kernel-lab": (
        "webnn-wgpu kernel-lab model.onnx softmax_12",
        "webnn-wgpu kernel-lab model.onnx softmax_12 --file mine.wgsl --once",
    ),
    "kernels": (
        "webnn-wgpu kernels model.onnx",
        "webnn-wgpu kernels model.onnx --show softmax_12",
        "webnn-wgpu kernels model.onnx --show softmax_12 --as hlsl --as amd:navi21",
        "webnn-wgpu kernels model.onnx --dump kernels     # one file for each",
    ),
    "label_image": (
        "webnn-wgpu label_image -m model.tflite -i photo.jpg -l classes.txt --use_webnn",
        "webnn-wgpu label_image --tflite_model=model.tflite --image=photo.jpg --webnn_device_preference=1 --use_webnn",
    ),
    "op": (
        "webnn-wgpu op softmax",
        "webnn-wgpu op x.attention",
    ),
    "ops": (
        "webnn-wgpu ops",
        "webnn-wgpu ops --json",
    ),
    "profile": (
        "webnn-wgpu profile model.onnx",
        "webnn-wgpu profile model.onnx -r 20 --json before.json",
        "webnn-wgpu profile model.onnx --compare before.json",
        "webnn-wgpu profile model.onnx --html report.html --trace run.json",
    ),
    "run": (
        "webnn-wgpu run model.onnx                        # random inputs",
        "webnn-wgpu run model.onnx -i photo.jpg --labels classes.txt",
        "webnn-wgpu run model.onnx -i x=inputs.npz -o results",
        "webnn-wgpu run model.onnx --device reference     # in numpy",
    ),
    "tune": (
        "webnn-wgpu tune model.onnx                       # into the cache",
        "webnn-wgpu tune model.onnx -o model.tuning.json",
        "webnn-wgpu tune model.tuning.json --show",
    ),
    "validate": (
        "webnn-wgpu validate graph.webnn",
        "webnn-wgpu validate graph.json --weights graph.weights --format json",
    ),
    "view": (
        "webnn-wgpu view model.onnx --open",
        "webnn-wgpu view model.onnx -o page.html --profile --diff",
    ),
    "weights": (
        "webnn-wgpu weights list model.weights",
        "webnn-wgpu weights convert model.weights model.safetensors",
    ),
    "weights convert": (
        "webnn-wgpu weights convert model.weights model.safetensors",
        "webnn-wgpu weights convert model.safetensors model.weights",
    ),
    "weights extract": (
        "webnn-wgpu weights extract graph.webnn small.webnn",
        "webnn-wgpu weights extract graph.webnn small.webnn --weights safetensors",
    ),
    "weights inline": ("webnn-wgpu weights inline graph.webnn whole.webnn",),
    "weights list": (
        "webnn-wgpu weights list model.weights",
        "webnn-wgpu weights list model.safetensors",
    ),
    "weights pack": ("webnn-wgpu weights pack tensors model.weights",),
    "weights unpack": ("webnn-wgpu weights unpack model.weights tensors",),
}
"""Command lines by the name of the command. Each one may end with a comment."""


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield the name of a group and of each command below it, with the command."""
    yield " ".join(names), group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        else:
            yield " ".join((*names, name)), command


def add_examples(group: click.Group) -> None:
    """Append the examples to the help of a group and of all commands below it."""
    for name, command in commands(group):
        lines = "\n".join(f"    {line}" for line in EXAMPLES.get(name, ()))
        # "\b" keeps the lines of a paragraph, and the indent makes it a block of code in the site.
        command.help = f"{inspect.cleandoc(command.help or '')}\n\nExamples:\n\n\b\n{lines}"
