// atanh_f32: inverse hyperbolic tangent. At most 1.5 ULP on all x; +-1 -> +-inf, |x| > 1 -> NaN, NaN -> NaN.
// uses: bits, log1p
fn atanh_f32(x: f32) -> f32 {
    let a = abs(x);
    // Cephes atanhf: (atanh(a) / a - 1) / a^2 for a < 1/2.
    let s = min(a, 0.5);
    let z = s * s;
    var p = 1.81740078349e-1;
    p = fma(p, z, 8.24370301058e-2);
    p = fma(p, z, 1.46691431730e-1);
    p = fma(p, z, 1.99782164500e-1);
    p = fma(p, z, 3.33337300303e-1);
    let small = fma(p * z, a, a);
    // log((1 + a) / (1 - a)) / 2; 1 - a is exact from 1/2 on, and not 0 at the largest number below 1.
    let m = min(a, 0.99999994039535522);
    let large = 0.5 * log1p_finite_f32(2.0 * m / (1.0 - m));
    let bits = abs_bits_f32(x);
    let value = select(select(large, small, a < 0.5), inf_f32(), bits == 0x3f800000u);
    return select(flip_sign_f32(value, x), nan_f32(), bits > 0x3f800000u);
}
