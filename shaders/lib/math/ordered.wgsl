// ordered: floats as integers of the same order, so that the largest and smallest are found exactly, NaN included.
// uses: bits

// Ascending with x; -0 comes before +0. NaN becomes `nan`, which the caller makes the winner.
fn ordered_f32(x: f32, nan: i32) -> i32 {
    let bits = bitcast<i32>(x);
    return select(bits ^ ((bits >> 31u) & 0x7fffffff), nan, is_nan_f32(x));
}

// The float a key was made from. The largest and the smallest integer give NaN.
fn of_ordered_f32(key: i32) -> f32 {
    return bitcast<f32>(key ^ ((key >> 31u) & 0x7fffffff));
}
