"""Mutated folders for browsers: each is opened, or refused with file and culprit. Kernels are compiled and never run."""

from __future__ import annotations

import json
import random
import resource
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.formats.test_campaign import GROWTH, LONGEST, SECONDS, SEED, VALUES, changed, mutated
from webnn_wgpu.api.stored_graphs import TokenSteps, sample_of
from webnn_wgpu.exporters import web
from webnn_wgpu.formats.document import FileError
from webnn_wgpu.formats.web.reading import kernel_source, mapped, read_web_model
from webnn_wgpu.plan.stored import restore_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPENED = 20
"""Of the folders that are read without a fault, one in so many is opened on the device."""

FOLDER_VALUES: list[Any] = [
    *VALUES,
    *("kernels", "kernels/..", "sample.bin", "int64.pair", "texture", "sampled", "write", "read", "subgroups", "shader-f16"),
    *("maxBufferSize", {"file": "weights-0.bin", "offset": 0, "bytes": 4}, "model.json"),
]
WGSL = [
    *(b"@binding(0)", b"@binding(9)", b"@group(1)", b"@workgroup_size(256, 256, 64)", b"enable f16;", b"enable subgroups;"),
    *(b"array<f32>", b"array<f32, 1000000000>", b"array<vec4<f32>, 0>", b"f16(1)", b"atomic<u32>", b"discard;", b"loop {}"),
    *(b"while true {}", b"workgroupBarrier();", b"@compute", b"fn main()", b"// ", b"/*", b"\xff", b"}"),
    b"var<workgroup> w: array<f32, 9999999>;",
]


def network(context: wn.MLContext) -> wn.MLGraph:
    """Return a small graph with weights, several kernels, slots and an alias."""
    values = np.random.default_rng(0)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [1, 3, 6, 6]})
    cache = builder.input("cache", {"dataType": "float32", "shape": [4, 2]})
    place = builder.input("place", {"dataType": "int32", "shape": []})
    maps = builder.relu(builder.conv2d(x, builder.constant(values.standard_normal((5, 3, 3, 3)).astype(np.float32))))
    sums = builder.reduce_mean(maps, axes=[2, 3])
    scores = builder.matmul(sums, builder.constant(values.standard_normal((5, 7)).astype(np.float32)))
    rows = builder.slice(builder.reshape(scores, [1, 7]), [0, 0], [1, 2])
    updated = builder.ext.cache_update(cache, rows, place, axis=0)
    outputs = {"y": builder.softmax(scores, 1), "updated": updated, "maps": maps}
    return builder.build(outputs, aliases={"updated": "cache"})


@pytest.mark.campaign
def test_mutated_folders_are_opened_or_refused(
    context: wn.MLContext, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    folder = tmp_path / "net"
    with network(context) as graph:
        steps = TokenSteps(graph=graph, tokens="x", tables={"place": np.zeros(4, np.int32)}, rows=4)
        for name, content in web.folder_files(graph, record="here", sample=sample_of(graph), steps=steps).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else b"".join(content))
    sound = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    content = json.loads(sound["model.json"])
    files = [name for name in sound if name.endswith((".wgsl", ".bin"))]
    source = random.Random(SEED)
    end, executions, valid, opened, compiled = time.monotonic() + SECONDS, 0, 0, 0, 0
    before = 0
    while time.monotonic() < end:
        name = "model.json"
        match source.randrange(8):
            case 0 | 1:
                data = mutated(sound[name], source)
            case 2:
                name = source.choice(files)
                data = mutated(sound[name], source, WGSL)
            case _:
                data = json.dumps(changed(content, source, FOLDER_VALUES)).encode()
        (folder / name).write_bytes(data)
        start = time.monotonic()
        try:
            model = read_web_model(folder)
            restore_plan(model, [kernel_source(folder, k) for k in model.kernels], mapped(folder, model), context.caps)
            valid += 1
            if name.endswith(".wgsl") or valid % OPENED == 0:
                opened += 1
                wn.load(folder, context).destroy()
                compiled += 1
        except (FileError, wn.WebNNError):
            pass
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{name}: {data!r}") from error
        assert time.monotonic() - start < LONGEST, (name, data)
        (folder / name).write_bytes(sound[name])
        executions += 1
        if executions == 200:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    record_property("executions", executions)
    counts = f"{executions} executions, {valid} valid, {opened} opened on the device, {compiled} of them compiled"
    print(f"folders: {counts}, {grown >> 20} MiB more memory, seed {SEED}")
    assert executions > 200
    assert grown < GROWTH
