// cosh_f32: hyperbolic cosine. At most 2 ULP on all x; overflow -> inf, NaN -> NaN.
// uses: bits, half_exp
fn cosh_f32(x: f32) -> f32 {
    // (e^a + e^-a) / 2; the second term no longer counts where the first is large.
    let half = half_exp_f32(abs(x));
    return keep_nan_f32(x, half + 0.25 / min(half, 1e30));
}
