"""The losses and metrics of TensorFlow.js's layers, as operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from webnn_wgpu import MLGraphBuilder, MLOperand, MLTypeError

from .layers_optimizers import EPSILON

Function = Callable[[MLGraphBuilder, MLOperand, MLOperand], MLOperand]
"""A function of the builder, the targets and the predictions."""

LARGEST = float(np.finfo(np.float32).max)


def _number(b: MLGraphBuilder, value: float) -> MLOperand:
    return b.constant("float32", value)


def _last(x: MLOperand) -> int:
    return len(x.shape) - 1


def _mean(b: MLGraphBuilder, x: MLOperand) -> MLOperand:
    return b.reduce_mean(x, axes=[_last(x)])


def _sum(b: MLGraphBuilder, x: MLOperand) -> MLOperand:
    return b.reduce_sum(x, axes=[_last(x)])


def _clipped(b: MLGraphBuilder, x: MLOperand, low: float, high: float) -> MLOperand:
    return b.clamp(x, min_value=low, max_value=high)


def mean_squared_error(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the squares of the differences."""
    apart = b.sub(output, target)
    return _mean(b, b.mul(apart, apart))


def mean_absolute_error(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the differences' absolute values."""
    return _mean(b, b.abs(b.sub(output, target)))


def mean_absolute_percentage_error(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the differences relative to the targets, in percent."""
    size = _clipped(b, b.abs(target), EPSILON, LARGEST)
    return b.mul(_mean(b, b.abs(b.div(b.sub(target, output), size))), _number(b, 100))


def mean_squared_logarithmic_error(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the squares of the logarithms' differences."""
    first, second = (b.log(b.add(_clipped(b, x, EPSILON, LARGEST), _number(b, 1))) for x in (output, target))
    apart = b.sub(first, second)
    return _mean(b, b.mul(apart, apart))


def _hinges(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    return b.max(b.sub(_number(b, 1), b.mul(target, output)), _number(b, 0))


def squared_hinge(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the squares of the hinges."""
    hinges = _hinges(b, target, output)
    return _mean(b, b.mul(hinges, hinges))


def hinge(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the hinges."""
    return _mean(b, _hinges(b, target, output))


def categorical_hinge(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the distance of the best other class from the right one."""
    right = _sum(b, b.mul(target, output))
    other = b.mul(b.sub(_number(b, 1), target), output)
    best = b.reduce_max(other, axes=[_last(other)])
    return b.max(b.add(b.sub(best, right), _number(b, 1)), _number(b, 0))


def logcosh(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the logarithms of the differences' hyperbolic cosine."""
    apart = b.sub(output, target)
    soft = b.softplus(b.mul(apart, _number(b, -2)))
    return _mean(b, b.sub(b.add(apart, soft), _number(b, math.log(2))))


def categorical_crossentropy(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the cross entropy of probabilities of classes."""
    total = b.reduce_sum(output, axes=[_last(output)], keep_dimensions=True)
    share = _clipped(b, b.div(output, total), EPSILON, 1 - EPSILON)
    return b.neg(_sum(b, b.mul(target, b.log(share))))


def _hot(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    classes = output.shape[-1]
    rows = b.reshape(b.floor(target), [*output.shape[:-1], 1])
    return b.cast(b.equal(rows, b.constant(np.arange(classes, dtype=np.float32))), "float32")


def sparse_categorical_crossentropy(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the cross entropy of probabilities of classes, of targets that are numbers of classes."""
    return categorical_crossentropy(b, _hot(b, target, output), _clipped(b, output, EPSILON, 1 - EPSILON))


def binary_crossentropy(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the cross entropy of single probabilities."""
    share = _clipped(b, output, EPSILON, 1 - EPSILON)
    logits = b.log(b.div(share, b.sub(_number(b, 1), share)))
    # log(1 + exp(-|x|)) is softplus of -|x|.
    soft = b.softplus(b.neg(b.abs(logits)))
    return _mean(b, b.add(b.sub(b.relu(logits), b.mul(logits, target)), soft))


def kullback_leibler_divergence(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the divergence of two distributions."""
    ratio = b.div(_clipped(b, target, EPSILON, 1.0), _clipped(b, output, EPSILON, 1.0))
    return _sum(b, b.mul(target, b.log(ratio)))


def poisson(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the means of the negative logarithm of Poisson's probability."""
    log = b.log(b.add(output, _number(b, EPSILON)))
    return _mean(b, b.sub(output, b.mul(target, log)))


def _unit(b: MLGraphBuilder, x: MLOperand) -> MLOperand:
    square = b.reduce_sum_square(x, axes=[_last(x)], keep_dimensions=True)
    return b.div(x, b.sqrt(b.max(square, _number(b, EPSILON))))


def cosine_proximity(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the negative cosines between targets and predictions."""
    return b.neg(_sum(b, b.mul(_unit(b, target), _unit(b, output))))


def binary_accuracy(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the share of elements on the right side of a half."""
    above = b.cast(b.greater(output, _number(b, 0.5)), "float32")
    return _mean(b, b.cast(b.equal(target, above), "float32"))


def categorical_accuracy(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return whether the largest elements are at the same place."""
    wanted, found = (b.arg_max(x, _last(x), output_data_type="int32") for x in (target, output))
    return b.cast(b.equal(wanted, found), "float32")


def sparse_categorical_accuracy(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return whether the largest elements are at the places that the targets state."""
    place = b.arg_max(output, _last(output), output_data_type="int32")
    wanted = b.cast(b.reshape(target, place.shape), "int32")
    return b.cast(b.equal(wanted, place), "float32")


def _counted(b: MLGraphBuilder, target: MLOperand, output: MLOperand, right: float, said: float) -> MLOperand:
    """Return how many elements have a target and a prediction."""
    both = b.logical_and(b.equal(target, _number(b, right)), b.equal(output, _number(b, said)))
    return b.reduce_sum(b.cast(both, "float32"))


def _ratio(b: MLGraphBuilder, part: MLOperand, rest: MLOperand) -> MLOperand:
    whole = b.add(part, rest)
    return b.div(part, b.max(whole, _number(b, 1)))


def precision(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the share of true ones among those that are predicted."""
    return _ratio(b, _counted(b, target, output, 1, 1), _counted(b, target, output, 0, 1))


def recall(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the share of true ones that are predicted."""
    return _ratio(b, _counted(b, target, output, 1, 1), _counted(b, target, output, 1, 0))


def r2_score(b: MLGraphBuilder, target: MLOperand, output: MLOperand) -> MLOperand:
    """Return the share of the variance that the predictions explain."""
    residuals = b.reduce_sum_square(b.sub(target, output))
    whole = b.reduce_sum_square(b.sub(target, b.reduce_mean(target)))
    return b.sub(_number(b, 1), b.div(residuals, whole))


LOSSES: Mapping[str, Function] = {
    "meanSquaredError": mean_squared_error,
    "meanAbsoluteError": mean_absolute_error,
    "meanAbsolutePercentageError": mean_absolute_percentage_error,
    "meanSquaredLogarithmicError": mean_squared_logarithmic_error,
    "squaredHinge": squared_hinge,
    "hinge": hinge,
    "categoricalHinge": categorical_hinge,
    "logcosh": logcosh,
    "categoricalCrossentropy": categorical_crossentropy,
    "sparseCategoricalCrossentropy": sparse_categorical_crossentropy,
    "binaryCrossentropy": binary_crossentropy,
    "kullbackLeiblerDivergence": kullback_leibler_divergence,
    "poisson": poisson,
    "cosineProximity": cosine_proximity,
}
"""The losses by TensorFlow.js's names."""

METRICS: Mapping[str, Function] = {
    "binaryAccuracy": binary_accuracy,
    "categoricalAccuracy": categorical_accuracy,
    "sparseCategoricalAccuracy": sparse_categorical_accuracy,
    "precision": precision,
    "recall": recall,
    "r2Score": r2_score,
    "categoricalCrossentropy": categorical_crossentropy,
    "sparseCategoricalCrossentropy": sparse_categorical_crossentropy,
    "binaryCrossentropy": binary_crossentropy,
    "mse": mean_squared_error,
    "MSE": mean_squared_error,
    "mae": mean_absolute_error,
    "MAE": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "MAPE": mean_absolute_percentage_error,
    "cosine": cosine_proximity,
    **{name: LOSSES[name] for name in ("meanSquaredError", "meanAbsoluteError", "meanAbsolutePercentageError")},
}
"""The metrics by TensorFlow.js's names."""


def camel(name: str) -> str:
    """Return TensorFlow.js's form of a name.

    Example:
        >>> camel("mean_squared_error"), camel("mae")
        ('meanSquaredError', 'mae')
    """
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def loss_of(name: str) -> str:
    """Return the name of a loss, in TensorFlow.js's form.

    Raises:
        MLTypeError: an unknown name.
    """
    found = camel(name)
    if found not in LOSSES:
        raise MLTypeError("unknown loss", operator="compile", got=repr(name), allowed=", ".join(LOSSES))
    return found


def metric_of(name: str, loss: str, width: int) -> tuple[str, Function]:
    """Return the name that the history has for a metric, and its function.

    Args:
        name: the metric.
        loss: the loss of the output, which decides the meaning of "accuracy".
        width: the last size of the output.

    Raises:
        MLTypeError: an unknown name.
    """
    found = camel(name)
    if found in ("accuracy", "acc", "crossentropy", "ce"):
        kind = "Accuracy" if found.startswith("acc") else "Crossentropy"
        binary = width == 1 or loss == "binaryCrossentropy"
        sparse = loss == "sparseCategoricalCrossentropy"
        function = METRICS[("binary" if binary else "sparseCategorical" if sparse else "categorical") + kind]
        return "acc" if kind == "Accuracy" else "ce", function
    if found not in METRICS:
        raise MLTypeError("unknown metric", operator="compile", got=repr(name), allowed=", ".join(("accuracy", *METRICS)))
    return found, METRICS[found]
