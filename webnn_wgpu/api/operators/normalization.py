"""Normalization over a batch, an image or a layer.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..options import with_options
from ._forms import OperatorForms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..activation import MLActivation
    from ..operand import MLOperand
    from .dictionaries import MLBatchNormalizationOptions, MLInstanceNormalizationOptions, MLLayerNormalizationOptions


class NormalizationOperators(OperatorForms):
    """batch_normalization, instance_normalization, layer_normalization. Variances are population variances."""

    @with_options(positions=("scale", "bias", "epsilon", "axis"))
    def batch_normalization(
        self,
        input: MLOperand,
        mean: MLOperand,
        variance: MLOperand,
        options: MLBatchNormalizationOptions = {},
        *,
        scale: MLOperand | None = None,
        bias: MLOperand | None = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        activation: MLActivation | None = None,
        label: str = "",
    ) -> MLOperand:
        """`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with a given mean and variance.

        Args:
            input: float32 or float16, with rank 1 or more.
            mean: The input's data type, with the shape [C], where C is the input's size along `axis`. The next three operands
                have the same data type and shape.
            variance: [C].
            options: The options that follow, as one dictionary.
            scale: [C]. The default is 1 for all channels.
            bias: [C]. The default is 0 for all channels.
            axis: The dimension that holds the channels.
            epsilon: Finite. It is cast to the input's data type.
            activation: Activation of the result (an option of the 2024 text).
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The axis is not a dimension of the input, a vector is not [C], data types differ or are not allowed, or
                an operand or activation belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> mean, variance = b.constant("float32", 0.0), b.constant("float32", 1.0)
            >>> mean, variance = b.expand(mean, [3]), b.expand(variance, [3])
            >>> b.batch_normalization(x, mean, variance, activation=b.relu()).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-batchnorm
        """
        return self._activated(
            "batchNormalization", [input, mean, variance, scale, bias], {"axis": axis, "epsilon": epsilon}, activation, label
        )

    @with_options(positions=("scale", "bias", "epsilon", "layout"))
    def instance_normalization(
        self,
        input: MLOperand,
        options: MLInstanceNormalizationOptions = {},
        *,
        scale: MLOperand | None = None,
        bias: MLOperand | None = None,
        epsilon: float = 1e-05,
        layout: Literal["nchw", "nhwc"] = "nchw",
        label: str = "",
    ) -> MLOperand:
        """`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with the mean and variance of each image's channels.

        Args:
            input: float32 or float16, with rank 4 in the order of `layout`.
            options: The options that follow, as one dictionary.
            scale: The input's data type, with the shape [channels]. The default is 1 for all channels.
            bias: The input's data type, with the shape [channels]. The default is 0 for all channels.
            epsilon: Finite. It is cast to the input's data type.
            layout: "nchw" or "nhwc".
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The rank is not 4, scale or bias is not [channels], the layout is unknown, data types differ or are not
                allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.instance_normalization(image, layout="nchw").shape
            (1, 2, 4, 4)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-instancenorm
        """
        return self._output("instanceNormalization", [input, scale, bias], {"epsilon": epsilon, "layout": layout}, label)

    @with_options(positions=("scale", "bias", "epsilon", "axes"))
    def layer_normalization(
        self,
        input: MLOperand,
        options: MLLayerNormalizationOptions = {},
        *,
        scale: MLOperand | None = None,
        bias: MLOperand | None = None,
        axes: Sequence[int] | None = None,
        epsilon: float = 1e-05,
        label: str = "",
    ) -> MLOperand:
        """`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with the mean and variance over `axes`.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            scale: The input's data type, with the shape [input.shape[a] for a in axes]. The default is 1 for all elements.
            bias: The input's data type, with the shape of `scale`. The default is 0 for all elements.
            axes: Dimensions to normalize over, in the order of the dimensions of scale and bias. The default is all dimensions
                except the first.
            epsilon: Finite. It is cast to the input's data type.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, scale or bias has another shape, data types
                differ or are not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            With no axes, as for scalars and vectors without the option, every element is its own mean: the result is bias, or
            0.

        Example:
            >>> b.layer_normalization(x, axes=[1]).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-layernorm
        """
        return self._output("layerNormalization", [input, scale, bias], {"axes": axes, "epsilon": epsilon}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        batchNormalization = batch_normalization
        instanceNormalization = instance_normalization
        layerNormalization = layer_normalization
