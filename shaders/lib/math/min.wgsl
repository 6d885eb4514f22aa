// min_f32: the smaller of x and y. Exact on all x and y; NaN if either is NaN; of +0 and -0 either.
// uses: bits
fn min_f32(x: f32, y: f32) -> f32 {
    // WGSL's min may drop a NaN.
    return keep_nan_f32(y, keep_nan_f32(x, min(x, y)));
}
