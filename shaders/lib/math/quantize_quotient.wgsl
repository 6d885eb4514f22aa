// quantize_quotient: round_even(x / scale) + zero, limited to low..high, for types of at most 8 bits; NaN gives 0. Exact.
// uses: bits
// The quotient counts as rounded to float32 before.
fn quantize_quotient(x: f32, scale: f32, zero: i32, low: i32, high: i32) -> i32 {
    // One scale often serves all elements: what depends on the scale alone comes first. Dividend and divisor are multiplied by a
    // power of two, so that no number between is subnormal, and by the scale's sign. A number divided by 0 is beyond the limits,
    // and one divided by infinity is 0.
    let scale_bits = abs_bits_f32(scale);
    let is_end = (scale_bits == 0u) | (scale_bits >= 0x7f800000u);
    let small = select(1.0, 0x1p+64, scale_bits < 0x21800000u);
    let large = select(0x1p-64, 0.0, scale_bits >= 0x7f800000u);
    let factor = flip_sign_f32(select(small, large, scale_bits > 0x5d800000u), scale);
    let divisor = select(scale * factor, 0x1p-100, is_end);
    let inverse = 1.0 / divisor;
    let head = head_f32(divisor);
    let last_place = divisor * 0x1p-24;

    // The limits of the type lie within 1024 from any zero point.
    let dividend = x * factor;
    let below = floor(clamp(dividend * inverse, -1024.0, 1024.0));
    let half = below + 0.5;
    // Drivers divide inaccurately, but products of 12 bits are exact, and so is the remainder of a quotient close to the half.
    // A compiler does not know that the half is its own head, and keeps the two products apart.
    let remainder = (dividend - half * head) - head_f32(half) * (divisor - head);
    // A quotient is rounded to the half if it is closer than half a last place, and then to the even one of its neighbors.
    let rounded = last_place * bitcast<f32>(bitcast<u32>(half) & 0x7f800000u);
    let whole = i32(below);
    let least = bitcast<f32>(bitcast<u32>(rounded) ^ (u32(whole) << 31u));
    let sum = whole + select(0i, 1i, remainder > least) + zero;
    let x_bits = abs_bits_f32(x);
    let invalid = (max(x_bits, scale_bits) > 0x7f800000u) | (is_end & (x_bits == scale_bits));
    return select(clamp(sum, low, high), 0i, invalid);
}
