//! L-BFGS: the minimum of a smooth function from values and gradients, with the curvature of the last m steps.
//!
//! Direction: the two-loop recursion from H_0 = (sᵀy/yᵀy)·I, Nocedal & Wright 2006, Algorithm 7.4 and eq. (7.20). Step:
//! doubling and bisection to the weak Wolfe conditions, Lewis & Overton 2013, Algorithm 2.6; they make sᵀy > 0, which
//! keeps H positive definite. Vectors are on the host, in f64.

use std::collections::VecDeque;

/// The constants of the Wolfe conditions: sufficient decrease and curvature.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// The largest number of evaluations in a line search.
const TRIALS: usize = 40;

/// The constants of L-BFGS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lbfgs {
    /// The number m of past steps that are kept.
    pub memory: usize,
    /// The largest number of iterations.
    pub iterations: usize,
    /// The tolerance: iteration stops after a step that changes f by no more than this share of max(|f|, 1).
    pub tolerance: f64,
}

/// The point at which L-BFGS stopped.
#[derive(Clone, Debug)]
pub(super) struct Minimum {
    /// The point x, `[n]`.
    pub at: Vec<f64>,
    /// The value f(x).
    pub value: f64,
}

/// A point with the function's value and gradient there.
struct Point {
    at: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// A past step: s = x_{k+1} − x_k, y = ∇f_{k+1} − ∇f_k and 1/sᵀy.
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    rho: f64,
}

impl Lbfgs {
    /// Minimises f from `start`, `[n]`. `f` returns (f(x), ∇f(x)); where f is not finite the line search shortens the
    /// step.
    ///
    /// # Errors
    /// `f` fails.
    pub fn minimise<E>(
        &self,
        start: Vec<f64>,
        mut f: impl FnMut(&[f64]) -> Result<(f64, Vec<f64>), E>,
    ) -> Result<Minimum, E> {
        let mut evaluate = |at: Vec<f64>| f(&at).map(|(value, gradient)| Point { at, value, gradient });
        let mut here = evaluate(start)?;
        let mut pairs: VecDeque<Pair> = VecDeque::with_capacity(self.memory);
        for _ in 0..self.iterations {
            let direction = direction(&pairs, &here.gradient);
            // Without curvature the first trial has length 1 at most.
            let first = if pairs.is_empty() { 1.0 / norm(&direction).max(1.0) } else { 1.0 };
            let Some(next) = search(&here, &direction, first, &mut evaluate)? else { break };
            if let Some(pair) = Pair::between(&here, &next) {
                if pairs.len() == self.memory {
                    pairs.pop_front();
                }
                pairs.push_back(pair);
            }
            let change = (here.value - next.value).abs();
            let has_converged = change <= self.tolerance * here.value.abs().max(next.value.abs()).max(1.0);
            here = next;
            if has_converged {
                break;
            }
        }
        Ok(Minimum { at: here.at, value: here.value })
    }
}

impl Pair {
    /// The step between two points; `None` without positive curvature, as after a line search that gave up.
    fn between(from: &Point, to: &Point) -> Option<Self> {
        let (s, y) = (difference(&to.at, &from.at), difference(&to.gradient, &from.gradient));
        let curvature = dot(&s, &y);
        (curvature > f64::EPSILON * norm(&s) * norm(&y)).then(|| Self { s, y, rho: 1.0 / curvature })
    }
}

/// The search direction −H·∇f, `[n]`.
fn direction(pairs: &VecDeque<Pair>, gradient: &[f64]) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut alphas = Vec::with_capacity(pairs.len());
    for Pair { s, y, rho } in pairs.iter().rev() {
        let alpha = rho * dot(s, &q);
        add(&mut q, -alpha, y);
        alphas.push(alpha);
    }
    if let Some(Pair { y, rho, .. }) = pairs.back() {
        let scale = 1.0 / (rho * dot(y, y));
        q.iter_mut().for_each(|value| *value *= scale);
    }
    for (Pair { s, y, rho }, alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
        let beta = rho * dot(y, &q);
        add(&mut q, alpha - beta, s);
    }
    q
}

/// A point x + t·p with enough decrease and, if one is found, enough curvature; `None` if p is not a descent direction.
fn search<E>(
    from: &Point,
    p: &[f64],
    first: f64,
    evaluate: &mut impl FnMut(Vec<f64>) -> Result<Point, E>,
) -> Result<Option<Point>, E> {
    let slope = dot(&from.gradient, p);
    // A minimum and a point with a value that is not finite have no descent direction.
    if slope.is_nan() || slope >= 0.0 || !from.value.is_finite() {
        return Ok(None);
    }
    let (mut low, mut high, mut t) = (0.0, f64::INFINITY, first);
    let mut lower = None;
    for _ in 0..TRIALS {
        let mut at = from.at.clone();
        add(&mut at, t, p);
        let trial = evaluate(at)?;
        let trial_slope = dot(&trial.gradient, p);
        if trial.value <= from.value + DECREASE * t * slope && trial_slope.is_finite() {
            if trial_slope >= CURVATURE * slope {
                return Ok(Some(trial));
            }
            low = t;
            lower = Some(trial);
        } else {
            high = t;
        }
        t = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * low };
    }
    Ok(lower)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// to ← to + c·x.
fn add(to: &mut [f64], c: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += c * x);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Minimises and counts evaluations.
    fn minimise(start: Vec<f64>, f: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> (Minimum, usize) {
        let mut evaluations = 0;
        let counted = |x: &[f64]| -> Result<_, Infallible> {
            evaluations += 1;
            Ok(f(x))
        };
        let end = Lbfgs { memory: 10, iterations: 500, tolerance: 0.0 }.minimise(start, counted).unwrap();
        (end, evaluations)
    }

    #[test]
    fn the_minimum_of_rosenbrocks_function_is_found() {
        // f = Σ 100 (x_{i+1} − x_i²)² + (1 − x_i)², minimum 0 at (1, …, 1).
        let rosenbrock = |x: &[f64]| {
            let mut gradient = vec![0.0; x.len()];
            let mut value = 0.0;
            for i in 0..x.len() - 1 {
                let (bend, offset) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
                value += 100.0 * bend * bend + offset * offset;
                gradient[i] += -400.0 * x[i] * bend - 2.0 * offset;
                gradient[i + 1] += 200.0 * bend;
            }
            (value, gradient)
        };
        for n in [2, 10] {
            let start = (0..n).map(|i| if i % 2 == 0 { -1.2 } else { 1.0 }).collect();
            let (end, evaluations) = minimise(start, rosenbrock);
            assert!(end.at.iter().all(|x| (x - 1.0).abs() < 1e-7), "n = {n}: {end:?}");
            // Steepest descent needs thousands.
            assert!(evaluations < 250, "n = {n}: {evaluations} evaluations");
        }
    }

    #[test]
    fn a_quadratic_of_condition_ten_thousand_is_solved() {
        // f = ½ Σ a_i (x_i − i)², a from 1 to 1e4.
        let a: Vec<f64> = (0..20).map(|i| 1e4f64.powf(f64::from(i) / 19.0)).collect();
        let quadratic = |x: &[f64]| {
            let offset: Vec<f64> = x.iter().enumerate().map(|(i, x)| x - i as f64).collect();
            let gradient: Vec<f64> = offset.iter().zip(&a).map(|(o, a)| a * o).collect();
            (0.5 * dot(&offset, &gradient), gradient)
        };
        let (end, _) = minimise(vec![0.0; 20], quadratic);
        for (i, x) in end.at.iter().enumerate() {
            assert!((x - i as f64).abs() < 1e-6, "x_{i} = {x}");
        }
        assert!(end.value < 1e-12, "{}", end.value);
    }

    #[test]
    fn the_search_avoids_points_with_an_infinite_value() {
        // x − ln x, minimum 1 at x = 1; not finite for x ≤ 0. From 30, where f is nearly straight, quasi-Newton steps
        // lead far beyond the boundary at 0.
        let barrier = |x: &[f64]| {
            let value = if x[0] > 0.0 { x[0] - x[0].ln() } else { f64::INFINITY };
            (value, vec![1.0 - 1.0 / x[0]])
        };
        let (end, _) = minimise(vec![0.01], barrier);
        assert!((end.at[0] - 1.0).abs() < 1e-6, "{end:?}");
        let (end, _) = minimise(vec![30.0], barrier);
        assert!((end.at[0] - 1.0).abs() < 1e-6, "{end:?}");
        // No step is possible, so the start is returned.
        let (end, evaluations) = minimise(vec![-1.0], barrier);
        assert_eq!((end.at[0], evaluations), (-1.0, 1));
    }
}
