"""A kernel of the program's own has one result or several, by what it is asked for."""

from typing import assert_type

import webnn_wgpu as wn

SQUARE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(SIZE) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
}"""


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [2, 3], "float32")
    y = builder.wgsl_op(SQUARE, [x], output_shapes=x.shape, output_types="float32", workgroups=1, constants={"SIZE": 64})
    assert_type(y, wn.MLOperand)
    several = builder.wgslOp(
        SQUARE, [y], output_shapes=[[2, 3]], output_types=["float32"], workgroups=(1, 1), constants={"SIZE": 64}
    )
    assert_type(several, list[wn.MLOperand])
    graph = builder.build({"z": several[0]})
    assert context.compute(graph, {"x": [[1, 2, 3], [0, 0, 0]]})["z"].tolist() == [[1, 16, 81], [0, 0, 0]]
