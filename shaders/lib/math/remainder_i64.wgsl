// remainder_i64: what a division of integers leaves: fmod with the dividend's sign, mod with the divisor's; 0 for divisor 0. Exact.
// uses: div_i64
fn fmod_i64(a: i64, b: i64) -> i64 {
    return select(a - b * div_i64(a, b), 0li, b == 0li);
}

fn mod_i64(a: i64, b: i64) -> i64 {
    let rest = fmod_i64(a, b);
    return select(rest, rest + b, (rest != 0li) & ((rest ^ b) < 0li));
}
