"""Conversions between numbers and the integers of quantized tensors."""

from __future__ import annotations

import numpy as np

from ..call import TfliteCall
from ._registry import Result, lowers


@lowers(QUANTIZE=6, note="8 bits to 8 bits: a table of 256 results")
def quantize(call: TfliteCall) -> Result:
    """Numbers, or integers of another scale, as the integers of the output."""
    table = call.table(lambda x: x)
    return table if table is not None else call.floats(0)


@lowers(DEQUANTIZE=9, folds=False, note="constants stay packed")
def dequantize(call: TfliteCall) -> Result:
    """The numbers of a quantized tensor, or of a float16 tensor."""
    if call.tensor(0).dtype.kind not in "f" and not call.tensor(0).is_quantized:
        call.fail("the input has no scale")
    x = call.floats(0)
    return x if x is not call.tensor(0).operand else call.build.identity(x)


@lowers(FAKE_QUANT=2)
def fake_quant(call: TfliteCall) -> Result:
    """Numbers rounded to the steps of a range, which is moved so that 0 is a step."""
    low, high = np.float32(call.option("Min", 0.0)), np.float32(call.option("Max", 0.0))
    least, most = int(bool(call.option("NarrowRange", False))), (1 << int(call.option("NumBits", 8))) - 1
    if not low < high or most <= least:
        call.fail(f"a range from {low} to {high} with {most - least} steps")
    scale = (high - low) / np.float32(most - least)
    zero = min(max(int(np.floor(least - low / scale + np.float32(0.5))), least), most)
    first, last = float((least - zero) * scale), float((most - zero) * scale)
    b = call.build
    x = b.clamp(call.floats(0), min_value=first, max_value=last)
    steps = b.div(b.sub(x, call.constant(first, "float32")), call.constant(scale, "float32"))
    steps = b.floor(b.add(steps, call.constant(0.5, "float32")))
    return b.add(b.mul(steps, call.constant(scale, "float32")), call.constant(first, "float32"))
