"""The documentation of the operators in `strided`."""

from __future__ import annotations

from .interfaces.documentation import MOVEMENT, Documentation, Method

TRANSPOSE = Documentation(
    group=MOVEMENT,
    summary="Reorder the dimensions.",
    arguments={
        "input": "{types}, with any shape.",
        "permutation": "For each dimension of the output, the input's dimension. The default reverses the order.",
    },
    returns="An operand with the input's data type and the permuted shape.",
    raises="The permutation is not one of the input's dimensions",
    example="""
        >>> b.transpose(x).shape
        (3, 2)
    """,
    method=Method(pywebnn=("permutation",)),
)

SLICE = Documentation(
    group=MOVEMENT,
    summary="Take a window of the input, or every n-th element of it.",
    arguments={
        "input": "{types}, with any shape.",
        "starts": "First position of the window, for each dimension.",
        "sizes": "Size of the window before `strides` apply, 1 or more, for each dimension.",
        "strides": "Step within the window, 1 or more, for each dimension. The default is 1 everywhere.",
    },
    returns="An operand with the input's data type. Its size is ceil(size / stride) along each dimension.",
    raises="A list does not have one item per dimension, the window leaves the input, a size or stride is 0",
    example="""
        >>> b.slice(x, [0, 1], [2, 2]).shape
        (2, 2)
    """,
    method=Method(pywebnn=("strides",)),
)

SPLIT = Documentation(
    group=MOVEMENT,
    summary="Cut the input into parts along a dimension.",
    arguments={
        "input": "{types}, with rank 1 or more.",
        "splits": "Number of equal parts, or the size of each part.",
        "axis": "The dimension.",
    },
    returns="A list of operands with the input's data type, in order.",
    raises=(
        "The number does not divide the input's size along `axis`, or the sizes do not add up to it. A size is 0, the axis is "
        "not a dimension of the input"
    ),
    example="""
        >>> [part.shape for part in b.split(x, [1, 2], axis=1)]
        [(2, 1), (2, 2)]
    """,
    method=Method(pywebnn=("axis",)),
)

EXPAND = Documentation(
    group=MOVEMENT,
    summary="Repeat dimensions of size 1, and add dimensions in front, until the shape is `new_shape`.",
    arguments={
        "input": "{types}, with a shape that broadcasts to `new_shape`.",
        "new_shape": "The output's shape.",
    },
    returns="An operand with the input's data type and the shape `new_shape`.",
    raises="The input's shape does not broadcast to `new_shape`",
    example="""
        >>> b.expand(x, [4, 2, 3]).shape
        (4, 2, 3)
    """,
)

TILE = Documentation(
    group=MOVEMENT,
    summary="Repeat the whole input along each dimension.",
    arguments={
        "input": "{types}, with any shape.",
        "repetitions": "Number of repetitions, 1 or more, for each dimension.",
    },
    returns="An operand with the input's data type. Its sizes are those of the input times `repetitions`.",
    raises="The list does not have one item per dimension, an item is 0",
    example="""
        >>> b.tile(x, [1, 2]).shape
        (2, 6)
    """,
)

REVERSE = Documentation(
    group=MOVEMENT,
    summary="Reverse the order of the elements along dimensions.",
    arguments={
        "input": "{types}, with any shape.",
        "axes": "The dimensions, each once. The default is all dimensions.",
    },
    returns="An operand with the input's data type and shape.",
    raises="An axis is not a dimension of the input or is repeated",
    example="""
        >>> b.reverse(x, axes=[1]).shape
        (2, 3)
    """,
)
