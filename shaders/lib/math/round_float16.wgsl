// round_float16: nearest float16, halves to even; infinity from 65520 on; subnormals, infinities and NaN stay. Exact.
// uses: bits
// By integers, because some compilers leave out the conversion to float16 and back.
fn round_float16(x: f32) -> f32 {
    let magnitude = abs_bits_f32(x);
    let normal = (magnitude + 0xfffu + ((magnitude >> 13u) & 1u)) & 0xffffe000u;
    // Below 2^-14 the result is a multiple of 2^-24, the last place of 1/2. The mask changes nothing, but no compiler can know
    // that and leave out the sum and the difference.
    let sum = bitcast<u32>(bitcast<f32>(magnitude) + 0.5) & 0x3f0007ffu;
    let subnormal = bitcast<u32>(bitcast<f32>(sum) - 0.5);
    let finite = select(normal, subnormal, magnitude < 0x38800000u);
    let rounded = select(finite, max(magnitude, 0x7f800000u), magnitude >= 0x477ff000u);
    return flip_sign_f32(bitcast<f32>(rounded), x);
}
