"""Pictures of the documentation that are drawn from the code, light and dark: `python -m docs.generation.pictures`.

Plans are made for a recorded GPU, so that the pictures are the same on every machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np

import webnn_wgpu as wn
from tests.golden.planning import planning_context
from webnn_wgpu.kernels.source_map import map_of_kernel
from webnn_wgpu.kernels.templates import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.plan.execution_plan import ExecutionPlan

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "data" / "caps" / "amd.json"

THEMES: dict[str, dict[str, Any]] = {
    "light": {
        "text": "#1f2430",
        "faint": "#5a6172",
        "line": "#8b93a7",
        "box": "#f3f5fa",
        "fills": ["#cfe1ff", "#d5f0d8", "#ffe3c2", "#f3d3ea", "#e0dcff", "#cdeff0"],
    },
    "dark": {
        "text": "#e8eaf0",
        "faint": "#a7aec0",
        "line": "#6d758a",
        "box": "#252a37",
        "fills": ["#27446f", "#2a5237", "#6a4a22", "#5f3556", "#44407a", "#235356"],
    },
}

STAGES = (
    ("Builder", "webnn_wgpu.api", "checks each call and infers shapes", "Graph: immutable operators and values"),
    ("Passes", "webnn_wgpu.passes", "fold constants, recognize composites, choose layouts, fuse", "optimized Graph"),
    ("Lowering", "webnn_wgpu.ops", "each operator chooses its kernels for the target", "kernel calls, each with its reason"),
    ("Planner", "webnn_wgpu.plan", "assigns slots, packs constants, lays out uniforms", "ExecutionPlan: plain data"),
    ("Runtime", "webnn_wgpu.runtime", "creates buffers, pipelines and bind groups once", "MLGraph"),
    ("Run", "compute(), dispatch(), encode()", "records one compute pass and submits it", ""),
)

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def plan_of(build: Callable[[wn.MLGraphBuilder], dict[str, wn.MLOperand]]) -> ExecutionPlan:
    """Return the plan of a graph for the recorded GPU."""
    context, _ = planning_context(RECORD.read_text("utf-8"))
    builder = wn.MLGraphBuilder(context)
    plan = builder.plan(build(builder))
    assert plan is not None
    return plan


def residual_network(builder: wn.MLGraphBuilder) -> dict[str, wn.MLOperand]:
    """Return the output of two residual blocks."""
    x = builder.input("x", {"dataType": "float32", "shape": [256, 128]})
    weights = [builder.constant(np.full(shape, 0.01, np.float32)) for shape in ((128, 512), (512, 128))]
    for block in ("a", "b"):
        scale = builder.constant(np.ones(128, np.float32))
        wide = builder.gelu(builder.matmul(builder.layer_normalization(x, scale=scale, label=f"norm {block}"), weights[0]))
        x = builder.add(builder.matmul(wide, weights[1], label=f"block {block}"), x)
    return {"y": builder.softmax(x, 1)}


def slots(plan: ExecutionPlan) -> dict[str, Any]:
    """Return the content of the picture of slots over time."""
    left, width, top, gap, scale = 110, 760, 12, 14, 0.00024
    step = (width - left - 10) / len(plan.dispatches)
    rows: list[dict[str, Any]] = []
    for number, slot in enumerate(plan.slots):
        rows.append({"name": f"slot {number}", "size": f"{slot.size_bytes / 1024:.0f} KiB", "y": top})
        rows[-1]["height"] = slot.size_bytes * scale
        top += rows[-1]["height"] + gap
    values = [
        {
            "name": plan.dispatches[each.first].label,
            "x": left + each.first * step + 1,
            "width": (each.last - each.first + 1) * step - 2,
            "y": rows[each.slot]["y"] + each.offset_bytes * scale + 1,
            "height": each.size_bytes * scale - 2,
        }
        for each in plan.intermediates
    ]
    ticks = [(left + (i + 0.5) * step, i) for i in range(len(plan.dispatches))]
    return {"width": width, "height": top + 40, "left": left, "slots": rows, "values": values, "ticks": ticks}


def gated(builder: wn.MLGraphBuilder) -> dict[str, wn.MLOperand]:
    """Return the output of three element-wise operators."""
    x = builder.input("x", {"dataType": "float32", "shape": [64, 64]})
    bias = builder.input("bias", {"dataType": "float32", "shape": [64]})
    total = builder.add(x, bias, label="add")
    return {"y": builder.mul(builder.sigmoid(total, label="sigmoid"), total, label="mul")}


def fused(plan: ExecutionPlan) -> dict[str, Any]:
    """Return the content of the picture of a fused kernel: its main function, with the operator of each line."""
    (dispatch,) = plan.dispatches
    names = [each.label for step in dispatch.steps for each in step]
    wgsl = render(dispatch.spec)
    source_map = map_of_kernel(dispatch.spec, labels=tuple((name,) for name in names))
    lines: list[tuple[str, int | None]] = []
    for number, text in enumerate(wgsl.splitlines(), 1):
        place = source_map.place(number, len(text) - len(text.lstrip()) + 1)
        if place.operators:
            lines.append((text.strip(), names.index(place.operators[0])))
    operators = [(name, "") for name in names]
    height = max(40 + 52 * len(operators), 70 + 20 * len(lines))
    return {"width": 760, "height": height, "operators": operators, "lines": lines, "template": "ops/elementwise.wgsl.j2"}


def main() -> None:
    """Draw all pictures."""
    pictures = {
        "flow": ("The path of a graph", {"width": 760, "height": 76 * len(STAGES) - 12, "stages": STAGES}),
        "slots": ("Slots of a small network over time", slots(plan_of(residual_network))),
        "fused": ("A fused kernel and its operators", fused(plan_of(gated))),
    }
    for name, (title, content) in pictures.items():
        for theme, colors in THEMES.items():
            text = _TEMPLATES.get_template(f"{name}.svg.j2").render(title=title, colors=colors, **content)
            (ROOT / "docs" / "images" / f"{name}-{theme}.svg").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
