//! Step rules that turn a direction φ into a move of the particles (ascent, element by element).
//!
//! AdaGrad with momentum, the papers' rule: G_0 = φ_0², G_l = β G_{l−1} + (1 − β) φ_l², Θ ← Θ + ε φ_l/(ϵ + √G_l).
//! The first step is ε·sign(φ). Source: Liu & Wang 2016 code, Kassab & Simeone Table 3, ALGORITHMS 2.4.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::particles::Particles;

/// G_0 of AdaGrad with momentum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccumulatorStart {
    /// φ_0² (SVGD and DSVGD codes).
    #[default]
    G2,
    /// (1 − β) φ_0² (FedWBA code): the first step is 1/√(1−β) times longer.
    Zero,
}

/// Where ϵ stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpsilonPlace {
    /// φ/(ϵ + √G), all codes.
    #[default]
    Outside,
    /// φ/√(G + ϵ), the text of the FedWBA paper.
    Inside,
}

/// A step rule and its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// AdaGrad with momentum on the accumulator (no momentum on the direction).
    AdaGrad {
        /// Step size ε.
        lr: f64,
        /// ϵ.
        epsilon: f64,
        /// β.
        momentum: f64,
        /// G_0.
        init: AccumulatorStart,
        /// Where ϵ stands.
        place: EpsilonPlace,
    },
    /// AdaGrad with a plain sum: G_l = G_{l−1} + φ_l².
    AdaGradSum {
        /// Step size ε.
        lr: f64,
        /// ϵ.
        epsilon: f64,
        /// Where ϵ stands.
        place: EpsilonPlace,
    },
    /// Adam, bias-corrected.
    Adam {
        /// Step size ε.
        lr: f64,
        /// ϵ.
        epsilon: f64,
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
    },
    /// Θ ← Θ + ε φ.
    Sgd {
        /// Step size ε.
        lr: f64,
    },
}

/// What an optimiser remembers; empty before the first step.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState {
    /// Steps taken.
    pub steps: usize,
    /// G, or Adam's second moment; one tensor a block.
    pub second: Vec<Tensor<2>>,
    /// Adam's first moment; one tensor a block.
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

    /// Moves the particles along φ.
    pub fn step<B: Backend>(
        &self,
        particles: Particles<B>,
        phi: Particles<B>,
        state: &mut OptimizerState,
    ) -> Particles<B> {
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
