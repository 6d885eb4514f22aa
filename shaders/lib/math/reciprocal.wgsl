// reciprocal_f32: 1 / x. At most 0.5001 ULP on all x, the device's own if subnormal; +-0 -> +-inf, +-inf -> +-0, NaN -> NaN.
// uses: div
fn reciprocal_f32(x: f32) -> f32 {
    return div_f32(1.0, x);
}
