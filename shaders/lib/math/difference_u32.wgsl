// difference_u32: x - y without wrapping, as a float32. The difference is exact, its conversion rounds once.
fn difference_u32(x: u32, y: u32) -> f32 {
    return select(-f32(y - x), f32(x - y), x >= y);
}
