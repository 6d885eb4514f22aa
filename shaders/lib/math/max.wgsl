// max_f32: the larger of x and y. Exact on all x and y; NaN if either is NaN; of +0 and -0 either.
// uses: bits
fn max_f32(x: f32, y: f32) -> f32 {
    // WGSL's max may drop a NaN.
    return keep_nan_f32(y, keep_nan_f32(x, max(x, y)));
}
