// div_f32: IEEE x / y. At most 0.5001 ULP on all x and y, the device's own if subnormal; 0/0, inf/inf -> NaN; x/0 -> +-inf.
// uses: bits, quotient
fn div_f32(x: f32, y: f32) -> f32 {
    let x_bits = abs_bits_f32(x);
    let y_bits = abs_bits_f32(y);
    // WGSL promises an accurate quotient up to |y| = 2^126 only: beyond, 1/y is subnormal.
    let scale = select(1.0, 0.25, y_bits > 0x7e800000u);
    let own = select((x * scale) / (y * scale), flip_sign_f32(flip_sign_f32(inf_f32(), x), y), y_bits == 0u);
    // The significands of normal numbers are divided, and the exponents subtracted.
    let x_significand = bitcast<f32>((x_bits & 0x7fffffu) | 0x3f800000u);
    let y_significand = bitcast<f32>((y_bits & 0x7fffffu) | 0x3f800000u);
    let bits = bitcast<u32>(quotient_f32(x_significand, y_significand)) + (x_bits & 0x7f800000u) - (y_bits & 0x7f800000u);
    // Bits of normal numbers are from those of 2^-126 to those below infinity.
    let normal = (max(max(x_bits, y_bits), bits) < 0x7f800000u) & (min(min(x_bits, y_bits), bits) >= 0x00800000u);
    let quotient = select(own, flip_sign_f32(flip_sign_f32(bitcast<f32>(bits), x), y), normal);
    // By bits, because x / x may be folded to 1.
    let invalid = (x_bits == y_bits) & ((y_bits == 0u) | (y_bits == 0x7f800000u));
    return select(quotient, nan_f32(), invalid | (max(x_bits, y_bits) > 0x7f800000u));
}
