// remainder_u32: what a division of integers leaves; 0 for divisor 0. Exact.
// uses: div_u32
fn fmod_u32(a: u32, b: u32) -> u32 {
    return select(a - b * div_u32(a, b), 0u, b == 0u);
}

fn mod_u32(a: u32, b: u32) -> u32 {
    return fmod_u32(a, b);
}
