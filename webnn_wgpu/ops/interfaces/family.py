"""Families of operators: the kinds that passes ask for. Pictures of graphs have a color for each family."""

from __future__ import annotations

from enum import StrEnum


class Family(StrEnum):
    """The kind of an operator."""

    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    ELEMENT_WISE = "element-wise"
    MOVEMENT = "movement"
    NORMALIZATION = "normalization"
    POOLING = "pooling"
    PRODUCT = "product"
    QUANTIZATION = "quantization"
    RECURRENT = "recurrent"
    REDUCTION = "reduction"
    OTHER = "other"
