// atan_f32: arc tangent. At most 2.5 ULP on all x; +-inf -> +-pi/2, NaN -> NaN.
// uses: bits, quotient
fn atan_f32(x: f32) -> f32 {
    // From 1e9 on the result is pi/2 to the last bit.
    let a = min(abs(x), 1e9);
    // Around 0, pi/4 and pi/2, parted at tan(pi/8) and tan(3 pi/8).
    let above = a > 2.414213562373095;
    let between = (a > 0.4142135623730950) & !above;
    let divided = quotient_f32(select(abs(a - 1.0), 1.0, above), select(a + 1.0, a, above));
    let t = select(a, select(divided, -divided, above | (a < 1.0)), above | between);
    let offset = select(select(0.0, 0.7853981852531433, between), 1.5707963705062866, above);
    let rest = select(select(0.0, -2.1855695e-8, between), -4.371139e-8, above);
    // Cephes atanf: (atan(t) / t - 1) / t^2 on |t| <= tan(pi/8).
    let z = t * t;
    var p = 8.05374449538e-2;
    p = fma(p, z, -1.38776856032e-1);
    p = fma(p, z, 1.99777106478e-1);
    p = fma(p, z, -3.33329491539e-1);
    let value = offset + (fma(p * z, t, t) + rest);
    return keep_nan_f32(x, flip_sign_f32(value, x));
}
