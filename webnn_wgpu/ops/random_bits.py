"""Random bits of a counter: the same ones on every device, in any order of the elements.

Source: J. Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011. The function is Threefry-2x32 with 20 rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import MAX_DIMENSION
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._quads import quad_launch, quad_work
from .interfaces.bounds import EXACT
from .interfaces.cost import per_element
from .interfaces.documentation import RANDOM_EXTENSIONS, Documentation
from .interfaces.family import Family

_TEMPLATE = KernelTemplate("random_bits")

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_MOST_ELEMENTS = 2**32 - 4
_OPERATIONS = 100


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    shape: tuple[int, ...] = tuple(call.attrs["shape"])
    call.attrs["shape"] = shape
    call.require(call.input().shape == (2,), "key must have two elements", allowed="[2]")
    call.require(
        all(1 <= size <= MAX_DIMENSION for size in shape) and math.prod(shape) <= _MOST_ELEMENTS,
        "shape must have positive dimensions, and fewer than 2^32 elements",
        got=str(list(shape)),
    )
    return (call.output("uint32", shape),)


def threefry(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Return both words that the function makes of counters.

    Args:
        key: two words.
        high: the upper words of the counters, as uint32.
        low: their lower words.

    Example:
        >>> words = threefry(np.zeros(2, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32))
        >>> [hex(word[0]) for word in words]
        ['0x6b200159', '0x99ba4efe']
    """
    keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(_PARITY)]
    x, y = high + keys[0], low + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = y ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    key = arrays[0]
    assert key is not None
    low = np.arange(out[0].num_elements, dtype=np.uint32)
    with np.errstate(over="ignore"):
        x, y = threefry(key, np.zeros_like(low), low)
    return [(x ^ y).reshape(out[0].shape)]


def _lower(low: Lowering) -> list[KernelCall]:
    count = low.output().num_elements
    fields, grid = quad_launch(count, low.target)
    bindings = [Binding(name="key", access="read", element="uint32")]
    bindings.append(Binding(name="output", access="write", element="uint32", quad=True))

    def reach(first: int, end: int) -> list[Interval | None]:
        return [(0, 2), (first, end)]

    return [
        KernelCall(
            spec=_TEMPLATE.spec(bindings, [(name, type_) for name, type_, _ in fields]),
            operands=(low.value(0), low.node.outputs[0]),
            uniforms=tuple(value for *_, value in fields),
            grid=grid,
            reason="a counter for each element",
            work=quad_work(count, low.target, reach),
        )
    ]


OPS = (
    OpDef(
        name="x.random_bits",
        operands=(Operand(name="key", data_types=("uint32",), min_rank=1, max_rank=1),),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("shape", "uints"),),
        templates=(_TEMPLATE,),
        output_types=("uint32",),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
        cost=per_element(_OPERATIONS),
        bounds=EXACT,
        documentation=Documentation(
            group=RANDOM_EXTENSIONS,
            summary="Random words, which depend on a key and on the place of each element alone.",
            details=(
                "Every device gives the same words: those of `jax.random.bits(key, shape, 'uint32')`. They are the exclusive "
                "or of both words of Threefry-2x32 with 20 rounds, whose counter is the number of the element. Different keys "
                "give independent words."
            ),
            arguments={
                "key": "{types}, with two elements.",
                "shape": "The shape of the result, with fewer than 2^32 elements.",
            },
            returns="A uint32 operand of the given shape.",
            raises="The key has another shape, a dimension is not positive, there are too many elements",
            numerics="Exact.",
            example="""
                >>> bits = b.ext.random_bits(b.constant(np.uint32([0, 42])), [2, 2])
                >>> print(context.compute(b.build({"bits": bits}), {})["bits"])
                [[2098992034 2919706841]
                 [2646866425 2409546199]]
            """,
        ),
    ),
)
