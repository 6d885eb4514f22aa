// asin_f32: arc sine. At most 2.5 ULP on all x; |x| > 1 -> NaN, NaN -> NaN.
// uses: bits, sqrt

// asin(r) for 0 <= r <= 1/2. Cephes asinf: (asin(r) / r - 1) / r^2.
fn asin_kernel_f32(r: f32) -> f32 {
    let z = r * r;
    var p = 4.2163199048e-2;
    p = fma(p, z, 2.4181311049e-2);
    p = fma(p, z, 4.5470025998e-2);
    p = fma(p, z, 7.4953002686e-2);
    p = fma(p, z, 1.6666752422e-1);
    return fma(p * z, r, r);
}

fn asin_f32(x: f32) -> f32 {
    let a = abs(x);
    // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)); 1 - a is exact from 1/2 on. pi/2 in two parts.
    let folded = asin_kernel_f32(sqrt_f32(0.5 - 0.5 * min(a, 1.0)));
    let large = 1.5707963705062866 - (2.0 * folded + 4.371139000186241e-8);
    let value = flip_sign_f32(select(large, asin_kernel_f32(a), a <= 0.5), x);
    return select(value, nan_f32(), abs_bits_f32(x) > 0x3f800000u);
}
