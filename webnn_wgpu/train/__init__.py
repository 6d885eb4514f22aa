"""Training on the device: `Step` compiles forward pass, backward pass and update as one graph.

Example:
    >>> from webnn_wgpu import train
    >>> train.Adam(learning_rate=train.CosineSchedule(initial=0.01, steps=100)).learning_rate(51)
    0.005
"""

from __future__ import annotations

from .adaptive import Adadelta, Adagrad, Adamax, Lion, RMSProp
from .curve import LossCurve
from .initializers import glorot_uniform, he_normal
from .loss_scale import LossScale
from .optimizers import SGD, Adam, AdamW, Optimizer
from .quantity import Quantity
from .schedules import (
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    PiecewiseSchedule,
    Schedule,
    WarmUpSchedule,
)
from .step import Step

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ConstantSchedule",
    "CosineSchedule",
    "ExponentialSchedule",
    "Lion",
    "LossCurve",
    "LossScale",
    "Optimizer",
    "PiecewiseSchedule",
    "Quantity",
    "RMSProp",
    "Schedule",
    "Step",
    "WarmUpSchedule",
    "glorot_uniform",
    "he_normal",
]
