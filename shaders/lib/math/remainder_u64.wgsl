// remainder_u64: what a division of integers leaves; 0 for divisor 0. Exact.
// uses: div_u64
fn fmod_u64(a: u64, b: u64) -> u64 {
    return select(a - b * div_u64(a, b), 0lu, b == 0lu);
}

fn mod_u64(a: u64, b: u64) -> u64 {
    return fmod_u64(a, b);
}
