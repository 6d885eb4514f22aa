// expm1_f32: e^x - 1. At most 2 ULP on all x; overflow -> inf, -inf -> -1, NaN -> NaN.
// uses: bits
fn expm1_f32(x0: f32) -> f32 {
    let x = clamp(x0, -20.0, 88.8);
    let n = round(x * 1.4426950408889634);
    // The reduction of exp_parts_f32.
    let r = fma(head_f32(n), 2.12194440e-4, fma(n, -0.693359375, x));
    var p = 1.9875691500e-4;
    p = fma(p, r, 1.3981999507e-3);
    p = fma(p, r, 8.3334519073e-3);
    p = fma(p, r, 4.1665795894e-2);
    p = fma(p, r, 1.6666665459e-1);
    p = fma(p, r, 5.0000001201e-1);
    let y = fma(p * r, r, r);
    // e^x - 1 = 2 (2^(n-1) y + (2^(n-1) - 1/2)): half the scale, because 2^128 is not representable.
    let half_scale = bitcast<f32>((i32(n) + 126) << 23u);
    let result = 2.0 * fma(y, half_scale, half_scale - 0.5);
    // Near 0 the value is y itself, whatever order a compiler gives to the sum above.
    return keep_nan_f32(x0, select(result, y, n == 0.0));
}
