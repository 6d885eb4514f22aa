// round_float8: nearest number of a format of 8 bits, halves to even. Exact.
// uses: bits, round_even

// The format has `fraction` bits behind the point, normal numbers from 2^lowest on, and `largest` as its largest number. What
// is beyond becomes the number of the bits `beyond`, with the sign of x; `zero_sign` keeps, or drops, the sign of zero.
fn round_float8(x: f32, fraction: u32, lowest: i32, largest: f32, beyond: u32, zero_sign: u32) -> f32 {
    let magnitude = abs_bits_f32(x);
    let cut = 23u - fraction;
    let half = (1u << (cut - 1u)) - 1u;
    let normal = ((magnitude + half + ((magnitude >> cut) & 1u)) >> cut) << cut;
    // Below 2^lowest the results are multiples of 2^(lowest - fraction). The scaling is exact both ways.
    let unit = lowest - i32(fraction);
    let up = bitcast<f32>(u32(127 - unit) << 23u);
    let down = bitcast<f32>(u32(127 + unit) << 23u);
    let subnormal = bitcast<u32>(round_even_f32(bitcast<f32>(magnitude) * up) * down);
    let finite = select(normal, subnormal, magnitude < u32(127 + lowest) << 23u);
    // As integers: magnitudes have the order of their bits.
    let rounded = select(finite, beyond, finite > bitcast<u32>(largest));
    let sign = bitcast<u32>(x) & 0x80000000u;
    return keep_nan_f32(x, bitcast<f32>(rounded | select(sign, sign & zero_sign, rounded == 0u)));
}
