"""The questions that passes, lowering and planner ask about costs; `software.py` and `hardware.py` answer them.

A figure carries its unit in its name: `_ns` is nanoseconds, `_bytes` is bytes. Estimates of one `Costs` may be compared with
each other and with nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PassCosts:
    """Costs that decide how a graph is rewritten.

    Attributes:
        channels_last_product_ns: time that a convolution saves for each product of a result, if channels come last.
        channels_last_result_ns: time that it saves besides for each element of its result.
        transpose_element_ns: time that a transpose takes for each element.
        transpose_ns: time that a transpose takes at least.
        most_joined_bytes: weights that products of the same rows may have to be computed as one. Joining copies the weights.
        most_products: products that a product whose columns are cut may become. More of them have too little work each.
        most_folded_growth_bytes: bytes by which a folded constant may exceed its operands. Beyond that the device computes it.
        most_fused_steps: operators in one kernel. The compile time of longer shaders exceeds what a fused kernel saves.
    """

    channels_last_product_ns: float
    channels_last_result_ns: float
    transpose_element_ns: float
    transpose_ns: float
    most_joined_bytes: int
    most_products: int
    most_folded_growth_bytes: int
    most_fused_steps: int

    def channels_last_gain_ns(self, results: int, products: int) -> float:
        """Return the time that a convolution saves if channels come last.

        Args:
            results: elements of its result.
            products: products that are summed up to one element.
        """
        return results * (self.channels_last_result_ns + self.channels_last_product_ns * products)

    def transposing_ns(self, elements: int) -> float:
        """Return the time that the transpose of a value takes."""
        return self.transpose_ns + self.transpose_element_ns * elements


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Costs of one device, by what asks for them.

    Attributes:
        passes: costs that decide how a graph is rewritten.
    """

    passes: PassCosts
