"""The kernels of onnxruntime's WebGPU provider, as AMD's compiler makes them on the same device, beside the package's own.

Dawn translates onnxruntime's shaders, so what the compiler reads is what users of onnxruntime run. The log of a run has each
shader when it is built, and the layer counts the pipelines in the same order. Dawn makes pipelines of its own too, of other
workgroup sizes. The profile of the run names the node of each dispatch.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

import webnn_wgpu as wn
from tests.hardware.collecting import Dispatch
from tests.hardware.compiler import Compiled, compiled_of, environment_of
from tests.hardware.report import Row, shares_of_work
from webnn_wgpu.cli.inputs import made_up
from webnn_wgpu.frontends.onnx import settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.hardware.families import Family

VARIABLE = "ORT_WEBGPU_PYTHON"
"""The environment variable that names a Python with onnxruntime-webgpu."""

LARGE = 1 << 28
"""Operations from which on a node counts as large."""

_SHADER = re.compile(r'^=== WebGPU Shader code \[(\w+), Key="([^\n]*)"\] Start ===$(.*?)^=== WebGPU Shader code', re.M | re.S)
_DISPATCH = re.compile(r'Starting program "(.*)" \((\d+), (\d+), (\d+)\)$', re.M)
_SIZES = re.compile(r"^const workgroup_size_[xyz]: u32 = (\d+);$", re.M)
_COMPILED_SIZES = re.compile(r"^workgroup[-_]size: (\d+), (\d+), (\d+)$", re.M)
_USES = {
    "subgroup matrices": r"\bsubgroupMatrix\w+\(",
    "packed integer products": r"dot4[IU]8Packed",
    "subgroup operations": r"\bsubgroup(?!Matrix)[A-Z]\w*\(",
    "float16": r"\bf16\b(?!;)",
}
"""Features of WGSL by the text of a shader that uses them."""

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul")


class UnreadableRunError(RuntimeError):
    """A run of onnxruntime failed, or its log is not what this module knows."""


def their_rows(family: Family, model: Path, python: str) -> list[Row]:
    """Return a row for each dispatch of a run of a model by onnxruntime.

    Args:
        family: the GPU.
        model: the ONNX file. Inputs are those of the NPZ file beside it, else made up.
        python: a Python with onnxruntime-webgpu.

    Raises:
        UnreadableRunError: the run fails, or its log cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="beside-") as name:
        folder = Path(name)
        inputs = model.with_suffix(".npz")
        if not inputs.is_file():
            inputs = _made_up_inputs(model, folder)
        command = [python, str(Path(__file__).with_name("logged_run.py")), str(model), str(inputs), str(folder / "profile")]
        environment = os.environ | environment_of(family, folder)
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False, errors="replace"
        )
        if done.returncode:
            raise UnreadableRunError(f"{model.name} on {family.name}: {done.stderr.strip()[-500:]}")
        profile = json.loads(Path(done.stdout.strip().splitlines()[-1]).read_text(encoding="utf-8"))
        kernels = kernels_of(done.stderr, statistics_of(folder, family))
        return list(_rows(model, profile, done.stderr, kernels))


def statistics_of(folder: Path, family: Family) -> list[Compiled]:
    """Return what the compiler made of each pipeline, in order, from the folder that the layer wrote to."""
    lines = (folder / "statistics").read_text().splitlines()
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        compiled_of({**each, "text": (folder / "isa" / f"{each['pipeline']:05}.txt").read_text()}, family) for each in found
    ]


def kernels_of(log: str, pipelines: Sequence[Compiled]) -> dict[str, tuple[str, Compiled]]:
    """Return the text of each shader of a log, and what the compiler made of it, by the shader's key.

    Raises:
        UnreadableRunError: there is a shader without a pipeline of its workgroup size.
    """
    left = iter(pipelines)
    found: dict[str, tuple[str, Compiled]] = {}
    for _, key, text in _SHADER.findall(log):
        size = tuple(map(int, _SIZES.findall(text)))
        pipeline = next((each for each in left if _workgroup_size(each) == size), None)
        if pipeline is None:
            raise UnreadableRunError(f"no pipeline of {size} invocations belongs to {key}")
        found[key] = text, pipeline
    return found


def _workgroup_size(pipeline: Compiled) -> tuple[int, ...]:
    sizes = _COMPILED_SIZES.search(pipeline.text)
    return tuple(map(int, sizes.groups())) if sizes else ()


def _rows(
    model: Path, profile: Sequence[Mapping[str, Any]], log: str, kernels: Mapping[str, tuple[str, Compiled]]
) -> Iterator[Row]:
    operations = operations_of(model, profile)
    programs = [event for event in profile if event.get("cat") == "Api"]
    # Those before them rearrange weights when the session is made.
    started = _DISPATCH.findall(log)[-len(programs) :]
    numbers: dict[str, int] = {}
    for event, (key, *grid) in zip(programs, started, strict=True):
        if event["args"]["cache_key"] != key:
            raise UnreadableRunError(f"the log starts {key} where the profile has {event['args']['cache_key']}")
        node = event["name"].split("&")[0]
        wgsl, compiled = kernels[key]
        yield Row(
            dispatch=Dispatch(
                model=model.stem,
                label=node,
                kernel=key,
                wgsl=wgsl,
                workgroups=math.prod(map(int, grid)),
                invocations=math.prod(_workgroup_size(compiled)),
                node=(numbers.setdefault(node, len(numbers)), None),
                operations=operations.get(node, 0),
            ),
            compiled=compiled,
        )


def operations_of(model: Path, profile: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the operations of convolutions and products of a run, by node: two for each multiply-add."""
    graph = onnx.load(str(model), load_external_data=False).graph
    shapes = {each.name: list(each.dims) for each in graph.initializer}
    weights = {node.name: shapes.get(node.input[1]) for node in graph.node if len(node.input) > 1}
    found: dict[str, int] = {}
    for event in profile:
        if event.get("cat") != "Node" or event["args"].get("op_name") not in _PRODUCTS:
            continue
        node = event["name"].removesuffix("_kernel_time")
        (outputs,) = [math.prod(shape) for each in event["args"]["output_type_shape"] for shape in each.values()]
        weight = weights.get(source_name(node))
        if weight is not None and "Conv" in event["args"]["op_name"]:
            summed = math.prod(weight[1:]) if "Transpose" not in node else math.prod(weight) // max(1, weight[1])
        else:
            summed = next(iter(event["args"]["input_type_shape"][0].values()))[-1]
        found[node] = 2 * outputs * summed
    return found


def source_name(label: str) -> str:
    """Return the name of the ONNX node that a label of either side stands for.

    Example:
        >>> source_name("/f/f.0/Conv_token_1"), source_name("/f/f.0/Conv.2")
        ('/f/f.0/Conv', '/f/f.0/Conv')
    """
    theirs = re.sub(r"(/\w+Fusion\w*?)?(_token_\d+)?$", "", label)
    # Names of the package's builder calls end with a number after a point; so do names of modules, but not of operators.
    return re.sub(r"((?:^|/)[A-Z]\w*?)\.\d+$", r"\1", theirs)


def _made_up_inputs(model: Path, folder: Path) -> Path:
    rng = np.random.default_rng(0)
    with wn.ml.create_context(backend="reference") as context, wn.load_onnx(str(model), context) as loaded:
        feeds: dict[str, Any] = {info.name: made_up(info, settle(info.shape, {}), rng) for info in loaded.inputs}
    np.savez(folder / "inputs.npz", **feeds)
    return folder / "inputs.npz"


# side by side ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A node as both sides compute it.

    Attributes:
        node: the ONNX node.
        operations: its operations.
        ours, theirs: the dispatch that multiplies and adds most in one pass of its loop.
    """

    node: str
    operations: int
    ours: Row
    theirs: Row

    @property
    def ratio(self) -> float:
        """Our share of the peak that the loops can reach, relative to theirs."""
        return rate(self.ours) / rate(self.theirs)


def rate(row: Row) -> float:
    """Return the share of a GPU's peak that a dispatch's loop can reach; 0 for one without a loop."""
    return row.compiled.loop.rate if row.compiled and row.compiled.loop else 0.0


def _multiply_adds(row: Row) -> int:
    """Return the multiply-adds of all invocations in one pass of the loop: kernels that add up parts have many invocations."""
    assert row.compiled
    assert row.compiled.loop
    return row.dispatch.workgroups * row.dispatch.invocations * row.compiled.loop.multiply_adds


def pairs(ours: Sequence[Row], theirs: Sequence[Row]) -> list[Pair]:
    """Return the nodes that both sides compute by a kernel with a loop, those with most work first."""

    def by_node(rows: Sequence[Row]) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for row in rows:
            name = source_name(row.dispatch.label)
            if rate(row) and (name not in found or _multiply_adds(row) > _multiply_adds(found[name])):
                found[name] = row
        return found

    own, others = by_node(ours), by_node(theirs)
    both = [
        Pair(node=name, operations=others[name].dispatch.operations, ours=row, theirs=others[name])
        for name, row in own.items()
        if name in others and others[name].dispatch.operations
    ]
    return sorted(both, key=lambda pair: -pair.operations)


def reach(rows: Sequence[Row]) -> float:
    """Return the share of the peak that all loops of a model together can reach, weighted by their operations."""
    shares = [(share, rate(row)) for share, row in zip(shares_of_work(rows), rows, strict=True) if rate(row)]
    return sum(share for share, _ in shares) / sum(share / each for share, each in shares) if shares else 0.0


def side_by_side(family: Family, ours: Sequence[Row], theirs: Sequence[Row], top: int) -> Iterator[str]:
    """Yield the lines of a comparison: the nodes with most work, then both models as a whole."""
    found = pairs(ours, theirs)
    for pair in found[:top]:
        yield f"{pair.operations / 2e6:8.1f} M {pair.node:44.44} ratio {pair.ratio:.2f}"
        yield f"    ours    {_loop(pair.ours)}"
        yield f"    theirs  {_loop(pair.theirs)}"
    large = [pair.ratio for pair in found if pair.operations >= LARGE]
    yield (
        f"{family.name}: min(share, 1 / local bytes) over the loops: ours {reach(ours):.2f}, theirs {reach(theirs):.2f}; "
        f"{len(ours)} dispatches of ours, {len(theirs)} of theirs"
    )
    texts = {row.dispatch.wgsl for row in theirs}
    used = ", ".join(f"{name} {sum(bool(re.search(pattern, text)) for text in texts)}" for name, pattern in _USES.items())
    yield f"of their {len(texts)} shaders use {used}"
    if large:
        yield f"{len(large)} nodes of at least {LARGE // 2} multiply-adds: ratio {min(large):.2f} to {max(large):.2f}"


def _loop(row: Row) -> str:
    compiled = row.compiled
    assert compiled
    assert compiled.loop
    loop, dispatch = compiled.loop, row.dispatch
    return (
        f"{dispatch.kernel:40.40} {loop.share:.2f} multiply-adds per slot, local {loop.local_bytes_each:.2f} bytes each, "
        f"registers {compiled.registers:3}, waves {compiled.waves:2}, {dispatch.subgroups(compiled.subgroup):6} subgroups of "
        f"{compiled.subgroup}"
    )
