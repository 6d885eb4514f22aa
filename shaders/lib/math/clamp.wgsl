// clamp_f32: x, or low or high where it is beyond them; they are no NaN. Exact on all x; NaN if x is NaN; of +0 and -0 either.
// uses: bits
fn clamp_f32(x: f32, low: f32, high: f32) -> f32 {
    // WGSL's max and min may drop a NaN.
    return keep_nan_f32(x, min(max(x, low), high));
}
