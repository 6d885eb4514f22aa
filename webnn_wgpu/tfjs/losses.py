"""Losses: TensorFlow.js's namespace `losses`."""

from __future__ import annotations

from enum import IntEnum

from webnn_wgpu.eager import Tensor, cast, ops, with_gradient

from ._convert import TensorLike, as_floats, checked_axis
from .arithmetic import squared_difference
from .functions import log1p


class Reduction(IntEnum):
    """How the losses of a batch are reduced."""

    NONE = 0
    MEAN = 1
    SUM = 2
    SUM_BY_NONZERO_WEIGHTS = 3


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(losses: TensorLike, weights: TensorLike | None = None, reduction: int = _DEFAULT) -> Tensor:
    """Return losses times weights, and summed up.

    Args:
        losses: the losses.
        weights: the weights, which broadcast. None stands for ones.
        reduction: one of `Reduction`.
    """
    given = as_floats(losses)
    shares = None if weights is None else as_floats(weights)
    weighted = given if shares is None else given * shares
    if reduction == Reduction.NONE:
        return weighted
    total = ops.reduce_sum(weighted)
    if reduction == Reduction.SUM:
        return total
    if shares is None:
        return total / given.size
    if reduction == Reduction.MEAN:
        return total / (ops.reduce_sum(shares) * max(given.size / shares.size, 1))
    counted = ops.expand(cast(ops.not_equal(shares, 0), "float32"), list(weighted.shape))
    return total / ops.reduce_sum(counted)


def absolute_difference(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: int = _DEFAULT
) -> Tensor:
    """Return the loss of absolute differences.

    Args:
        labels: the labels.
        predictions: the predictions.
        weights: the weights, which broadcast.
        reduction: one of `Reduction`.
    """
    return compute_weighted_loss(ops.abs(as_floats(labels) - as_floats(predictions)), weights, reduction)


def mean_squared_error(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: int = _DEFAULT
) -> Tensor:
    """Return the loss of squared differences.

    Args:
        labels: the labels.
        predictions: the predictions.
        weights: the weights, which broadcast.
        reduction: one of `Reduction`.
    """
    return compute_weighted_loss(squared_difference(as_floats(labels), as_floats(predictions)), weights, reduction)


def cosine_distance(
    labels: TensorLike, predictions: TensorLike, axis: int, weights: TensorLike | None = None, reduction: int = _DEFAULT
) -> Tensor:
    """Return the loss of 1 less products of vectors.

    Args:
        labels: the labels: vectors of length 1.
        predictions: the predictions: vectors of length 1.
        axis: the axis of the vectors.
        weights: the weights, which broadcast.
        reduction: one of `Reduction`.
    """
    products = as_floats(labels) * as_floats(predictions)
    axes = [checked_axis(products, axis, "cosine_distance")]
    return compute_weighted_loss(1 - ops.reduce_sum(products, axes=axes, keep_dimensions=True), weights, reduction)


def hinge_loss(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: int = _DEFAULT
) -> Tensor:
    """Return the loss of predictions that are not at least 1 on the right side.

    Args:
        labels: 0 or 1.
        predictions: the predictions.
        weights: the weights, which broadcast.
        reduction: one of `Reduction`.
    """
    signs = as_floats(labels) * 2 - 1
    return compute_weighted_loss(ops.relu(1 - signs * as_floats(predictions)), weights, reduction)


def huber_loss(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, delta: float = 1, reduction: int = _DEFAULT
) -> Tensor:
    """Return the loss of squared differences, which grows linearly from a bound on.

    Args:
        labels: the labels.
        predictions: the predictions.
        weights: the weights, which broadcast.
        delta: the bound.
        reduction: one of `Reduction`.
    """
    error = ops.abs(as_floats(predictions) - as_floats(labels))
    quadratic = ops.min(error, delta)
    return compute_weighted_loss(quadratic * quadratic * 0.5 + (error - quadratic) * delta, weights, reduction)


def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    epsilon: float = 1e-7,
    reduction: int = _DEFAULT,
) -> Tensor:
    """Return the loss of probabilities.

    Args:
        labels: 0 or 1.
        predictions: probabilities.
        weights: the weights, which broadcast.
        epsilon: a small number, added to probabilities.
        reduction: one of `Reduction`.
    """
    right, found = as_floats(labels), as_floats(predictions)
    losses = -(right * ops.log(found + epsilon)) - (1 - right) * ops.log(1 - found + epsilon)
    return compute_weighted_loss(losses, weights, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float = 0,
    reduction: int = _DEFAULT,
) -> Tensor:
    """Return the loss of independent probabilities.

    Args:
        multi_class_labels: 0 or 1.
        logits: predictions before the logistic function.
        weights: the weights, which broadcast.
        label_smoothing: how far labels move to one half.
        reduction: one of `Reduction`.
    """
    labels, scores = as_floats(multi_class_labels), as_floats(logits)
    if label_smoothing:
        labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
    losses = ops.relu(scores) - scores * labels + log1p(ops.exp(-ops.abs(scores)))
    return compute_weighted_loss(losses, weights, reduction)


def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float = 0,
    reduction: int = _DEFAULT,
) -> Tensor:
    """Return the loss of probabilities of which one is right.

    Args:
        onehot_labels: the right probabilities along the last axis.
        logits: predictions before softmax.
        weights: the weights, which broadcast.
        label_smoothing: how far labels move to equal probabilities.
        reduction: one of `Reduction`.
    """
    labels, scores = as_floats(onehot_labels), as_floats(logits)
    if label_smoothing:
        labels = labels * (1 - label_smoothing) + label_smoothing / labels.shape[1]
    return compute_weighted_loss(_cross_entropy(labels, scores), weights, reduction)


def _cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Return cross entropies, with TensorFlow.js's gradients."""
    axis = logits.ndim - 1
    log_result = ops.ext.log_softmax(logits, axis)
    result = -ops.reduce_sum(log_result * labels, axes=[axis])

    def gradient(dy: Tensor) -> list[Tensor]:
        shares = ops.unsqueeze(dy, [axis])
        difference = shares * (labels - ops.exp(log_result))
        return [difference, -difference]

    return with_gradient(result, [labels, logits], gradient)
