// difference_i32: x - y without wrapping, as a float32. The difference is exact, its conversion rounds once.
// uses: difference_u32
fn difference_i32(x: i32, y: i32) -> f32 {
    // Shifted by 2^31 the signed range is the unsigned one, and the difference stays the same.
    return difference_u32(bitcast<u32>(x) ^ 0x80000000u, bitcast<u32>(y) ^ 0x80000000u);
}
