// mod_f32: x - n y, n being x / y rounded down. At most 0.5 ULP, the device's own rounding, on all x and y; x inf, y 0 -> NaN.
// uses: bits, fmod

// 2^149 x for |x| < 2^-44, by bits: a driver may take a subnormal number for 0.
fn in_smallest_units_f32(x: f32) -> f32 {
    let magnitude = abs_bits_f32(x);
    return flip_sign_f32(select(bitcast<f32>(magnitude + (149u << 23u)), f32(magnitude), magnitude < 0x00800000u), x);
}

// The bits of 2^-149 x for whole numbers x.
fn bits_of_smallest_units_f32(x: f32) -> u32 {
    let magnitude = abs(x);
    let bits = select(bitcast<u32>(magnitude) - (149u << 23u), u32(magnitude), magnitude < 8388608.0);
    return bits | (bitcast<u32>(x) & 0x80000000u);
}

fn mod_f32(x: f32, y: f32) -> f32 {
    let rest = fmod_f32(x, y);
    let differ = ((bitcast<u32>(rest) ^ bitcast<u32>(y)) >> 31u) != 0u;
    // From |y| = 2^-102 on, what a subnormal rest adds is less than the sum is rounded by.
    let small = bits_of_smallest_units_f32(in_smallest_units_f32(rest) + in_smallest_units_f32(y));
    let sum = select(bitcast<u32>(rest + y), small, abs_bits_f32(y) < (25u << 23u));
    // By bits, because y may be infinite; a rest of 0 has the sign of y too.
    let moved = select(sum, bitcast<u32>(y), is_inf_f32(y));
    let nonzero = select(bitcast<u32>(rest), moved, differ);
    let bits = select(nonzero, bitcast<u32>(y) & 0x80000000u, abs_bits_f32(rest) == 0u);
    return keep_nan_f32(rest, bitcast<f32>(bits));
}
