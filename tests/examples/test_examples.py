"""The examples, each run as a program."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests.optional import TFLITE
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tests.programs import Programs

EXPECTED = {
    "quick_start.py": r"\[\[0\.2689 0\.7311\]\n \[0\.7311 0\.2689\]\]\n\d+ slots?, .* dispatch.*, 1 pass\n",
    "own_device.py": r"total: \[ +0\. +0\. +60\. +220\.\]\n",
    "own_buffers.py": r"the blurred waves lie between -0\.47 and 0\.48\n",
    "texture_in_out.py": r"mean color \[\d+ \d+ \d+\]\nwritten: detail\.png\n",
    "own_operator.py": (
        r"1 slot, .*\n +0 clamp_0: .*\n +1 bilateral: wgsl_op \(8, 6, 1\) .*\n +2 sub_2: .*\n"
        r"noise 0\.048 -> 0\.008\nedge 0\.7 -> 0\.6\nlargest difference to numpy: small\n"
    ),
    "kernel_tutorial.py": (
        r"tested: right\nwrong operators: None\nthe hasty one: (right|wrong)\nsum of squares: [\d.]+, should be 969\.\d+\n"
        r"race at line 15: invocation .* reads parts\[32\], .*\n +if \(i < half\).*\n"
        r"findings now: 0\nthe fast one: right\n(it takes 1/\d+ of the time\n)?wrong operators: None\n"
    ),
    "frame_loop.py": r"30 frames; mean brightness of the last: 125\.\d\n",
    "pygfx_filter.py": r"darkest \d+ brightest \d+\nwritten: drawing\.png\n",
    "sentence_encoder.py": (
        r"How do I bake bread\? -> Knead the dough and let it rise for an hour\. \(0\.\d\d\)\n"
        r"When does my train depart\? -> The train to Lisbon leaves at nine\. \(0\.\d\d\)\n"
        r"\nMLGraph\(input_ids: int32\[4, 16\], attention_mask: int32\[4, 16\] -> embedding: float32\[4, 384\]\)\n"
        r"operators: \d+\n(  \w+: \d+ -> \d+ nodes\n)+plan: \d+ slots, .*, 1 pass\n(  .+ - .+\n){5}"
    ),
    "onnx_image_classification.py": (
        r"input: float32 \(1, 3, 64, 64\)\n\d+ nodes on the device, .*\n(class \d: 0\.\d{3}\n){5}"
    ),
    "onnx_sentence_embeddings.py": (
        r"embeddings: \(3, 32\)\n"
        r" 1\.000 +\S+ +\S+ the cat sleeps\n +\S+  1\.000 +\S+ the cat sleeps now\n +\S+ +\S+  1\.000 stocks fell .*\n"
    ),
    "onnx_detection.py": r"on the host: NonMaxSuppression\n(class [012], score 0\.\d\d: [-\d. ]+\n){1,15}",
    "onnx_quantized.py": (
        r"8 bits: \d+ parameters in \d+ bytes, y float32 \(4, 8\)\n4 bits: \d+ parameters in \d+ bytes, y float32 \(4, 8\)\n"
    ),
    "tflite_image_classification.py": (
        r"3 nodes on the device, 0 on the host, 0 evaluated beforehand\n"
        r"green: 0\.\d+\nblue: 0\.\d+\nred: 0\.\d+\nthe interpreter's results are equal: True\n"
    ),
    "tflite_delegate.py": r"2 3 of 3 nodes run on WebNN, in 1 partitions\n",
    "tflite_keyword_spotting.py": r"silence: (silence|unknown) \(0\.\d\d\)\nnoise: silence \((1|0\.[5-9])\.?\d*\)\n",
    "tflite_object_boxes.py": (
        r"72 nodes on the device, 0 on the host, 0 evaluated beforehand\n(cat: \d+ pixels, \[\d+, \d+, \d+, \d+\]\n){1,5}"
        r"written: objects\.png\n"
    ),
    "text_generation.py": (
        r"input_ids: int64\[batch, sequence\]\nattention_mask: int64\[batch, past \+ sequence\]\nState\(54 of 64 rows\)\n"
        r"compiled: 2 graphs, .*\nfirst answer: (?P<answer>.+)\nwithout caches: (?P=answer)\n"
    ),
    "train_digits.py": (
        r"(step (1|41|81|120): loss \d\.\d\d, accuracy \d\.\d\d\n){4}Step\(Adam, 2698 weights, 120 steps\)\n"
        r"written: digits\.safetensors\n"
        r"held-out accuracy (0\.9[5-9]\d|1\.000)\n"
    ),
    "train_text.py": (
        r"(step (1|51|101|151): loss \d\.\d\d\n){4}step 200: loss 0\.\d\d\nStep\(AdamW, \d+ weights, 200 steps\)\n"
        r"Apache License V.{48}\n"
    ),
    "train_sentence_head.py": (
        r"step 1: loss 1\.\d\d, accuracy 0\.\d\d\n(step (21|41|60): loss 0\.\d\d, accuracy 1\.00\n){3}"
        r"written: topics\.safetensors\n"
        r"How long .* -> kitchen \(0\.\d\d\)\nIs this .* -> travel \(0\.\d\d\)\nThe moons .* -> space \(0\.\d\d\)\n"
    ),
    "train_and_export.py": (
        r"loss 0\.2\d -> 0\.0\d\nwritten: disk\.onnx \[\[(?P<inside>0\.9\d+)\]\]\n"
        r"written: disk\.webnn \[\[(?P=inside)\]\]\nwritten: page \[\[(?P=inside)\]\]\n"
    ),
    "style_picture.py": (
        r"step 1: style 0\.1\d{3}\n(step (41|81): style 0\.00\d\d\n){2}step 120: style 0\.000\d\n"
        r"written: style\.png\n"
    ),
    "keras_digits.py": (
        r"Epoch 1/2\n60/60 - .* accuracy: .* loss: .*\nEpoch 2/2\n60/60 - .*\n"
        r"held-out pictures: loss 0\.\d\d, accuracy (0\.9[6-9]\d|1\.000)\nwritten: digits\.keras\n"
        r"the stored model predicts the same: True\ncompiled graphs: \d{1,2}, runs: \d+\n"
    ),
    "onnx_dynamic_shapes.py": (
        r"input_ids: int64\[batch, sequence\]\n"
        r"\[1, 8\] -> \[1, 32\]: compiled\n\[2, 5\] -> \[2, 32\]: compiled\n\[1, 13\] -> \[1, 32\]: compiled\n"
        r"\[1, 8\] -> \[1, 32\]: kept\n\[2, 5\] -> \[2, 32\]: kept\n"
        r"run: wrong shape of input; got input_ids: \[1, 9\]; allowed: .* with batch = 1, sequence = 8\n"
    ),
}
HELPERS = {"digits.py", "models.py"}
ENCODER = ("sentence_encoder.py", "train_sentence_head.py")
"""Examples that need the weights of the sentence encoder."""
WINDOW = "style_picture.py"
"""The example whose test runs it twice, with and without its window."""
SHARED = ("tflite_keyword_spotting.py", "tflite_object_boxes.py")
"""Examples that run models of the optional data."""


def test_every_example_has_its_output_here(repository: Path) -> None:
    assert {path.name for path in (repository / "examples").glob("*.py")} == set(EXPECTED) | HELPERS


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != WINDOW])
def test_example(name: str, repository: Path, tmp_path: Path, programs: Programs) -> None:
    if name in ENCODER:
        try:
            SentenceEncoder.find_model_dir()
        except FileNotFoundError as error:
            pytest.skip(str(error))
    if name in SHARED and TFLITE.folder() is None:
        pytest.skip(f"{TFLITE.what} are not there")
    if name == "tflite_delegate.py" and find_spec("ai_edge_litert") is None:
        pytest.skip("the example needs ai-edge-litert")
    check(name, programs.run([repository / "examples" / name], folder=tmp_path))


OFF_SCREEN = """
import os, runpy, sys
os.environ["RENDERCANVAS_FORCE_OFFSCREEN"] = "1"
example = sys.argv.pop(1)
runpy.run_path(example, run_name="__main__")
"""


def test_a_window_shows_the_same_steps(repository: Path, tmp_path: Path, programs: Programs) -> None:
    pictures: list[np.ndarray] = []
    for program in ([], ["-c", OFF_SCREEN]):
        options = ["--window"] if program else []
        check(WINDOW, programs.run([*program, repository / "examples" / WINDOW, *options], folder=tmp_path))
        with Image.open(tmp_path / "style.png") as picture:
            pictures.append(np.asarray(picture, np.float32))
    assert abs(pictures[0] - pictures[1]).mean() < 1
    assert pictures[0].std() > 30


def test_the_guide_shows_the_program_that_trains_and_exports(repository: Path) -> None:
    program = (repository / "examples" / "train_and_export.py").read_text("utf-8")
    _, _, code = program.partition('"""\n\n')
    assert f"```python\n{code}```\n" in (repository / "docs" / "guides" / "training.md").read_text("utf-8")
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 30


LIMITED = """
import os, runpy, sys
from wgpu.backends.wgpu_native import _api
from webnn_wgpu.core.caps import DEFAULT_LIMITS

limits = {name: n for name, n in DEFAULT_LIMITS.items() if name != "max-bindings-per-bind-group"}
request = _api.GPUAdapter.request_device_sync

def limited(self, **options):
    device = request(self, **{**options, "required_limits": limits, "required_features": []})
    assert not device.features
    assert all(device.limits[name] == n for name, n in limits.items())
    return device

_api.GPUAdapter.request_device_sync = limited
example = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(example))
runpy.run_path(example, run_name="__main__")
"""


@pytest.mark.repeats
@pytest.mark.parametrize("name", sorted(set(EXPECTED) - set(ENCODER)))
def test_example_on_a_device_with_default_limits_and_no_features(
    name: str, repository: Path, tmp_path: Path, programs: Programs
) -> None:
    check(name, programs.run(["-c", LIMITED, repository / "examples" / name], folder=tmp_path))


def check(name: str, done: CompletedProcess[str]) -> None:
    """Look at what an example wrote."""
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(EXPECTED[name], done.stdout), done.stdout
