// u64x2_to_f32: the float32 nearest to an unsigned pair (see pair.wgsl), halves to even. Exact rounding.
// uses: pair
fn u64x2_to_f32(a: u64x2) -> f32 {
    if (a.x == 0u && a.y == 0u) { return 0.0; }
    let zeros = select(32u + countLeadingZeros(a.x), countLeadingZeros(a.y), a.y != 0u);
    let shifted = shift_left_pair(a, zeros);
    // The leading 24 bits, and what they leave, its last bit standing for all bits below.
    let significand = shifted.y >> 8u;
    let rest = ((shifted.y & 0xffu) << 1u) | select(0u, 1u, shifted.x != 0u);
    let up = (rest > 0x100u) | ((rest == 0x100u) & ((significand & 1u) == 1u));
    // The significand's leading bit adds 1 to the exponent, and a carry out of rounding another.
    return bitcast<f32>(((189u - zeros) << 23u) + significand + select(0u, 1u, up));
}
