// div_f32: IEEE x / y. At most 0.5 ULP, the device's own rounding, on all x and y; 0/0, inf/inf -> NaN; x/0 -> +-inf.
// uses: bits
fn div_f32(x: f32, y: f32) -> f32 {
    let x_bits = abs_bits_f32(x);
    let y_bits = abs_bits_f32(y);
    // WGSL promises an accurate quotient up to |y| = 2^126 only: beyond, 1/y is subnormal.
    let scale = select(1.0, 0.25, y_bits > 0x7e800000u);
    let quotient = select((x * scale) / (y * scale), flip_sign_f32(flip_sign_f32(inf_f32(), x), y), y_bits == 0u);
    // By bits, because x / x may be folded to 1.
    let invalid = (x_bits == y_bits) & ((y_bits == 0u) | (y_bits == 0x7f800000u));
    return select(quotient, nan_f32(), invalid | (max(x_bits, y_bits) > 0x7f800000u));
}
