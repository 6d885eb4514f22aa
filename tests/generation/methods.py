"""The generated method of an operator, for tests. The generator runs where methods are missing and does not import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.generation.signatures import Signature
from webnn_wgpu.api.operators import Operators
from webnn_wgpu.api.operators.ext import Extensions

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.ops import OpDef


def method_of(op: OpDef) -> Callable[..., Any]:
    """Return the builder's method of an operator. If it is missing, the error says how to add it."""
    signature, methods = Signature(op), Extensions if op.extension else Operators
    assert hasattr(methods, signature.name), (
        f"{methods.__name__} has no method {signature.name}: run `python -m tests.generation`. If the group is new, add "
        f"{signature.documentation.group.mixin} to the bases of {methods.__name__}"
    )
    return getattr(methods, signature.name)
