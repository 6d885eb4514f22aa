// exp_falling_f32: e^min(x, 0), the weights of a softmax. At most 1.5 ULP on all x; 0 below x = -87; NaN -> NaN.
// uses: bits
fn exp_falling_f32(x: f32) -> f32 {
    let y = clamp(x, -87.0, 0.0);
    let n = round(y * 1.4426950408889634);
    // ln 2 in two parts, as in exp_f32.
    let r = fma(head_f32(n), 2.12194440e-4, fma(n, -0.693359375, y));
    // Cephes expf: (e^r - 1 - r) / r^2 on [-ln2 / 2, ln2 / 2].
    var p = 1.9875691500e-4;
    p = fma(p, r, 1.3981999507e-3);
    p = fma(p, r, 8.3334519073e-3);
    p = fma(p, r, 4.1665795894e-2);
    p = fma(p, r, 1.6666665459e-1);
    p = fma(p, r, 5.0000001201e-1);
    // 2^(n + 24): all results are normal numbers, but a product with 2^n might not be, and then a driver may take it for 0.
    let s = bitcast<f32>((i32(n) + 151) << 23u);
    return keep_nan_f32(x, select(fma(fma(p * r, r, r), s, s) * 5.9604644775390625e-8, 0.0, x < -87.0));
}
