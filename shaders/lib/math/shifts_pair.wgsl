// shifts_pair: shifts of pairs (see pair.wgsl) by pairs, of 64 and more too: all bits are shifted out then. Exact.
// uses: pair
fn shifted_left_pair(a: vec2<u32>, count: vec2<u32>) -> vec2<u32> {
    return select(shift_left_pair(a, count.x & 63u), vec2<u32>(0u, 0u), (count.y != 0u) | (count.x > 63u));
}

// a shifted right by `count`, `fill` being the word above its high one.
fn shifted_right_pair(a: vec2<u32>, count: vec2<u32>, fill: u32) -> vec2<u32> {
    let s = count.x & 31u;
    // (x << 1) << (31 - s) is x << (32 - s), defined for 0 too.
    let high = (a.y >> s) | ((fill << 1u) << (31u - s));
    let low = (a.x >> s) | ((a.y << 1u) << (31u - s));
    let within = select(vec2<u32>(low, high), vec2<u32>(high, fill), (count.x & 32u) != 0u);
    return select(within, vec2<u32>(fill, fill), (count.y != 0u) | (count.x > 63u));
}

fn shifted_right_u64x2(a: u64x2, count: u64x2) -> u64x2 {
    return shifted_right_pair(a, count, 0u);
}

fn shifted_right_i64x2(a: i64x2, count: i64x2) -> i64x2 {
    return shifted_right_pair(a, count, select(0u, 0xffffffffu, (a.y >> 31u) != 0u));
}
