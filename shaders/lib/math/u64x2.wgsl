// u64x2: order of unsigned 64-bit integers in pairs (see pair.wgsl). Exact.
// uses: pair
fn less_u64x2(a: u64x2, b: u64x2) -> bool {
    return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}

fn max_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    return select(a, b, less_u64x2(a, b));
}

fn min_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    return select(a, b, less_u64x2(b, a));
}
