"""Options of images: windows as lists or tuples, layouts and modes as literals."""

import numpy as np

import webnn_wgpu as wn


def halved(image: wn.MLOperand, *, nearest: bool) -> wn.MLOperand:
    return image.builder.resample2d(image, mode="nearest-neighbor" if nearest else "linear", scales=(0.5, 0.5))


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    image = builder.input("image", [1, 8, 8, 2], "float32")
    pooled = builder.average_pool2d(
        image, window_dimensions=(2, 2), strides=[2, 2], layout="nhwc", output_shape_rounding="ceil"
    )
    planes = builder.transpose(pooled, permutation=[0, 3, 1, 2])
    padded = builder.pad(planes, [0, 0, 1, 1], [0, 0, 1, 1], mode="reflection")
    framed = builder.pad(padded, [0, 0, 1, 1], [0, 0, 1, 1], {"mode": "constant", "value": 1})
    smaller = halved(framed, nearest=False)
    assert builder.global_max_pool(smaller, layout="nchw").shape == (1, 2, 1, 1)
    scale = builder.constant(np.ones(2, np.float32))
    assert builder.instance_normalization(smaller, scale=scale, layout="nchw").shape == smaller.shape
