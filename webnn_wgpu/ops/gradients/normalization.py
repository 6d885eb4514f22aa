"""Gradients of normalizations. Statistics of float16 operands are float32, as in the kernels of the operators."""

from __future__ import annotations

from collections.abc import Sequence

from ..interfaces.gradient import GradientCall, GradientTerm, by_parts

_STATISTICS = "float32"


def _along(vector: GradientTerm, axes: Sequence[int], rank: int) -> GradientTerm:
    """Return a tensor over `axes`, in their order, in a shape that broadcasts with tensors of a rank."""
    ascending = sorted(range(len(axes)), key=lambda i: axes[i])
    shape = [1] * rank
    for axis, size in zip(axes, vector.shape, strict=True):
        shape[axis] = size
    return vector.permuted(ascending).reshaped(shape)


def _collected(g: GradientTerm, axes: Sequence[int]) -> GradientTerm:
    """Return the sums over all dimensions but `axes`, which stay in their order."""
    ascending = sorted(axes)
    return g.summed([d for d in range(g.rank) if d not in axes]).permuted([ascending.index(axis) for axis in axes])


def _normalization(
    call: GradientCall, axes: Sequence[int], scaled: Sequence[int], *, centered: bool
) -> list[GradientTerm | None]:
    """Return the gradients of input, scale and bias.

    Args:
        call: the node.
        axes: the dimensions whose elements have common statistics.
        scaled: the dimensions of scale and bias.
        centered: whether the mean is subtracted.
    """
    data_type, scale = call.x.type.data_type, call.optional(1)
    factor = None if scale is None else _along(scale, scaled, call.x.rank)
    options = {"axes": tuple(axes), "epsilon": call.attrs["epsilon"], "centered": centered, "products": call.wants(1)}
    of_input, *products = call.writer.add("x.normalization_gradient", (call.gradient, call.x, factor), options)
    found: list[GradientTerm | None] = [of_input, *(_collected(each, scaled).cast(data_type) for each in products)]
    found += [None] * (2 - len(found))
    found.append(_collected(call.gradient.cast(_STATISTICS), scaled).cast(data_type) if call.wants(2) else None)
    return found[: len(call.operands)]


def _gradient(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    """Return the results of the operator of these gradients, as a composition."""
    gradient, x, scale, addend = operands
    assert gradient is not None
    assert x is not None
    axes, centered = call.attrs["axes"], call.attrs["centered"]
    data_type = x.type.data_type
    gradient, x = gradient.cast(_STATISTICS), x.cast(_STATISTICS)

    def mean(term: GradientTerm) -> GradientTerm:
        # Without dimensions, each element is its own mean.
        return term.averaged(axes) if axes else term

    difference = x - mean(x) if centered else x
    factor = (mean(difference.square()) + call.attrs["epsilon"]).apply("sqrt").apply("reciprocal")
    normal = difference * factor
    inner = gradient if scale is None else gradient * scale.cast(_STATISTICS)
    rest = inner - normal * mean(inner * normal)
    of_input = (factor * (rest - mean(inner) if centered else rest)).cast(data_type)
    found = [of_input if addend is None else of_input + addend, gradient * normal]
    return found[: len(call.results)]


GRADIENT = by_parts(_gradient)


def layer(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a layer normalization."""
    return _normalization(call, call.attrs["axes"], call.attrs["axes"], centered=True)


def rms(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a normalization by the root of the mean square."""
    return _normalization(call, call.attrs["axes"], call.attrs["axes"], centered=False)


def instance(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of an instance normalization."""
    channels, axes = (1, (2, 3)) if call.attrs["layout"] == "nchw" else (3, (1, 2))
    return _normalization(call, axes, (channels,), centered=True)


def batch(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a batch normalization, whose mean and variance are operands."""
    data_type = call.x.type.data_type
    x, mean, variance, g = (term.cast(_STATISTICS) for term in (call.x, call.given(1), call.given(2), call.gradient))
    scale, axes = call.optional(3), (call.attrs["axis"],)
    factor = (variance + call.attrs["epsilon"]).apply("sqrt").apply("reciprocal")
    normalized = (x - _along(mean, axes, x.rank)) * _along(factor, axes, x.rank)
    products = _collected(g * normalized, axes)
    sums = _collected(g, axes)
    scaled = factor if scale is None else factor * scale.cast(_STATISTICS)
    found = [
        g * _along(scaled, axes, x.rank),
        -(sums * scaled),
        -0.5 * (products * (scaled * factor)),
        products,
        sums,
    ]
    return [term.cast(data_type) for term in found][: len(call.operands)]
