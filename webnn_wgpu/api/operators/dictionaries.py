"""The dictionaries of operators' options, with the specification's names. Every key may also be written in snake_case.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from ..activation import MLActivation
    from ..operand import MLOperand
    from ._cells import Activations


class MLOperatorOptions(TypedDict, total=False):
    """The option that all operators have."""

    label: str


class MLArgMinMaxOptions(MLOperatorOptions, total=False):
    """Options of arg_max and arg_min."""

    axes: Sequence[int] | None
    keepDimensions: bool
    keep_dimensions: bool
    selectLastIndex: bool
    select_last_index: bool
    outputDataType: Literal["int32", "int64"] | None
    output_data_type: Literal["int32", "int64"] | None


class MLBatchNormalizationOptions(MLOperatorOptions, total=False):
    """Options of batch_normalization."""

    scale: MLOperand | None
    bias: MLOperand | None
    axis: int
    epsilon: float
    activation: MLActivation | None


class MLClampOptions(MLOperatorOptions, total=False):
    """Options of clamp."""

    minValue: float | None
    min_value: float | None
    maxValue: float | None
    max_value: float | None


class MLConv2dOptions(MLOperatorOptions, total=False):
    """Options of conv2d."""

    bias: MLOperand | None
    padding: Sequence[int]
    pads: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    groups: int
    inputLayout: Literal["nchw", "nhwc"]
    input_layout: Literal["nchw", "nhwc"]
    filterLayout: Literal["oihw", "hwio", "ohwi", "ihwo"]
    filter_layout: Literal["oihw", "hwio", "ohwi", "ihwo"]
    activation: MLActivation | None


class MLConvTranspose2dOptions(MLOperatorOptions, total=False):
    """Options of conv_transpose2d."""

    bias: MLOperand | None
    padding: Sequence[int]
    pads: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    outputPadding: Sequence[int]
    output_padding: Sequence[int]
    outputSizes: Sequence[int] | None
    output_sizes: Sequence[int] | None
    groups: int
    inputLayout: Literal["nchw", "nhwc"]
    input_layout: Literal["nchw", "nhwc"]
    filterLayout: Literal["iohw", "hwoi", "ohwi"]
    filter_layout: Literal["iohw", "hwoi", "ohwi"]
    activation: MLActivation | None


class MLCumulativeSumOptions(MLOperatorOptions, total=False):
    """Options of cumulative_sum."""

    exclusive: bool
    reversed: bool


class MLEluOptions(MLOperatorOptions, total=False):
    """Options of elu."""

    alpha: float


class MLGatherOptions(MLOperatorOptions, total=False):
    """Options of gather and gather_elements."""

    axis: int


class MLGemmOptions(MLOperatorOptions, total=False):
    """Options of gemm."""

    c: MLOperand | None
    alpha: float
    beta: float
    aTranspose: bool
    a_transpose: bool
    bTranspose: bool
    b_transpose: bool


class MLGruCellOptions(MLOperatorOptions, total=False):
    """Options of gru_cell."""

    bias: MLOperand | None
    recurrentBias: MLOperand | None
    recurrent_bias: MLOperand | None
    resetAfter: bool
    reset_after: bool
    layout: Literal["zrn", "rzn"]
    activations: Activations | None


class MLGruOptions(MLOperatorOptions, total=False):
    """Options of gru."""

    bias: MLOperand | None
    recurrentBias: MLOperand | None
    recurrent_bias: MLOperand | None
    initialHiddenState: MLOperand | None
    initial_hidden_state: MLOperand | None
    resetAfter: bool
    reset_after: bool
    returnSequence: bool
    return_sequence: bool
    direction: Literal["forward", "backward", "both"]
    layout: Literal["zrn", "rzn"]
    activations: Activations | None


class MLHardSigmoidOptions(MLOperatorOptions, total=False):
    """Options of hard_sigmoid and hard_swish."""

    alpha: float
    beta: float


class MLInstanceNormalizationOptions(MLOperatorOptions, total=False):
    """Options of instance_normalization."""

    scale: MLOperand | None
    bias: MLOperand | None
    epsilon: float
    layout: Literal["nchw", "nhwc"]


class MLLayerNormalizationOptions(MLOperatorOptions, total=False):
    """Options of layer_normalization."""

    scale: MLOperand | None
    bias: MLOperand | None
    axes: Sequence[int] | None
    epsilon: float


class MLLeakyReluOptions(MLOperatorOptions, total=False):
    """Options of leaky_relu."""

    alpha: float


class MLLinearOptions(MLOperatorOptions, total=False):
    """Options of linear."""

    alpha: float
    beta: float


class MLLstmCellOptions(MLOperatorOptions, total=False):
    """Options of lstm_cell."""

    bias: MLOperand | None
    recurrentBias: MLOperand | None
    recurrent_bias: MLOperand | None
    peepholeWeight: MLOperand | None
    peephole_weight: MLOperand | None
    layout: Literal["iofg", "ifgo"]
    activations: Activations | None


class MLLstmOptions(MLOperatorOptions, total=False):
    """Options of lstm."""

    bias: MLOperand | None
    recurrentBias: MLOperand | None
    recurrent_bias: MLOperand | None
    peepholeWeight: MLOperand | None
    peephole_weight: MLOperand | None
    initialHiddenState: MLOperand | None
    initial_hidden_state: MLOperand | None
    initialCellState: MLOperand | None
    initial_cell_state: MLOperand | None
    returnSequence: bool
    return_sequence: bool
    direction: Literal["forward", "backward", "both"]
    layout: Literal["iofg", "ifgo"]
    activations: Activations | None


class MLPadOptions(MLOperatorOptions, total=False):
    """Options of pad."""

    mode: Literal["constant", "edge", "reflection", "symmetric"]
    value: float


class MLPool2dOptions(MLOperatorOptions, total=False):
    """Options of average_pool2d, l2_pool2d and max_pool2d."""

    windowDimensions: Sequence[int] | None
    window_dimensions: Sequence[int] | None
    padding: Sequence[int] | None
    pads: Sequence[int] | None
    strides: Sequence[int] | None
    dilations: Sequence[int] | None
    layout: Literal["nchw", "nhwc"]
    outputShapeRounding: Literal["floor", "ceil"]
    output_shape_rounding: Literal["floor", "ceil"]
    roundingType: Literal["floor", "ceil"]
    rounding_type: Literal["floor", "ceil"]
    outputSizes: Sequence[int] | None
    output_sizes: Sequence[int] | None


class MLReduceOptions(MLOperatorOptions, total=False):
    """Options of several operators.

    Options of reduce_l1, reduce_l2, reduce_log_sum, reduce_log_sum_exp, reduce_max, reduce_mean, reduce_min, reduce_product,
    reduce_sum and reduce_sum_square.
    """

    axes: Sequence[int] | None
    keepDimensions: bool
    keep_dimensions: bool


class MLResample2dOptions(MLOperatorOptions, total=False):
    """Options of resample2d."""

    mode: Literal["nearest-neighbor", "linear"]
    scales: Sequence[float]
    sizes: Sequence[int] | None
    axes: Sequence[int]


class MLReverseOptions(MLOperatorOptions, total=False):
    """Options of reverse."""

    axes: Sequence[int] | None


class MLScatterOptions(MLOperatorOptions, total=False):
    """Options of scatter_elements."""

    axis: int


class MLSliceOptions(MLOperatorOptions, total=False):
    """Options of slice."""

    strides: Sequence[int] | None


class MLSoftplusOptions(MLOperatorOptions, total=False):
    """Options of softplus."""

    steepness: float


class MLSplitOptions(MLOperatorOptions, total=False):
    """Options of split."""

    axis: int


class MLTransposeOptions(MLOperatorOptions, total=False):
    """Options of transpose."""

    permutation: Sequence[int] | None


class MLTriangularOptions(MLOperatorOptions, total=False):
    """Options of triangular."""

    upper: bool
    diagonal: int
