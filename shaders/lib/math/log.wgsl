// log_f32: natural logarithm. At most 1 ULP on all x; 0 -> -inf, x < 0 -> NaN, inf -> inf, NaN -> NaN.
// uses: bits

// A positive number as m * 2^e with m in [sqrt(1/2), sqrt(2)).
struct LogSplit { m: f32, e: f32 }

fn log_split_f32(x: f32) -> LogSplit {
    // A subnormal's bits are its integer multiple of 2^-149: converted, they are a normal number.
    let bits = bitcast<u32>(x);
    let subnormal = bits < 0x00800000u;
    let normal_bits = select(bits, bitcast<u32>(f32(bits)), subnormal);
    // 0x3f3504f3 is sqrt(1/2).
    let e = bitcast<i32>(normal_bits - 0x3f3504f3u) >> 23u;
    let m = bitcast<f32>(normal_bits - (bitcast<u32>(e) << 23u));
    return LogSplit(m, f32(select(e, e - 149, subnormal)));
}

// log(1 + f) + e ln 2 for f in [sqrt(1/2) - 1, sqrt(2) - 1].
fn log_parts_f32(f: f32, e: f32) -> f32 {
    let z = f * f;
    // Cephes logf: (log(1 + f) - f + f^2 / 2) / f^3.
    var p = 7.0376836292e-2;
    p = fma(p, f, -1.1514610310e-1);
    p = fma(p, f, 1.1676998740e-1);
    p = fma(p, f, -1.2420140846e-1);
    p = fma(p, f, 1.4249322787e-1);
    p = fma(p, f, -1.6668057665e-1);
    p = fma(p, f, 2.0000714765e-1);
    p = fma(p, f, -2.4999993993e-1);
    p = fma(p, f, 3.3333331174e-1);
    // ln 2 in two parts as in exp_parts_f32.
    let low = fma(-0.5, z, fma(head_f32(e), -2.12194440e-4, p * f * z));
    return fma(e, 0.693359375, f + low);
}

// The result of a logarithm whose argument is x, given the one for positive finite x.
fn log_special_f32(x: f32, result: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let positive = select(result, x, bits == 0x7f800000u);
    let non_negative = select(positive, -inf_f32(), abs_bits_f32(x) == 0u);
    return select(non_negative, nan_f32(), (bits > 0x7f800000u) & (bits != 0x80000000u));
}

fn log_f32(x: f32) -> f32 {
    let split = log_split_f32(x);
    return log_special_f32(x, log_parts_f32(split.m - 1.0, split.e));
}
