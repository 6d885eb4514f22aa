// remainder_i32: what a division of integers leaves: fmod with the dividend's sign, mod with the divisor's; 0 for divisor 0. Exact.
// uses: div_i32
fn fmod_i32(a: i32, b: i32) -> i32 {
    return select(a - b * div_i32(a, b), 0i, b == 0i);
}

fn mod_i32(a: i32, b: i32) -> i32 {
    let rest = fmod_i32(a, b);
    return select(rest, rest + b, (rest != 0i) & ((rest ^ b) < 0i));
}
