"""Losses of classification."""

from __future__ import annotations

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ._registry import SOME, Result, lowers


def negative_log_likelihood(call: NodeCall, scores: MLOperand, reduction: str) -> MLOperand:
    """Return the loss of scores [N, C, sizes...], float32, with the node's targets [N, sizes...] and weights [C]."""
    target = call.operand(1)
    shape = [int(d) for d in target.shape]
    chosen = call.build.gather_elements(scores, call.reshape(target, [shape[0], 1, *shape[1:]]), axis=1)
    loss = call.build.neg(call.reshape(chosen, shape))
    share: MLOperand | None = None
    if call.has(2):
        share = call.build.gather(call.cast(call.operand(2), "float32"), target)
    ignored = call.attribute("ignore_index")
    if ignored is not None:
        zero = call.constant(0, "float32")
        left = call.build.equal(target, call.constant(ignored, target.data_type))
        share = call.build.where(left, zero, call.constant(1, "float32") if share is None else share)
        # An ignored loss may be infinite, so it is not multiplied by 0.
        loss = call.build.where(left, zero, loss)
    if share is not None:
        loss = call.build.mul(loss, share)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return call.build.reduce_sum(loss)
    if reduction != "mean":
        call.fail(f"reduction '{reduction}' is not one of none, sum, mean")
    if share is None:
        return call.build.reduce_mean(loss)
    return call.build.div(call.build.reduce_sum(loss), call.build.reduce_sum(share))


@lowers("NegativeLogLikelihoodLoss", ranks={0: range(2, 65), 1: SOME})
def negative_log_likelihood_loss(call: NodeCall) -> Result:
    """The loss of logarithms of probabilities."""
    return negative_log_likelihood(call, call.cast(call.operand(0), "float32"), call.attribute("reduction", "mean"))


@lowers("SoftmaxCrossEntropyLoss", ranks={0: range(2, 65), 1: SOME})
def softmax_cross_entropy_loss(call: NodeCall) -> Result:
    """The loss of scores, and the logarithms of their probabilities."""
    x = call.cast(call.operand(0), "float32")
    logarithms = call.build.ext.log_softmax(x, 1)
    return [negative_log_likelihood(call, logarithms, call.attribute("reduction", "mean")), logarithms]
