"""The documentation of reductions."""

from __future__ import annotations

from ..core.names import method_name
from .interfaces.documentation import REDUCTIONS, Documentation, Method


def reduction_documentation(name: str, quantity: str, numerics: str) -> Documentation:
    """Return the documentation of a reduction.

    Args:
        name: name of the operator.
        quantity: the quantity that is computed over dimensions: "Sum of squares".
        numerics: results for special values.
    """
    return Documentation(
        group=REDUCTIONS,
        summary=f"{quantity} over dimensions.",
        arguments={
            "input": "{types}, with any shape.",
            "axes": (
                "Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each "
                "element."
            ),
            "keep_dimensions": "Whether the reduced dimensions stay, with size 1.",
        },
        returns="An operand with the input's data type, and with its shape without the reduced dimensions.",
        raises="An axis is not a dimension of the input or is repeated, the data type is not allowed",
        numerics=numerics,
        example=f"""
            >>> b.{method_name(name)}(x, axes=[1], keep_dimensions=True).shape
            (2, 1)
        """,
        method=Method(dictionary="MLReduceOptions", pywebnn=("axes", "keep_dimensions")),
    )
