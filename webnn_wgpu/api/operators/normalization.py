"""Normalisation over a batch, an image or a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...ops import operator
from ..activation import MLActivation, require_activation
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import MLBatchNormalizationOptions, MLInstanceNormalizationOptions, MLLayerNormalizationOptions


class NormalizationOperators(OperatorMethods):
    """batch_normalization, instance_normalization, layer_normalization. Variances are population variances."""

    @with_options()
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
        """`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with given mean and variance.

        Args:
            input: float32 or float16 of rank 1 or more.
            mean: The same data type [C], where C is the input's size along `axis`; so are the next three.
            variance: [C].
            options: The options below as one dictionary.
            scale: [C]; 1 where absent.
            bias: [C]; 0 where absent.
            axis: The dimension that holds the channels.
            epsilon: Finite; cast to the input's data type.
            activation: Applied to the result; an option of the 2024 text.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis that is no dimension of the input, a vector that is not [C], data types that differ or are
                not allowed, or an operand or activation of another builder.

        Example:
            >>> mean, variance = b.constant("float32", 0.0), b.constant("float32", 1.0)
            >>> mean, variance = b.expand(mean, [3]), b.expand(variance, [3])
            >>> b.batch_normalization(x, mean, variance, activation=b.relu()).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-batchnorm
        """
        operands = [input, mean, variance, scale, bias]
        require_operands(operator("batchNormalization"), operands, label)
        if activation is not None:
            require_activation(activation, self, "batch_normalization", input.rank, label)
        output = self._output("batchNormalization", operands, {"axis": axis, "epsilon": epsilon}, label)
        return output if activation is None else activation.apply(output)

    @with_options()
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
        """`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with mean and variance of each image's channels.

        Args:
            input: float32 or float16 of rank 4, laid out as `layout` says.
            options: The options below as one dictionary.
            scale: The same data type [channels]; 1 where absent.
            bias: The same data type [channels]; 0 where absent.
            epsilon: Finite; cast to the input's data type.
            layout: "nchw" or "nhwc".
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A rank other than 4, a vector that is not [channels], another layout, data types that differ or
                are not allowed, or an operand of another builder.

        Example:
            >>> b.instance_normalization(image, layout="nchw").shape
            (1, 2, 4, 4)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-instancenorm
        """
        attrs = {"epsilon": epsilon, "layout": layout}
        return self._output("instanceNormalization", [input, scale, bias], attrs, label)

    @with_options()
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
        """`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with mean and variance over `axes`.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            scale: The same data type [input.shape[a] for a in axes]; 1 where absent.
            bias: As scale; 0 where absent.
            axes: Dimensions to normalise over, in the order scale and bias have them; all but the first where absent.
            epsilon: Finite; cast to the input's data type.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis that is no dimension of the input or stands twice, a scale or bias of another shape, data
                types that differ or are not allowed, or an operand of another builder.

        Numerics: With no axes, as for scalars and vectors without the option, every element is its own mean: the result
        is bias, or 0.

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
