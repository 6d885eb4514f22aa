// pow_f32: x^y with the special cases of C's pow. At most 3 ULP on all x and y, NaN included.
// uses: bits, exp, log
fn pow_f32(x: f32, y: f32) -> f32 {
    // log|x| = t1 + t2, t1 being 12 bits long and t2 good to about 2^-33 of it, because the error is
    // multiplied by y. That takes exact products and differences, which head_f32 provides.
    // The magnitude is taken by its bits, because abs() may take a subnormal number for 0.
    let split = log_split_f32(bitcast<f32>(abs_bits_f32(x)));
    // log(m) = 2 (s + s^3 / 3 + ...) for s = (m - 1) / (m + 1), |s| < 0.172, s = sh + sl.
    let f = split.m - 1.0;
    let d = split.m + 1.0;
    let dh = head_f32(d);
    let dl = split.m - head_f32(dh - 1.0);
    let s = f / d;
    let sh = head_f32(s);
    let sl = ((f - sh * dh) - sh * dl) / d;
    // 2 (atanh(s) - s) / s = 2/3 z + z^2 p(z) for z = s^2: near-minimax fit, within 2^-26 of the whole.
    // It is needed to 12 bits more than a float32 has, so the leading term is made of exact products.
    let z = s * s;
    let p = fma(fma(0.23560061, z, 0.28538157), z, 0.40000329) * z * z;
    let zh = head_f32(z);
    let zl = (sh * sh - zh) + sl * (s + sh);
    let leading = zh * 0.66650390625;  // head of 2/3
    let rest = fma(zh, 1.6276042e-4, fma(0.66666667, zl, p));
    let rh = head_f32(leading + rest);
    let rl = rest + (leading - rh);
    let series = fma(sh, rh, fma(sl, rh, s * rl));
    // ln 2 in two parts as in exp_parts_f32; e times the first and 2 sh are exact.
    let high = split.e * 0.693359375;
    let low = fma(head_f32(split.e), -2.12194440e-4, fma(2.0, sl, series));
    let t1 = head_f32(high + 2.0 * sh + low);
    let t2 = low + (2.0 * sh - head_f32(t1 - high));

    // Beyond 2^33 every power but that of 1 is 0 or infinite already.
    let yc = clamp(y, -8589934592.0, 8589934592.0);
    let yh = head_f32(yc);
    let hi = yh * t1;
    let lo = (yc - yh) * t1 + yc * t2;
    // Far out of range the result is decided by hi, and lo may be anything.
    let finite = exp_parts_f32(hi, select(lo, 0.0, abs(hi) > 120.0));

    let x_bits = abs_bits_f32(x);
    let zero = x_bits == 0u;
    let infinite = x_bits == 0x7f800000u;
    // Signs by bits: to drivers that flush them, denormals are neither above nor below 0.
    let limit = select(0.0, inf_f32(), infinite == (bitcast<i32>(y) >= 0));
    let magnitude = select(finite, limit, zero | infinite);

    // 2^24 is even, and so is every float32 beyond it.
    let yi = clamp(y, -16777216.0, 16777216.0);
    let n = i32(yi);
    let integer = f32(n) == yi;
    let odd = integer & ((n & 1) != 0);
    let with_sign = select(magnitude, flip_sign_f32(magnitude, x), odd);
    let undefined = (bitcast<i32>(x) < 0) & !integer & !zero & !infinite;
    let result = select(with_sign, nan_f32(), undefined);
    let with_nan = keep_nan_f32(y, keep_nan_f32(x, result));
    return select(with_nan, 1.0, (abs_bits_f32(y) == 0u) | (bitcast<u32>(x) == 0x3f800000u));
}
