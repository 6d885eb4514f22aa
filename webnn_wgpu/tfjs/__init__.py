"""TensorFlow.js's names in Python's spelling, with arguments in its order, on eager tensors.

Example:
    >>> import webnn_wgpu.tfjs as tf
    >>> x = tf.tensor([1, 2, 3])
    >>> tf.grad(lambda x: tf.square(x))(x).tolist()
    [2.0, 4.0, 6.0]
"""

from __future__ import annotations

from webnn_wgpu.eager import Tensor, Variable

from . import image, linalg, losses, signal, train
from .arithmetic import (
    add,
    add_n,
    atan2,
    bitwise_and,
    div,
    div_no_nan,
    equal,
    floor_div,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    mul,
    not_equal,
    squared_difference,
    sub,
    where,
)
from .arithmetic import pow_ as pow  # noqa: A004
from .arrays import (
    batch_to_space_nd,
    broadcast_args,
    broadcast_to,
    clone,
    concat,
    depth_to_space,
    ensure_shape,
    expand_dims,
    meshgrid,
    mirror_pad,
    pad,
    reshape,
    reverse,
    space_to_batch_nd,
    split,
    squeeze,
    stack,
    strided_slice,
    tile,
    transpose,
    unstack,
)
from .arrays import cast_ as cast
from .arrays import slice_ as slice  # noqa: A004
from .autodiff import (
    ValueAndGrad,
    ValueAndGrads,
    VariableGrads,
    custom_grad,
    grad,
    grads,
    stop_gradient,
    value_and_grad,
    value_and_grads,
    variable_grads,
)
from .convolutions import conv1d, conv2d, conv2d_transpose, conv3d, depthwise_conv2d, dilation2d, separable_conv2d
from .creation import (
    diag,
    dropout,
    eye,
    fill,
    linspace,
    one_hot,
    ones,
    ones_like,
    random_normal,
    random_uniform,
    scalar,
    tensor,
    tensor1d,
    tensor2d,
    tensor3d,
    tensor4d,
    zeros,
    zeros_like,
)
from .creation import range_ as range  # noqa: A004
from .environment import (
    KernelInfo,
    MemoryInfo,
    ProfileInfo,
    TimeInfo,
    dispose,
    enable_debug_mode,
    enable_prod_mode,
    keep,
    memory,
    profile,
    tidy,
    time,
)
from .functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    clip_by_value,
    cos,
    cosh,
    elu,
    erf,
    exp,
    expm1,
    floor,
    is_finite,
    is_inf,
    is_nan,
    leaky_relu,
    log,
    log1p,
    log_sigmoid,
    logical_not,
    neg,
    prelu,
    reciprocal,
    relu,
    relu6,
    rsqrt,
    selu,
    sigmoid,
    sign,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    step,
    tan,
    tanh,
)
from .functions import abs_ as abs  # noqa: A004
from .functions import round_ as round  # noqa: A004
from .indexing import (
    bincount,
    gather,
    gather_nd,
    lower_bound,
    scatter_nd,
    search_sorted,
    sparse_to_dense,
    tensor_scatter_update,
    topk,
    unique,
    unsorted_segment_sum,
    upper_bound,
)
from .losses import Reduction
from .pooling import (
    avg_pool,
    avg_pool3d,
    batch_norm,
    local_response_normalization,
    max_pool,
    max_pool3d,
    max_pool_with_argmax,
    pool,
)
from .products import dot, einsum, euclidean_norm, mat_mul, norm, outer_product
from .reductions import arg_max, arg_min, cumprod, cumsum, log_softmax, log_sum_exp, mean, moments, prod, softmax
from .reductions import all_ as all  # noqa: A004
from .reductions import any_ as any  # noqa: A004
from .reductions import max_ as max  # noqa: A004
from .reductions import min_ as min  # noqa: A004
from .reductions import sum_ as sum  # noqa: A004
from .recurrent import basic_lstm_cell
from .variables import variable
