// i64x2: order and sign of signed 64-bit integers in pairs (see pair.wgsl). Exact; the lowest value's absolute value is itself.
// uses: pair
fn less_i64x2(a: i64x2, b: i64x2) -> bool {
    let a_high = bitcast<i32>(a.y);
    let b_high = bitcast<i32>(b.y);
    return (a_high < b_high) | ((a_high == b_high) & (a.x < b.x));
}

fn max_i64x2(a: i64x2, b: i64x2) -> i64x2 {
    return select(a, b, less_i64x2(a, b));
}

fn min_i64x2(a: i64x2, b: i64x2) -> i64x2 {
    return select(a, b, less_i64x2(b, a));
}

fn is_negative_i64x2(a: i64x2) -> bool {
    return (a.y >> 31u) != 0u;
}

fn abs_i64x2(a: i64x2) -> i64x2 {
    return select(a, neg_pair(a), is_negative_i64x2(a));
}

fn sign_i64x2(a: i64x2) -> i64x2 {
    let positive = i64x2(select(0u, 1u, (a.x | a.y) != 0u), 0u);
    return select(positive, i64x2(0xffffffffu, 0xffffffffu), is_negative_i64x2(a));
}
