"""Composites: operators that a file describes by a subgraph as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers
from .control import inline, present

Composite = Callable[[TfliteCall, dict[str, Any]], MLOperand | None]


def _rms_norm(call: TfliteCall, attributes: dict[str, Any]) -> MLOperand | None:
    """X divided by the root of the mean of squares along the last dimension, times a scale."""
    if len(call) != 2 or call.shape(1) != call.shape(0)[-1:]:
        return None
    epsilon = float(attributes.get("epsilon", 1e-6))
    last = call.tensor(0).rank - 1
    return call.build.ext.rms_normalization(call.floats(0), scale=call.floats(1), axes=[last], epsilon=epsilon)


def _attention(call: TfliteCall, attributes: dict[str, Any]) -> MLOperand | None:
    """Attention of q [b, t, n, h] over k and v [b, s, k, h], with a mask that is added to the scores."""
    if len(call) < 3 or any(call.tensor(i).rank != 4 for i in range(len(call))):
        return None
    batch, steps, heads, size = call.shape(0)
    keys = call.shape(1)
    if call.shape(2) != keys or keys[0] != batch or keys[3] != size or heads % keys[2]:
        return None
    q, k, v = (call.transpose(call.floats(i), [0, 2, 1, 3]) for i in range(3))
    mask = call.floats(3) if call.has(3) else None
    if mask is not None and (int(mask.shape[2]) != steps or int(mask.shape[3]) != keys[1]):
        return None
    y = call.build.ext.attention(
        q,
        k,
        v,
        mask=mask,
        scale=float(attributes.get("scale", size**-0.5)),
        softcap=float(attributes.get("logit_cap", 0.0) or 0.0),
    )
    return call.transpose(y, [0, 2, 1, 3])


COMPOSITES: dict[str, Composite] = {
    "odml.rms_norm": _rms_norm,
    "odml.scaled_dot_product_attention": _attention,
}
"""Composites that have an operator. The subgraphs of all others are taken."""


@lowers(STABLEHLO_COMPOSITE=1, folds=False, empty=True, note="an operator where one is known, else its subgraph")
def composite(call: TfliteCall) -> Result:
    """A composite by its name, or its subgraph."""
    name = str(call.option("Name", "") or "")
    attributes = call.flexbuffer(bytes(call.option("CompositeAttributes", [])))
    known = COMPOSITES.get(name)
    if known is not None and len(call.outputs) == 1 and all(t is None or t.size for t in call.inputs):
        result = known(call, attributes)
        if result is not None:
            return result
    return inline(call, int(call.option("DecompositionSubgraphIndex")), present(call))
