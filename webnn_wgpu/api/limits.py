"""`op_support_limits`: the data types and ranks that each operator supports on a device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.caps import Caps
from ..core.data_types import CONSTANT_TYPES, DATA_TYPES, MAX_RANK
from ..core.names import snake_case
from ..ops import OPS
from ..ops._def import OpDef


class MLOpSupportLimits(dict[str, Any]):
    """A dictionary with the specification's camelCase keys that also accepts their snake_case forms.

    Example:
        >>> limits = MLOpSupportLimits(rankRange=[0, 8])
        >>> limits["rank_range"], "rank_range" in limits, list(limits)
        ([0, 8], True, ['rankRange'])

    Spec: https://www.w3.org/TR/webnn/#dictdef-mlopsupportlimits
    """

    def __missing__(self, key: str) -> Any:
        for own in self:
            if snake_case(own) == key:
                return self[own]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or any(snake_case(own) == key for own in self)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or a default.

        Args:
            key: the key, in camelCase or snake_case.
            default: the result for an absent key.
        """
        return self[key] if key in self else default


def op_support_limits(caps: Caps) -> MLOpSupportLimits:
    """Return the support limits of a device, one member per operator. Extension operators are under `extensions`.

    `differentiable` lists the operators that `gradients` can lead through, extension operators as `x.name`.

    Spec: https://www.w3.org/TR/webnn/#api-mlcontext-opsupportlimits
    """
    limits = MLOpSupportLimits(
        preferredInputLayout="nchw",
        maxTensorByteLength=caps.limit("max-buffer-size"),
        input=_limits(DATA_TYPES, 0, MAX_RANK),
        constant=_limits(CONSTANT_TYPES, 0, MAX_RANK),
        output=_limits(DATA_TYPES, 0, MAX_RANK),
    )
    extensions = MLOpSupportLimits()
    for op in OPS.values():
        if op.extension:
            extensions[op.name.removeprefix("x.")] = _operator(op)
        elif not op.internal:
            limits[op.name] = _operator(op)
    # Separate from the specification's members, so that names of later drafts do not conflict with them.
    limits["extensions"] = extensions
    limits["differentiable"] = [op.name for op in OPS.values() if op.gradient is not None]
    return limits


def _operator(op: OpDef) -> MLOpSupportLimits:
    """Return the support limits of one operator: data types and ranks of its operands and outputs, by name."""
    # All data types are included: kernels compute those that a device lacks in 32-bit words.
    members = MLOpSupportLimits()
    by_name = {operand.name: operand for operand in op.operands}
    for operand in op.operands:
        declared = by_name[operand.same_as].data_types if operand.same_as else operand.data_types
        types = [t for t in CONSTANT_TYPES if t in declared]
        members[operand.name] = _limits(types, operand.min_rank, operand.max_rank)
    first = next(iter(members.values()))["dataTypes"]
    for name in op.outputs:
        members[name] = _limits(op.output_types or first, 0, MAX_RANK)
    return members


def _limits(data_types: Iterable[str], low: int, high: int) -> MLOpSupportLimits:
    return MLOpSupportLimits(dataTypes=list(data_types), rankRange=MLOpSupportLimits(min=low, max=high))
