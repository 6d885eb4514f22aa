"""The dispatches of a training step of a transformer, beside those of its forward pass.

`python -m tests.train.dispatches [RECORD OPTIMIZER]` prints them by the operator whose gradient they belong to.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import webnn_wgpu as wn
from tests.golden.planning import planning_context
from tests.golden.records import record
from tests.train.networks import batch_of, parameters, transformer
from webnn_wgpu import train

if TYPE_CHECKING:
    from webnn_wgpu.plan import ExecutionPlan


def plans(name: str, optimizer: train.Optimizer) -> tuple[ExecutionPlan, ExecutionPlan]:
    """Return the plans of the forward pass and of a step on a recorded device."""
    context, planning = planning_context(record(name))
    given = parameters()
    b = wn.MLGraphBuilder(context)
    operands = {key: b.input(key, list(array.shape), "float32") for key, array in given.items()}
    inputs = {key: b.input(key, descriptor) for key, descriptor in batch_of().items()}
    b.build({"loss": transformer(b, operands, inputs)})
    train.Step(context, transformer, given, optimizer, inputs=batch_of()).destroy()
    forward, step = planning.plans
    return forward, step


def table(plan: ExecutionPlan) -> Counter[tuple[str, str]]:
    """Return the number of dispatches by operator and kernel."""

    def operator(label: str) -> str:
        return label.partition("#")[0].rstrip("_0123456789")

    return Counter((operator(d.label), d.spec.template) for d in plan.dispatches)


if __name__ == "__main__":
    device, optimizer = sys.argv[1:] or ("amd", "Adam")
    forward, step = plans(device, getattr(train, optimizer)())
    for (operator, kernel), count in table(step).most_common():
        print(f"{count:4}  {kernel:30} {operator}")
    count, once = len(step.dispatches), len(forward.dispatches)
    print(f"{count} dispatches, {count / once:.2f} times the {once} of the forward pass")
