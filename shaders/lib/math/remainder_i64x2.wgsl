// remainder_i64x2: what a division of pairs leaves: fmod with the dividend's sign, mod with the divisor's; 0 for divisor 0. Exact.
// uses: div_i64x2, i64x2, pair
fn fmod_i64x2(a: i64x2, b: i64x2) -> i64x2 {
    return select(sub_pair(a, mul_pair(b, div_i64x2(a, b))), i64x2(0u, 0u), (b.x | b.y) == 0u);
}

fn mod_i64x2(a: i64x2, b: i64x2) -> i64x2 {
    let rest = fmod_i64x2(a, b);
    return select(rest, add_pair(rest, b), ((rest.x | rest.y) != 0u) & is_negative_i64x2(rest ^ b));
}
