// acos_f32: arc cosine. At most 2 ULP on all x; |x| > 1 -> NaN, NaN -> NaN.
// uses: asin, bits, sqrt
fn acos_f32(x: f32) -> f32 {
    let a = min(abs(x), 1.0);
    // As for the arc sine; pi and pi/2 in two parts.
    let folded = 2.0 * asin_kernel_f32(sqrt_f32(0.5 - 0.5 * a));
    let outer = select(folded, 3.1415927410125732 - (folded + 8.742278000372482e-8), x < 0.0);
    let inner = 1.5707963705062866 - (flip_sign_f32(asin_kernel_f32(min(a, 0.5)), x) + 4.371139000186241e-8);
    return select(select(outer, inner, a <= 0.5), nan_f32(), abs_bits_f32(x) > 0x3f800000u);
}
