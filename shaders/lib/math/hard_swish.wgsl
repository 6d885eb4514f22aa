// hard_swish_f32: x max(0, min(6, x + 3)) / 6. At most 2.5 ULP on all x; -inf -> -0, inf -> inf, NaN -> NaN.
// uses: bits
fn hard_swish_f32(x: f32) -> f32 {
    // Bounded below, -inf meets no 0 factor; divided first, huge x does not overflow.
    let c = max(x, -3.0);
    return keep_nan_f32(x, c * (min(c + 3.0, 6.0) / 6.0));
}
