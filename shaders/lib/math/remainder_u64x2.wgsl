// remainder_u64x2: what a division of pairs leaves; 0 for divisor 0. Exact.
// uses: div_u64x2, pair
fn fmod_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    return select(sub_pair(a, mul_pair(b, div_u64x2(a, b))), u64x2(0u, 0u), (b.x | b.y) == 0u);
}

fn mod_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    return fmod_u64x2(a, b);
}
