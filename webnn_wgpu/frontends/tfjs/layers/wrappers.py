"""Layers that repeat other layers: over time, and in both directions."""

from __future__ import annotations

from typing import Any

from webnn_wgpu import MLOperand

from ..contents import fields
from ..topology import MODELS, read_model
from ._call import Flow, LayerCall, layer
from ._models import run_model


def _inner_results(call: LayerCall, entry: Any, inputs: list[Flow], path: str) -> list[Flow]:
    inner = call.inner(entry, inputs, path)
    if inner.kind in MODELS:
        graph = read_model(inner.label, inner.kind, inner.config)
        return run_model(call.scope, graph, inputs)
    return inner.results()


@layer("TimeDistributed", masks=True)
def time_distributed(call: LayerCall) -> MLOperand:
    """A layer for each step of a sequence: steps are joined with the batch."""
    x = call.ranked(*range(3, 17))
    n, steps, *rest = x.shape
    entry = call.config.get("layer")
    whole = call.reshape(x, [n * steps, *rest])
    y = _inner_results(call, entry, [Flow(whole)], call.path)[0].operand
    return call.reshape(y, [n, steps, *y.shape[1:]])


@layer("Bidirectional")
def bidirectional(call: LayerCall) -> list[Flow]:
    """A recurrent layer in both directions."""
    entry: Any = call.config.get("layer")
    inner = call.inner(entry, call.inputs, call.path)
    name = inner.config.get("name", "")
    turned = {**fields(entry), "config": {**inner.config, "go_backwards": not inner.flag("go_backwards")}}
    back = fields(call.config.get("backward_layer")) or turned
    # Without a word there is no entry: both results are returned apart.
    mode: Any = call.config.get("merge_mode", "concat")
    states = (len(call.inputs) - 1) // 2
    x, given = call.inputs[0], call.inputs[1:]
    directions: list[list[Flow]] = []
    for prefix, part, initial in (("forward", entry, given[:states]), ("backward", back, given[states:])):
        directions.append(call.inner(part, [x, *initial], f"{call.path}/{prefix}_{name}").results())
    first, second = (found[0] for found in directions)
    there, again = first.operand, second.operand
    if inner.flag("return_sequences"):
        again = call.build.reverse(again, axes=[1])
    b = call.build
    if mode is None:
        merged = [Flow(there, first.mask), Flow(again, first.mask)]
    elif mode == "concat":
        merged = [Flow(b.concat([there, again], len(there.shape) - 1), first.mask)]
    elif mode == "mul":
        merged = [Flow(b.mul(there, again), first.mask)]
    elif mode in ("sum", "ave"):
        total = b.add(there, again)
        merged = [Flow(b.mul(total, call.constant(0.5, "float32")) if mode == "ave" else total, first.mask)]
    else:
        call.fail(f"merge_mode is {mode!r}; allowed: concat, sum, mul, ave, null")
    return [*merged, *(state for found in directions for state in found[1:])]
