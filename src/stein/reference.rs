//! SVGD in plain tensors, as the paper prints it: Liu & Wang 2016, Algorithm 1; Kassab & Simeone eq. (9).
//!
//! | paper | here |
//! |---|---|
//! | k(θ_j, θ_i) = exp(−‖θ_j − θ_i‖²/h) | [`kernel`] |
//! | h from the median of the distances | [`bandwidth`] |
//! | ∇_{θ_j} k(θ_j, θ_i) = (2/h)·k(θ_j, θ_i)·(θ_i − θ_j) | in [`direction`] |
//! | φ_i = (1/N) Σ_j [k(θ_j, θ_i)·S_j + ∇_{θ_j} k(θ_j, θ_i)] with S_j = ∇ log p(θ_j) | [`direction`] |
//! | G ← βG + (1 − β)φ², Θ ← Θ + ε·φ/(ϵ + √G) | [`AdaGrad::step`] |
//!
//! This is the documentation of SVGD in code, and the reference of the tests. It computes the differences of all pairs,
//! `[N, N, d]`, in the particles' precision. [`super::Svgd`] is the loop that runs; it takes the same steps with less
//! memory and time, and the tests below compare the two.

use burn::tensor::{Tensor, TensorReadError};

use super::bandwidth::{Bandwidth, MedianOfEven, Rule};

/// AdaGrad with momentum β on its accumulator, the papers' step rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// Step size ε.
    pub lr: f64,
    /// ϵ, which keeps the quotient finite.
    pub epsilon: f64,
    /// β.
    pub momentum: f64,
}

impl AdaGrad {
    /// Θ ← Θ + ε·φ/(ϵ + √G). The accumulator G is `None` before the first step, which sets it to φ².
    ///
    /// # Shapes
    /// - `theta`, `phi`, the accumulator and the result: `[N, d]`
    pub fn step(&self, theta: Tensor<2>, phi: Tensor<2>, accumulator: &mut Option<Tensor<2>>) -> Tensor<2> {
        let square = phi.clone().square();
        let g = match accumulator.take() {
            None => square,
            Some(g) => g.mul_scalar(self.momentum) + square.mul_scalar(1.0 - self.momentum),
        };
        *accumulator = Some(g.clone());
        theta + (phi / g.sqrt().add_scalar(self.epsilon)).mul_scalar(self.lr)
    }
}

/// φ, the direction in which SVGD moves the particles Θ with the scores S, for the kernel exp(−r²/h).
///
/// # Shapes
/// - `theta`, `score` and the result: `[N, d]`
///
/// # Errors
/// Reading the distances from the device fails: h is computed on the host.
pub fn direction(theta: &Tensor<2>, score: Tensor<2>, rule: Bandwidth) -> Result<Tensor<2>, TensorReadError> {
    let [n, _] = theta.dims();
    let differences = theta.clone().unsqueeze_dim::<3>(1) - theta.clone().unsqueeze_dim::<3>(0); // θ_i − θ_j, [N, N, d]
    let squares = differences.clone().square().sum_dim(2).squeeze_dim::<2>(2); // r², [N, N]
    let h = bandwidth(&squares, rule)?;
    let k = kernel(squares, h); // [N, N]
    let gradient = differences * k.clone().mul_scalar(2.0 / h).unsqueeze_dim::<3>(2); // [N, N, d]
    let repulsion = gradient.sum_dim(1).squeeze_dim::<2>(1); // Σ_j ∇_{θ_j} k(θ_j, θ_i), [N, d]
    Ok((k.matmul(score) + repulsion).div_scalar(n as f64))
}

/// exp(−r²/h) of the squared distances, `[N, N]`.
pub fn kernel(squares: Tensor<2>, h: f64) -> Tensor<2> {
    squares.div_scalar(-h).exp()
}

/// h by a rule from the squared distances `[N, N]`. Where the rule gives no positive number, as for N = 1 or where most
/// particles are equal: the mean of the positive squares over ln(N+1), or 1 where there is none.
///
/// # Errors
/// Reading from the device fails.
pub fn bandwidth(squares: &Tensor<2>, rule: Bandwidth) -> Result<f64, TensorReadError> {
    let [n, _] = squares.dims();
    let all = squares.clone().try_into_vec_as::<f64>()?;
    let pairs: Vec<f64> = (0..n).flat_map(|i| all[i * n..i * n + i].iter().copied()).collect();
    let roots = |values: Vec<f64>| values.into_iter().map(f64::sqrt).collect();
    let positive: Vec<f64> = all.iter().copied().filter(|square| *square > 0.0).collect();
    let mean = positive.iter().sum::<f64>() / positive.len() as f64;
    let (n, median) = (n as f64, |values| median(values, rule.median));
    let h = match rule.rule {
        Rule::Reference => median(all) / (n + 1.0).ln(),
        Rule::Paper => median(roots(pairs)).powi(2) / n.ln(),
        Rule::FullMatrix => median(roots(all)).powi(2) / n.ln(),
        Rule::Pyro => median(pairs) / (n + 1.0).ln(),
        Rule::Fixed(h) => h,
    };
    let candidates = [h, mean / (n + 1.0).ln(), 1.0];
    Ok(candidates.into_iter().find(|h| h.is_finite() && *h > 0.0).unwrap_or(1.0))
}

/// The median of some values; 0 of none.
fn median(mut values: Vec<f64>, of_even: MedianOfEven) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let (lower, upper) = (values[last / 2], values[values.len() / 2]);
    match of_even {
        MedianOfEven::Mean => 0.5 * (lower + upper),
        MedianOfEven::Lower => lower,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::{BlrConfig, Layout, Model, Network};
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};
    use crate::particles::Particles;
    use crate::stein::{AccumulatorStart, EpsilonPlace, Kernel, Optimizer, OptimizerState, Score, Svgd, SvgdError};

    const ADAGRAD: AdaGrad = AdaGrad { lr: 0.05, epsilon: 1e-6, momentum: 0.9 };
    const STEPS: usize = 20;

    /// Particles of two blocks, 37 and 1 coordinates: more than two vectors, and a rest.
    fn layout() -> Arc<Layout> {
        Network::new(BlrConfig::new(37)).layout().clone()
    }

    fn start(count: usize, session: &Session) -> Particles {
        let mut rng = ChaCha12Rng::seed_from_u64(count as u64);
        let values = (0..count * 38).map(|_| rng.random_range(-2.0..2.0)).collect();
        let array = Array { shape: vec![count, 38], values: Values::F64(values) };
        Particles::from_array(&array, &layout(), session).unwrap()
    }

    /// The blocks side by side, `[N, d]`.
    fn whole(particles: &Particles) -> Tensor<2> {
        Tensor::cat(particles.blocks().to_vec(), 1)
    }

    /// The score of N(1, I/4), coordinate by coordinate.
    fn score(theta: Tensor<2>) -> Tensor<2> {
        theta.neg().add_scalar(1.0).mul_scalar(4.0)
    }

    fn by_reference(mut theta: Tensor<2>, rule: Bandwidth) -> Vec<f64> {
        let mut accumulator = None;
        for _ in 0..STEPS {
            let phi = direction(&theta, score(theta.clone()), rule).unwrap();
            theta = ADAGRAD.step(theta, phi, &mut accumulator);
        }
        theta.try_into_vec_as::<f64>().unwrap()
    }

    fn by_the_loop(theta: Particles, rule: Bandwidth) -> Vec<f64> {
        let AdaGrad { lr, epsilon, momentum } = ADAGRAD;
        let (init, place) = (AccumulatorStart::G2, EpsilonPlace::Outside);
        let optimizer = Optimizer::AdaGrad { lr, epsilon, momentum, init, place };
        let svgd = Svgd { kernel: Kernel::Rbf(rule), optimizer };
        let score = |at: &Particles| Ok(Score::dense(at.map(score)));
        let moved = svgd.run::<SvgdError>(theta, STEPS, &mut OptimizerState::default(), score, |_| {}).unwrap();
        whole(&moved).try_into_vec_as::<f64>().unwrap()
    }

    /// Mean over all coordinates of the distance between the results of the two.
    fn mean_difference(count: usize, rule: Bandwidth, precision: Precision) -> f64 {
        let session = Session::open::<Flex>(precision).unwrap();
        let start = start(count, &session);
        let (want, got) = (by_reference(whole(&start), rule), by_the_loop(start, rule));
        assert_eq!(got.len(), want.len());
        got.iter().zip(&want).map(|(got, want)| (got - want).abs()).sum::<f64>() / got.len() as f64
    }

    #[test]
    fn the_fused_loop_takes_the_steps_of_the_reference() {
        let rules = [Rule::Reference, Rule::Paper, Rule::FullMatrix, Rule::Pyro, Rule::Fixed(20.0)];
        let rules =
            rules.map(|rule| [MedianOfEven::Mean, MedianOfEven::Lower].map(|median| Bandwidth { rule, median }));
        for rule in rules.into_iter().flatten() {
            for count in [1, 2, 3, 20] {
                // 20 steps of at most 0.05 with sums of up to 60 products of order 1, in units of 6e-8 and 1e-16. In
                // the mean, because a φ near 0 loses its digits and AdaGrad divides by its size: single coordinates are
                // off by more.
                for (precision, tolerance) in [(Precision::F64, 1e-12), (Precision::F32, 1e-5)] {
                    let difference = mean_difference(count, rule, precision);
                    assert!(difference <= tolerance, "{rule:?}, N = {count}, {precision:?}: {difference:e}");
                }
            }
        }
    }
}
