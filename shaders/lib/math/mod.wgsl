// mod_f32: x - n y, n being x / y rounded down. At most 0.5 ULP, the device's own rounding, on all x and y; x inf, y 0 -> NaN.
// uses: bits, fmod
fn mod_f32(x: f32, y: f32) -> f32 {
    let rest = fmod_f32(x, y);
    let differ = ((bitcast<u32>(rest) ^ bitcast<u32>(y)) >> 31u) != 0u;
    // By bits, because y may be infinite; a rest of 0 has the sign of y too.
    let moved = select(bitcast<u32>(rest + y), bitcast<u32>(y), is_inf_f32(y));
    let nonzero = select(bitcast<u32>(rest), moved, differ);
    let bits = select(nonzero, bitcast<u32>(y) & 0x80000000u, abs_bits_f32(rest) == 0u);
    return keep_nan_f32(rest, bitcast<f32>(bits));
}
