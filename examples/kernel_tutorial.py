"""A kernel of your own in five minutes: write it, test it, put it in a graph, break it, find out why, make it faster.

The kernel divides each row of a matrix by its root mean square. One workgroup takes a row. Needs the extra `debug`, for the
interpreter.
"""

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu import debug
from webnn_wgpu.testing import check_kernel

ROWS, COLUMNS = 64, 1024
rng = np.random.default_rng(0)
x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)


def reference(x: np.ndarray) -> np.ndarray:
    """What the kernel should compute, in numpy: float64 inside, so that it is the more exact of the two."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True))


# 1. Write it. Bindings are the inputs, then the outputs; T is the data type of the first input, and constants are given where
# the kernel is used. This one is simple, and slow: every invocation adds up the whole row.
SIMPLE = """
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) row: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    let first = row.x * COLUMNS;
    var total = 0.0;
    for (var c = 0u; c < COLUMNS; c++) {
        total += f32(x[first + c] * x[first + c]);
    }
    let scale = inverseSqrt(total / f32(COLUMNS));
    for (var c = i; c < COLUMNS; c += 64u) {
        y[first + c] = x[first + c] * T(scale);
    }
}
"""

# 2. Test it without a graph: against numpy, with guards around every buffer, on every adapter of the machine.
report = check_kernel(SIMPLE, reference, shapes=[(3, 96)], workgroups=3, constants={"COLUMNS": 96}, tolerance=64, label="rms")
print("tested:", "wrong" if report.faults else "right")

# 3. Put it in a graph, between the package's own operators.
context = wn.ml.create_context()
builder = wn.MLGraphBuilder(context)
rows = builder.input("x", [ROWS, COLUMNS], "float32")
scaled = builder.wgsl_op(
    SIMPLE,
    [builder.neg(rows)],
    output_shapes=[ROWS, COLUMNS],
    output_types="float32",
    workgroups=ROWS,
    constants={"COLUMNS": COLUMNS},
    reference=reference,
    label="rms",
)
graph = builder.build({"y": builder.softmax(scaled, axis=1)})
print("wrong operators:", debug.diff(graph, {"x": x}).first)

# 4. Make it faster: an invocation adds up its own part of the row, and the workgroup adds up the parts. There is a mistake.
HASTY = """
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
var<workgroup> parts: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) row: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    let first = row.x * COLUMNS;
    var total = 0.0;
    for (var c = i; c < COLUMNS; c += 64u) {
        total += f32(x[first + c] * x[first + c]);
    }
    parts[i] = total;
    for (var half = 32u; half > 0u; half /= 2u) {
        if (i < half) { parts[i] += parts[i + half]; }
        workgroupBarrier();
    }
    dbg(parts[0], "sum");
    let scale = inverseSqrt(parts[0] / f32(COLUMNS));
    for (var c = i; c < COLUMNS; c += 64u) {
        y[first + c] = x[first + c] * T(scale);
    }
}
"""
trial = debug.try_kernel(graph, {"x": x}, "rms", HASTY)
print("the hasty one:", "right" if trial.results[0].max_abs_error < 1e-5 else "wrong")

# 5. Look inside: `dbg` says what the first invocations of the first row hold, and the interpreter what no driver tells.
traced = debug.trace(graph, {"x": x}, "rms", wgsl=HASTY, where={"workgroup": 0, "invocation": 0})
print(f"sum of squares: {traced[0].value:.3f}, should be {(x[0].astype(np.float64) ** 2).sum():.3f}")
one_row = {"x": x[:1], "y": np.zeros((1, COLUMNS), np.float32)}
found = debug.interpret(HASTY, one_row, grid=1, constants={"COLUMNS": COLUMNS})
print(found.findings[0])

# 6. The parts must all be there before anybody adds them up.
FAST = HASTY.replace("parts[i] = total;", "parts[i] = total;\n    workgroupBarrier();")
print("findings now:", len(debug.interpret(FAST, one_row, grid=1, constants={"COLUMNS": COLUMNS}).findings))
trial = debug.try_kernel(graph, {"x": x}, "rms", FAST)
print("the fast one:", "right" if trial.results[0].max_abs_error < 1e-5 else "wrong")
if trial.microseconds and trial.original_microseconds:
    print(f"it takes 1/{trial.original_microseconds / trial.microseconds:.0f} of the time")

# 7. Install it. Later runs use it; `graph.restore()` undoes it.
graph.override("rms", FAST)
print("wrong operators:", debug.diff(graph, {"x": x}).first)
