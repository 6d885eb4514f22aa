// erf_f32: error function. At most 3 ULP on all x; +-inf -> +-1, NaN -> NaN.
// uses: bits, exp
fn erf_f32(x: f32) -> f32 {
    // Both polynomials: N. Juffa, single-precision erff (public domain), 0.921875 being where they meet.
    let z = x * x;
    var p = 7.853861353153693e-5;
    p = fma(p, z, -8.010193625184903e-4);
    p = fma(p, z, 5.188327685732524e-3);
    p = fma(p, z, -2.685381193529856e-2);
    p = fma(p, z, 1.128358514861418e-1);
    p = fma(p, z, -3.761262582423300e-1);
    p = fma(p, z, 1.128379165726710);
    // log(1 - erf(a)) for a up to 4, where erf rounds to 1.
    let a = min(abs(x), 4.0);
    var q = -1.72853470e-5;
    q = fma(q, a, 3.83197126e-4);
    q = fma(q, a, -3.88396438e-3);
    q = fma(q, a, 2.42546219e-2);
    q = fma(q, a, -1.06777877e-1);
    q = fma(q, a, -6.34846687e-1);
    q = fma(q, a, -1.28717512e-1);
    q = fma(q, a, -a);
    let large = 1.0 - exp_parts_f32(q, 0.0);
    return keep_nan_f32(x, flip_sign_f32(select(large, p * a, a < 0.921875), x));
}
