"""The check of forced kernel variants: an unknown name would otherwise have no effect."""

from __future__ import annotations

from functools import cache

from ..core.errors import MLTypeError
from ..kernels.spec import ForcedVariants
from ..ops import OPS


@cache
def forceable() -> dict[str, tuple[str, ...]]:
    """Return the variants that can be forced, by operator name or, for all of its operators, by template name.

    Example:
        >>> forceable()["matmul"]
        ('gemv', 'plain', 'subgroup', 'tiled')
    """
    found: dict[str, set[str]] = {}
    for op in OPS.values():
        if op.variants:
            found[op.name] = set(op.variants)
            continue
        for template in op.templates:
            _, dot, variant = template.name.partition(".")
            variants = (variant,) if dot else template.variants
            for name in (op.name, template.family) if variants else ():
                found.setdefault(name, set()).update(variants)
    return {name: tuple(sorted(variants)) for name, variants in sorted(found.items())}


def check_forced(forced: ForcedVariants) -> None:
    """Check that every forced variant exists. The planner checks later whether the device can run it.

    Args:
        forced: operator or template name -> variant.

    Raises:
        MLTypeError: there is no such operator, or no such variant of it.
    """
    known = forceable()
    for name, variant in forced.items():
        if name not in known:
            raise MLTypeError(
                "a kernel variant is forced for an operator that has none",
                got=f"{name}={variant}",
                allowed=", ".join(known),
                hint="WEBNN_WGPU_FORCE names operators as the specification does.",
            )
        if variant not in known[name]:
            allowed = ", ".join(f"{name}={v}" for v in known[name])
            raise MLTypeError("the forced kernel variant does not exist", got=f"{name}={variant}", allowed=allowed)
