// half: float16 by its 16 bits, for devices without the type. Exact: rounds to nearest even, keeps subnormals, infinities, NaN.
// By integers, because the built-ins for it may flush subnormals and leave overflow open.

// The bits of x rounded to float16.
fn half_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    // Rebiased by 127 - 15 and shortened by 13 bits; a carry out of the mantissa raises the exponent as it should, that of
    // numbers from 65520 on to infinity's.
    let normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
    // Below 2^-14 the result counts multiples of 2^-24. Shifted by 25 or more, nothing is left of 24 bits.
    let shift = min(126u - min(magnitude >> 23u, 112u), 25u);
    let significand = (magnitude & 0x7fffffu) | 0x800000u;
    let subnormal = (significand + (1u << (shift - 1u)) - 1u + ((significand >> shift) & 1u)) >> shift;
    let finite = select(normal, subnormal, magnitude < 0x38800000u);
    let nan = 0x7e00u | ((magnitude >> 13u) & 0x3ffu);
    let special = select(0x7c00u, nan, magnitude > 0x7f800000u);
    return select(finite, special, magnitude >= 0x47800000u) | ((bits >> 16u) & 0x8000u);
}

// The number that the low 16 bits of h stand for.
fn half_value(h: u32) -> f32 {
    let magnitude = h & 0x7fffu;
    let normal = (magnitude << 13u) + 0x38000000u;
    let special = (magnitude << 13u) + 0x70000000u;
    // 2^-24, the unit of subnormals.
    let subnormal = bitcast<u32>(f32(magnitude) * 5.9604644775390625e-8);
    let bits = select(select(normal, special, magnitude >= 0x7c00u), subnormal, magnitude < 0x400u);
    return bitcast<f32>(bits | ((h & 0x8000u) << 16u));
}
