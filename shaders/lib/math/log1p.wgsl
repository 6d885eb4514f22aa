// log1p_f32: log(1 + x). At most 2 ULP on all x; -1 -> -inf, x < -1 -> NaN, inf -> inf, NaN -> NaN.
// uses: bits, log

// log(1 + x) for finite x > -1.
fn log1p_finite_f32(x: f32) -> f32 {
    // 1 + head is exact, and the rest of x joins again after the scaling by 2^-e. Below -1/2 already
    // 1 + x is exact, above 2^24 the 1 no longer counts.
    let head = select(head_f32(x), x, (x < -0.5) | (x > 16777216.0));
    let split = log_split_f32(1.0 + head);
    let inverse_scale = bitcast<f32>(max(127 - i32(split.e), 1) << 23u);
    let f = (split.m - 1.0) + (x - head) * inverse_scale;
    return log_parts_f32(select(f, x, split.e == 0.0), split.e);
}

fn log1p_f32(x: f32) -> f32 {
    // 1 + x keeps everything that decides a special case: it is 0 for -1 alone, negative below.
    return log_special_f32(1.0 + x, log1p_finite_f32(x));
}
