"""Evaluation of single ONNX operators on the host, with the `onnx` package's reference implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir

from ..common.calls import OnHost
from .types import Array

MOST_FOLDED = 1 << 24
"""The maximum number of elements that the host computes during compilation, if the device can compute them as well."""

MOST_COMPUTED = 1 << 28
"""The maximum number of elements that the host computes."""

RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})
"""Operators whose results differ from call to call."""

CONTROL = frozenset({"If", "Loop", "Scan"})
"""Operators that contain graphs."""


def evaluator(proto: onnx.NodeProto | onnx.GraphProto, versions: Mapping[str, int]) -> Any:
    """Return `onnx`'s reference implementation of an operator or a graph.

    The import is local because few models need it. It takes 12 MB, and as long as the rest of `onnx`.

    Args:
        proto: the operator or graph.
        versions: the versions of operator sets by domain.
    """
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(proto, opsets=dict(versions))


def evaluate(node: onnx_ir.Node, arrays: Sequence[Array | None], version: int) -> list[Array]:
    """Return the outputs of an operator.

    Args:
        node: an operator without graphs.
        arrays: its inputs, None for absent ones.
        version: the version of its operator set.

    Raises:
        OnHost: the `onnx` package has no implementation, or its implementation refused these inputs.
    """
    expected = expected_size(node, arrays)
    if expected > MOST_COMPUTED:
        raise OnHost(f"its result would have {expected} elements")
    own = _OWN.get(node.op_type) if not node.domain else None
    if own is not None:
        return own(node, arrays)
    proto = alone(node, [array is not None for array in arrays])
    if node.op_type == "RoiAlign" and not node.domain and version < 16:
        # The reference implements the version that moves regions by half an element.
        proto.attribute.append(onnx.helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))
    feeds: dict[str, Any] = {f"i{i}": array for i, array in enumerate(arrays) if array is not None}
    wanted = [name for name in proto.output if name]
    try:
        with np.errstate(all="ignore"):
            results = evaluator(proto, {node.domain: version}).run(wanted, feeds)
    except Exception as error:
        # An operator with a kernel on the device may run here only because an input is empty.
        empty = any(array is not None and not array.size for array in arrays)
        raise OnHost(f"an input has no elements, and {_reason(node, error)}" if empty else _refusal(node, error)) from error
    named = dict(zip(wanted, results, strict=True))
    outputs: list[Array] = []
    for name in proto.output:
        result = named.get(name)
        if name and not isinstance(result, (np.ndarray, np.generic)):
            raise OnHost(f"its result is a {type(result).__name__}, not a tensor")
        outputs.append(np.zeros(0) if result is None else np.asarray(result))
    return outputs


def _attribute(node: onnx_ir.Node, name: str, default: Any) -> Any:
    return node.attributes[name].value if name in node.attributes else default


def _gather_elements(node: onnx_ir.Node, arrays: Sequence[Array | None]) -> list[Array]:
    """GatherElements. The reference reads all of the data for each of its slices."""
    if len(arrays) != 2 or arrays[0] is None or arrays[1] is None:
        raise OnHost("it needs two inputs")
    data, indices = arrays[0], arrays[1]
    axis = _attribute(node, "axis", 0)
    if data.ndim != indices.ndim or not -data.ndim <= axis < data.ndim:
        raise OnHost(f"indices of shape {indices.shape} do not fit data of shape {data.shape}")
    axis %= data.ndim
    size = data.shape[axis]
    sizes = [d if i == axis else n for i, (d, n) in enumerate(zip(data.shape, indices.shape, strict=True))]
    inside = not indices.size or -size <= indices.min() <= indices.max() < size
    if not inside or any(n > d for n, d in zip(sizes, data.shape, strict=True)):
        raise OnHost(f"indices of shape {indices.shape} do not fit data of shape {data.shape}")
    inside_of = data[tuple(slice(n) for n in sizes)]
    return [np.take_along_axis(inside_of, np.where(indices < 0, indices + size, indices), axis)]


def _unique(node: onnx_ir.Node, arrays: Sequence[Array | None]) -> list[Array]:
    """Unique. The reference supports several outputs in the order of the input only along the first axis."""
    x, axis = arrays[0] if arrays else None, _attribute(node, "axis", None)
    if x is None or (axis is not None and not -x.ndim <= axis < x.ndim):
        raise OnHost(f"no axis {axis} of an input of shape {None if x is None else x.shape}")
    y, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not _attribute(node, "sorted", 1):
        order = np.argsort(first)
        y, first, counts = np.take(y, order, axis=axis or 0), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return [y, *(a.astype(np.int64) for a in (first, inverse, counts))][: len(node.outputs)]


def _non_max_suppression(node: onnx_ir.Node, arrays: Sequence[Array | None]) -> list[Array]:
    """NonMaxSuppression. The reference requires the optional inputs, and processes boxes one by one."""
    boxes, scores, most, overlap, least = (*arrays, *[None] * 5)[:5]
    if boxes is None or scores is None or boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[:2] != scores.shape[::2]:
        raise OnHost("it needs boxes [batches, n, 4] and scores [batches, classes, n]")
    # The default maximum number of boxes is 0.
    limit = int(most.reshape(-1)[0]) if most is not None and most.size else 0
    threshold = overlap.reshape(-1)[0] if overlap is not None and overlap.size else np.float32(0)
    if _attribute(node, "center_point_box", 0):
        center, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = center - half, center + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    areas = np.prod(high - low, axis=-1)
    selected: list[tuple[int, int, int]] = []
    for batch, kind in np.ndindex(*scores.shape[:2]):
        own = scores[batch, kind]
        # Best score first. Equal scores keep their order.
        left = np.argsort(-own, kind="stable")
        if least is not None and least.size:
            left = left[own[left] > least.reshape(-1)[0]]
        for _ in range(limit):
            if not left.size:
                break
            best, left = left[0], left[1:]
            selected.append((batch, kind, int(best)))
            sides = np.minimum(high[batch, left], high[batch, best]) - np.maximum(low[batch, left], low[batch, best])
            common = np.prod(np.maximum(sides, 0), axis=-1)
            union = areas[batch, left] + areas[batch, best] - common
            # Boxes without an area have no overlap.
            solid = (common > 0) & (areas[batch, left] > 0) & (areas[batch, best] > 0)
            left = left[~(solid & (common / np.where(solid, union, 1) > threshold))]
    return [np.array(selected, np.int64).reshape(-1, 3)]


_OWN: Mapping[str, Callable[[onnx_ir.Node, Sequence[Array | None]], list[Array]]] = {
    "GatherElements": _gather_elements,
    "NonMaxSuppression": _non_max_suppression,
    "Unique": _unique,
}
"""Operators of ai.onnx for which the reference implementation is too slow or wrong."""


def obstacle(node: onnx_ir.Node, version: int, lowered: bool) -> str:
    """Return the reason why an operator cannot be evaluated with any inputs, or "" if there is none.

    Args:
        node: the operator.
        version: the version of its operator set.
        lowered: whether the device has the operator, so that a function of the model is no remedy.
    """
    if node.op_type in _OWN and not node.domain:
        return ""
    try:
        evaluator(alone(node, [value is not None for value in node.inputs]), {node.domain: version})
    except Exception as error:  # The `onnx` package raises errors of many types.
        return _reason(node, error) if lowered else _refusal(node, error)
    return ""


def _refusal(node: onnx_ir.Node, error: Exception) -> str:
    """Return the reason of an error of the reference implementation, and the remedy for operators that it does not have."""
    remedy = ". A function of the model (`model.functions`) can define it" if _is_unknown(node, error) else ""
    return f"{_reason(node, error)}{remedy}"


def _reason(node: onnx_ir.Node, error: Exception) -> str:
    """Return the reason of an error of the reference implementation."""
    if _is_unknown(node, error):
        return f"onnx has no operator {node.domain or 'ai.onnx'}.{node.op_type}"
    return f"onnx's reference implementation says: {type(error).__name__}: {error}"


def _is_unknown(node: onnx_ir.Node, error: Exception) -> bool:
    """Return whether onnx does not define the operator. The reference raises the same error for some that onnx defines."""
    return isinstance(error, NotImplementedError) and not onnx.defs.has(node.op_type, domain=node.domain)


def alone(node: onnx_ir.Node, present: Sequence[bool]) -> onnx.NodeProto:
    """Return a node with inputs i0, i1, ... where they are present, and outputs o0, o1, ..."""
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name or "")
    proto.attribute.extend(onnx_ir.to_proto(attribute) for attribute in node.attributes.values())
    proto.input.extend(f"i{i}" if there else "" for i, there in enumerate(present))
    proto.output.extend(f"o{i}" if output.name else "" for i, output in enumerate(node.outputs))
    return proto


def expected_size(node: onnx_ir.Node, arrays: Sequence[Array | None]) -> int:
    """Return the minimum size of an operator's result, in elements, if the inputs' elements determine it. Otherwise 0."""
    given: Mapping[int, Array] = {i: a for i, a in enumerate(arrays) if a is not None}

    def product(values: Any) -> int:
        count = 1
        for value in np.ravel(values).tolist():
            # The operator itself refuses a list with items that are no integers.
            count *= max(int(value), 0) if isinstance(value, int) else 1
        return count

    match node.op_type:
        case "ConstantOfShape" if 0 in given:
            return product(given[0])
        case "Expand" if 0 in given and 1 in given:
            return max(product(given[1]), given[0].size)
        case "Tile" if 0 in given and 1 in given:
            return product(given[1]) * given[0].size
        case "Pad" if 0 in given and 1 in given and given[1].size == 2 * given[0].ndim:
            begin, end = np.split(given[1], 2)
            return product(np.array(given[0].shape) + begin + end)
        case "Range" if len(given) == 3 and all(a.size == 1 for a in given.values()) and given[2].item():
            span = (float(given[1].item()) - float(given[0].item())) / float(given[2].item())
            return int(max(0.0, min(span, 1e18))) if span > 0 else 0
        case "OneHot" if 0 in given and 1 in given:
            return product(given[1]) * given[0].size
        case "Resize" | "Upsample" if 0 in given:
            sizes = given.get(3)
            scales = given.get(2, given.get(1)) if node.op_type == "Resize" else given.get(1)
            if sizes is not None and sizes.size:
                return product(sizes)
            wanted = given[0].size * float(np.prod(scales)) if scales is not None and scales.size else 0.0
            return int(min(wanted, 1e18)) if wanted > 0 else 0
        case "BlackmanWindow" | "HammingWindow" | "HannWindow" if 0 in given:
            return product(given[0])
        case _:
            return 0
