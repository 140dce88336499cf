//! Optimisers: the element-wise step rules by which particles move along a direction φ (ascent).
//!
//! AdaGrad with momentum is the rule of the papers: G_0 = φ_0², G_l = β G_{l−1} + (1 − β) φ_l², Θ ← Θ + ε φ_l/(ϵ +
//! √G_l). Its first step is ε·sign(φ). Source: Liu & Wang 2016 code, Kassab & Simeone Table 3.

use burn::tensor::Tensor;

use super::direction::{Direction, OnHost};
use crate::particles::Particles;
use crate::simd::Host;
use crate::simd::rule::{AdamStep, AdaptiveStep, GradientStep, StepRule};

fedstein_schema::words! {
    /// The initial accumulator G_0 of AdaGrad with momentum.
    #[derive(Default)]
    pub enum AccumulatorStart {
        /// φ_0², as in the codes of SVGD and DSVGD.
        #[default]
        G2 = "g2",
        /// (1 − β) φ_0², as in the code of FedWBA; the first step is 1/√(1−β) times longer.
        Zero = "zero",
    }
}

fedstein_schema::words! {
    /// The place of ϵ in the quotient.
    #[derive(Default)]
    pub enum EpsilonPlace {
        /// φ/(ϵ + √G), as in all codes.
        #[default]
        Outside = "outside",
        /// φ/√(G + ϵ), as in the text of the FedWBA paper.
        Inside = "inside",
    }
}

/// A step rule and its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// AdaGrad with momentum on the accumulator, and none on the direction.
    AdaGrad {
        /// The step size ε.
        lr: f64,
        /// The constant ϵ.
        epsilon: f64,
        /// The momentum β.
        momentum: f64,
        /// The initial accumulator G_0.
        init: AccumulatorStart,
        /// The place of ϵ in the quotient.
        place: EpsilonPlace,
    },
    /// AdaGrad with a plain sum: G_l = G_{l−1} + φ_l².
    AdaGradSum {
        /// The step size ε.
        lr: f64,
        /// The constant ϵ.
        epsilon: f64,
        /// The place of ϵ in the quotient.
        place: EpsilonPlace,
    },
    /// Adam with bias correction.
    Adam {
        /// The step size ε.
        lr: f64,
        /// The constant ϵ.
        epsilon: f64,
        /// The decay β₁ of the first moment.
        beta1: f64,
        /// The decay β₂ of the second moment.
        beta2: f64,
    },
    /// Θ ← Θ + ε φ.
    Sgd {
        /// The step size ε.
        lr: f64,
    },
}

/// The state of an optimiser; empty before the first step.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState {
    /// Number of steps taken.
    pub steps: usize,
    /// G, or Adam's second moment, one `[N, size]` tensor a block.
    pub second: Vec<Tensor<2>>,
    /// Adam's first moment, one `[N, size]` tensor a block.
    pub first: Vec<Tensor<2>>,
}

impl Optimizer {
    /// The same rule with its step size times `factor`.
    pub fn scaled(mut self, factor: f64) -> Self {
        let (Self::AdaGrad { lr, .. } | Self::AdaGradSum { lr, .. } | Self::Adam { lr, .. } | Self::Sgd { lr }) =
            &mut self;
        *lr *= factor;
        self
    }

    /// An upper bound on the distance that a particle of d coordinates moves in one step, for any φ; infinite where
    /// there is none.
    ///
    /// An accumulator is at least (1 − β)φ², or φ² where it is a plain sum. No coordinate moves farther than ε/√(1 − β)
    /// or ε, as long as ϵ is larger than any φ whose square is 0 in f32.
    pub fn longest_step(&self, dim: usize) -> f64 {
        let coordinate = match *self {
            Self::AdaGrad { lr, momentum, epsilon, .. } if epsilon >= 1e-12 => lr / (1.0 - momentum).sqrt(),
            Self::AdaGradSum { lr, epsilon, .. } if epsilon >= 1e-12 => lr,
            _ => f64::INFINITY,
        };
        // One thousandth more, for rounding.
        1.001 * coordinate * (dim as f64).sqrt()
    }

    /// One step of the particles Θ `[N, d]` along φ, by one pass over the coordinates on the CPU in f32, else by
    /// [`Self::step`].
    pub fn follow(&self, particles: Particles, direction: Direction, state: &mut OptimizerState) -> Particles {
        if !particles.is_on_host() {
            let phi = direction.evaluate(&particles);
            return self.step(particles, phi, state);
        }
        let direction =
            direction.into_host().expect("a score must be on the device of its particles, and of their precision");
        self.follow_on_host(particles, &direction, state)
    }

    /// [`Self::follow`] on blocks in this process's memory.
    fn follow_on_host(&self, particles: Particles, direction: &OnHost, state: &mut OptimizerState) -> Particles {
        let rule = self.rule(state);
        let mut moments = [std::mem::take(&mut state.first).into_iter(), std::mem::take(&mut state.second).into_iter()];
        let mut block = 0;
        particles.map_into(|theta| {
            let mut moment = |used: bool, of: usize| {
                let new = || theta.zeros_like();
                used.then(|| Host::of(moments[of].next().unwrap_or_else(new))).flatten()
            };
            let mut first = moment(matches!(rule, StepRule::Adam(_)), 0);
            let mut second = moment(!matches!(rule, StepRule::Gradient(_)), 1);
            let Some(mut theta) = Host::of(theta) else { unreachable!("the caller found every block on the host") };
            direction.apply(block, rule, &mut theta, [first.as_mut(), second.as_mut()]);
            state.first.extend(first.map(Host::into_tensor));
            state.second.extend(second.map(Host::into_tensor));
            block += 1;
            theta.into_tensor()
        })
    }

    /// The rule of the next step; counts that step in the state.
    fn rule(&self, state: &mut OptimizerState) -> StepRule {
        let fresh = state.second.is_empty();
        state.steps += 1;
        let inside = |place| place == EpsilonPlace::Inside;
        match *self {
            Self::Sgd { lr } => StepRule::Gradient(GradientStep { lr: lr as f32 }),
            Self::AdaGrad { lr, epsilon, momentum, init, place } => {
                let [keep, add] = match (fresh, init) {
                    (true, AccumulatorStart::G2) => [0.0, 1.0],
                    _ => [momentum, 1.0 - momentum],
                };
                StepRule::Adaptive(AdaptiveStep::new(lr, epsilon, inside(place), keep, add))
            }
            Self::AdaGradSum { lr, epsilon, place } => {
                StepRule::Adaptive(AdaptiveStep::new(lr, epsilon, inside(place), 1.0, 1.0))
            }
            Self::Adam { lr, epsilon, beta1, beta2 } => {
                let correction = |beta: f64| 1.0 / (1.0 - beta.powi(state.steps as i32));
                StepRule::Adam(AdamStep {
                    lr: (lr * correction(beta1)) as f32,
                    epsilon: epsilon as f32,
                    shares: [beta1, beta2].map(|beta| [beta as f32, (1.0 - beta) as f32]),
                    scale: correction(beta2) as f32,
                })
            }
        }
    }

    /// One step of the particles Θ `[N, d]` along φ `[N, d]`, by general tensor operations.
    pub fn step(&self, particles: Particles, phi: Particles, state: &mut OptimizerState) -> Particles {
        let (first, second) = (std::mem::take(&mut state.first), std::mem::take(&mut state.second));
        let mut first = first.into_iter();
        let mut second = second.into_iter();
        state.steps += 1;
        let steps = state.steps;
        particles.zip(phi, |theta, phi| match *self {
            Self::Sgd { lr } => theta + phi.mul_scalar(lr),
            Self::AdaGrad { lr, epsilon, momentum, init, place } => {
                let square = phi.clone().square();
                let g = match (second.next(), init) {
                    (Some(g), _) => g.mul_scalar(momentum) + square.mul_scalar(1.0 - momentum),
                    (None, AccumulatorStart::G2) => square,
                    (None, AccumulatorStart::Zero) => square.mul_scalar(1.0 - momentum),
                };
                state.second.push(g.clone());
                theta + (phi / place.root(g, epsilon)).mul_scalar(lr)
            }
            Self::AdaGradSum { lr, epsilon, place } => {
                let square = phi.clone().square();
                let g = match second.next() {
                    Some(g) => g + square,
                    None => square,
                };
                state.second.push(g.clone());
                theta + (phi / place.root(g, epsilon)).mul_scalar(lr)
            }
            Self::Adam { lr, epsilon, beta1, beta2 } => {
                let square = phi.clone().square().mul_scalar(1.0 - beta2);
                let fresh = phi.mul_scalar(1.0 - beta1);
                let v = second.next().map_or(square.clone(), |v| v.mul_scalar(beta2) + square);
                let m = first.next().map_or(fresh.clone(), |m| m.mul_scalar(beta1) + fresh);
                state.second.push(v.clone());
                state.first.push(m.clone());
                let m_scale = 1.0 / (1.0 - beta1.powi(steps as i32));
                let v_scale = 1.0 / (1.0 - beta2.powi(steps as i32));
                theta + (m.mul_scalar(lr * m_scale) / v.mul_scalar(v_scale).sqrt().add_scalar(epsilon))
            }
        })
    }
}

impl EpsilonPlace {
    fn root(self, g: Tensor<2>, epsilon: f64) -> Tensor<2> {
        match self {
            Self::Outside => g.sqrt().add_scalar(epsilon),
            Self::Inside => g.add_scalar(epsilon).sqrt(),
        }
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

    #[test]
    fn three_steps_of_every_rule_are_those_of_numpy() {
        // numpy, from (.3, −.4) with ε = .1, β = .9, β₁ = .9, β₂ = .99, and ϵ = ¼, so that its place shows.
        let (lr, epsilon) = (0.1, 0.25);
        let momentum = |init, place| Optimizer::AdaGrad { lr, epsilon, momentum: 0.9, init, place };
        let sum = |place| Optimizer::AdaGradSum { lr, epsilon, place };
        let (outside, inside) = (EpsilonPlace::Outside, EpsilonPlace::Inside);
        let cases = [
            (momentum(AccumulatorStart::G2, outside), [0.4254669127469744, -0.44097303509677604]),
            (momentum(AccumulatorStart::G2, inside), [0.43490790198912654, -0.4444880405386318]),
            (momentum(AccumulatorStart::Zero, outside), [0.5009525888721393, -0.5113176032770413]),
            (momentum(AccumulatorStart::Zero, inside), [0.4758757475960366, -0.522169389038467]),
            (sum(outside), [0.4014315221928979, -0.4466116785528877]),
            (sum(inside), [0.40952430354255165, -0.4510073536816184]),
            (Optimizer::Adam { lr, epsilon, beta1: 0.9, beta2: 0.99 }, [0.46249207415282506, -0.5536934357849761]),
            (Optimizer::Sgd { lr }, [0.4, -0.5]),
        ];
        let layout = Arc::new(Layout::new([("theta", [2].as_slice())]));
        // By tensor operations in f64, and by the loop over the coordinates in f32.
        for (precision, tolerance) in [(Precision::F64, 1e-14), (Precision::F32, 1e-6)] {
            let session = Session::open::<Flex>(precision).unwrap();
            let set = |values: [f64; 2]| {
                let array = Array { shape: vec![1, 2], values: Values::F64(values.to_vec()) };
                Particles::from_array(&array, &layout, &session).unwrap()
            };
            for (optimizer, want) in cases {
                let (mut at, mut state) = (set([0.3, -0.4]), OptimizerState::default());
                for phi in [[0.5, -2.0], [1.5, 0.25], [-1.0, 0.75]] {
                    at = optimizer.follow(at, Direction::given(set(phi)), &mut state);
                }
                let got = at.to_array().unwrap().values.to_f64();
                let gap = got.iter().zip(want).map(|(got, want)| (got - want).abs()).fold(0.0, f64::max);
                assert!(gap < tolerance, "{optimizer:?}, {precision:?}: {got:?}, not {want:?}");
                assert_eq!(state.steps, 3);
            }
        }
    }

    #[test]
    fn no_step_is_longer_than_the_longest() {
        let (lr, epsilon, session) = (0.01, 1e-6, Session::open::<Flex>(Precision::F32).unwrap());
        let layout = Network::new(BlrConfig::new(4)).layout().clone();
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut set = |scale: f32| {
            let values = (0..10).map(|_| scale * rng.random_range(-1.0f32..1.0)).collect();
            Particles::from_array(&Array { shape: vec![2, 5], values: Values::F32(values) }, &layout, &session).unwrap()
        };
        for place in [EpsilonPlace::Outside, EpsilonPlace::Inside] {
            let momentum = |init| Optimizer::AdaGrad { lr, epsilon, momentum: 0.9, init, place };
            let sum = Optimizer::AdaGradSum { lr, epsilon, place };
            for optimizer in [momentum(AccumulatorStart::G2), momentum(AccumulatorStart::Zero), sum] {
                let (mut at, mut state, mut longest) = (set(1.0), OptimizerState::default(), 0.0f64);
                for step in 0..60 {
                    // φ becomes smaller, and then suddenly large: the longest step that an accumulator allows.
                    let scale = if step % 20 == 19 { 1e6 } else { 10f32.powi(-(step % 20) / 3) };
                    let before = at.clone();
                    at = optimizer.step(at, set(scale), &mut state);
                    let moved = at.clone().zip(before, |to, from| to - from).row_norms().unwrap();
                    longest = moved.into_iter().fold(longest, f64::max);
                }
                let bound = optimizer.longest_step(5);
                assert!(longest <= bound && longest > 0.5 * bound, "{optimizer:?}: {longest}, not {bound}");
            }
        }
    }
}
