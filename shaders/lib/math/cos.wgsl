// cos_f32: cosine. At most 3 ULP on all finite x, however large; +-inf -> NaN, NaN -> NaN.
// uses: trig
fn cos_f32(x: f32) -> f32 {
    return sin_shifted_f32(x, 1u);
}
