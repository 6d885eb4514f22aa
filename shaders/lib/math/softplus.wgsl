// softplus_f32: log(1 + e^(steepness x)) / steepness. At most 2.5 ULP on all x if steepness is 1; inf -> inf, NaN -> NaN.
// uses: bits, div, exp, log1p
fn softplus_f32(x: f32, steepness: f32) -> f32 {
    let limit = select(min(x, 0.0), max(x, 0.0), steepness > 0.0);
    // The product may be infinite.
    let rest = log1p_finite_f32(exp_parts_f32(-abs(steepness * x), 0.0));
    return keep_nan_f32(x, limit + div_f32(rest, steepness));
}
