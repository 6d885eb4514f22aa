"""A kernel of one's own as an operator of a graph: an edge-preserving blur (a bilateral filter) that WebNN has not.

The rest of the graph is WebNN's; all of it is planned together and runs in one compute pass.
"""

import numpy as np

import webnn_wgpu as wn

BILATERAL = """
@group(0) @binding(0) var<storage, read> image: array<f32>;
@group(0) @binding(1) var<storage, read_write> smooth_image: array<f32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= WIDTH || id.y >= HEIGHT) { return; }
    let here = image[id.y * WIDTH + id.x];
    var total = 0.0;
    var weights = 0.0;
    for (var dy = -RADIUS; dy <= RADIUS; dy++) {
        for (var dx = -RADIUS; dx <= RADIUS; dx++) {
            let at = clamp(vec2<i32>(id.xy) + vec2(dx, dy), vec2(0), vec2(i32(WIDTH), i32(HEIGHT)) - 1);
            let value = image[at.y * i32(WIDTH) + at.x];
            let difference = (value - here) / TOLERANCE;
            let weight = exp(-f32(dx * dx + dy * dy) / 8.0 - difference * difference);
            total += weight * value;
            weights += weight;
        }
    }
    smooth_image[id.y * WIDTH + id.x] = total / weights;
}
"""

HEIGHT, WIDTH, RADIUS, TOLERANCE = 48, 64, 3, 0.3


def bilateral(image: np.ndarray) -> np.ndarray:
    """The same in numpy: for contexts without a device, and for `diff`."""
    padded = np.pad(image, RADIUS, mode="edge")
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for dy in range(-RADIUS, RADIUS + 1):
        for dx in range(-RADIUS, RADIUS + 1):
            value = padded[RADIUS + dy : RADIUS + dy + HEIGHT, RADIUS + dx : RADIUS + dx + WIDTH]
            weight = np.exp(-np.float32(dx * dx + dy * dy) / 8 - ((value - image) / TOLERANCE) ** 2)
            total += weight * value
            weights += weight
    return total / weights


context = wn.ml.create_context()
builder = wn.MLGraphBuilder(context)
photo = builder.input("photo", [HEIGHT, WIDTH], "float32")
blurred = builder.wgsl_op(
    BILATERAL,
    [builder.clamp(photo, min_value=0, max_value=1)],
    output_shapes=[HEIGHT, WIDTH],
    output_types="float32",
    workgroups=(WIDTH // 8, HEIGHT // 8),
    constants={"HEIGHT": HEIGHT, "WIDTH": WIDTH, "RADIUS": RADIUS, "TOLERANCE": TOLERANCE},
    reference=bilateral,
    label="bilateral",
)
graph = builder.build({"detail": builder.sub(photo, blurred), "blurred": blurred})

# A bright square on dark ground, with noise: the noise goes, the edge stays.
random = np.random.default_rng(1)
image = np.full((HEIGHT, WIDTH), 0.2, np.float32)
image[12:36, 16:48] = 0.8
image += random.normal(0, 0.05, image.shape).astype(np.float32)
result = context.compute(graph, {"photo": image})["blurred"]

print(graph.plan)
print("noise", image[:10].std().round(3), "->", result[:10].std().round(3))
print("edge", (image[24, 17:22].mean() - image[24, 10:15].mean()).round(1), "->", (result[24, 17] - result[24, 14]).round(1))
print("largest difference to numpy:", "small" if np.abs(result - bilateral(image.clip(0, 1))).max() < 1e-4 else "large")
