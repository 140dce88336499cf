//! Golden-section search.

/// The minimiser of a unimodal function on `[low, high]`: the middle of the last interval, whose width is at most `width`.
///
/// # Arguments
/// * `tie`: how much smaller the value at the lower of two points must be for the search to go on below the upper one;
///   above 0, a function that is flat to rounding ends at `high`
pub fn golden_section(f: impl Fn(f64) -> f64, [mut low, mut high]: [f64; 2], width: f64, tie: f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    while high - low > width {
        if at_a <= at_b - tie {
            (high, b, at_b) = (b, a, at_a);
            a = high - ratio * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + ratio * (high - low);
            at_b = f(b);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_a_minimum_inside_and_at_either_end() {
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-7, "{found} for {wanted}");
        near(golden_section(|x| (x - 0.7).powi(2), [-3.0, 3.0], 1e-9, 0.0), 0.7);
        near(golden_section(|x| x, [-3.0, 3.0], 1e-9, 0.0), -3.0);
        near(golden_section(|x| -x, [-3.0, 3.0], 1e-9, 0.0), 3.0);
        near(golden_section(|_| 1.0, [-3.0, 3.0], 1e-9, 0.0), -3.0);
        near(golden_section(|_| 1.0, [-3.0, 3.0], 1e-9, 1e-12), 3.0);
    }
}
